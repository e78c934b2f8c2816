# SPDX-License-Identifier: BSD-3-Clause
"""What a tool writes reaches its file whole, or the tool ends with an error that names the file and the cause."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Callable, NoReturn


def write_text(path: Path, text: str) -> None:
    """As Path.write_text; the error of a full disk has the file's name."""
    try:
        path.write_text(text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def end_with(tool: str, main: Callable[[], int]) -> NoReturn:
    """Ends this process with main()'s status; with 1 when a file or standard output could not be written."""
    status: object = 1
    try:
        status = main()
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except OSError as error:
        print(f"{tool}: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"{tool}: standard output: cannot be written: {error.strerror}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # Python would try to write the rest once more
        status = 1
    sys.exit(status)
