#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds every tracked source file to clang-format and to its SPDX line. Ends in "style: N passed, …"."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
CODE = {".cpp", ".hpp", ".h"}
SPDX_SUFFIXES = CODE | {".py", ".build", ".yaml", ".pml", ".service", ".sh"}


def tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def lacks_spdx(file: Path) -> bool:
    head = file.read_text(errors="replace").splitlines()[:3]
    return not any(SPDX in line for line in head)


def main() -> int:
    failures: list[str] = []
    checked = 0
    for file in tracked_files():
        is_program = file.suffix == "" and file.parent.name in {"tools", ".ci"}
        if file.suffix in SPDX_SUFFIXES or is_program:
            checked += 1
            if lacks_spdx(file):
                failures.append(f"{file.relative_to(ROOT)}: no SPDX line among the first three")
        if file.suffix in CODE:
            checked += 1
            answer = subprocess.run(["clang-format", "--dry-run", "--Werror", str(file)], capture_output=True, text=True)
            if answer.returncode != 0:
                failures.append(answer.stderr.splitlines()[0] if answer.stderr else f"{file}: clang-format failed")
    for failure in failures:
        print(failure)
    print(f"style: {checked - len(failures)} passed, {len(failures)} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
