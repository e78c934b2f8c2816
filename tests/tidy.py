#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy (.clang-tidy says what for) over lib/ and app/, as many at once as there are cores.

All files are one test. The kernels are left out, because clang-tidy 14 cannot parse some of their GCC vector extensions.
A file that some programs compile once more is looked at again only where they define other macros.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def database() -> list[dict[str, str]]:
    """How each source is compiled. clang-tidy looks at a file once for each entry, so there is one for each set of macros."""
    found: dict[tuple[str, frozenset[str]], dict[str, str]] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        macros = frozenset(word for word in entry["command"].split() if word.startswith(("-D", "-U")))
        found.setdefault((entry["file"], macros), entry)
    return list(found.values())


def complaints_about(file: Path, folder: str) -> str:
    answer = subprocess.run(["clang-tidy", "--quiet", "-p", folder, str(file)], capture_output=True, text=True)
    return "" if answer.returncode == 0 else "\n".join(line for line in answer.stdout.splitlines() if "error:" in line) \
        or answer.stderr


def main() -> int:
    files = [file for folder in ("lib", "app") for file in sorted((ROOT / folder).rglob("*.cpp"))
             if not file.name.startswith("kernel_")]
    with tempfile.TemporaryDirectory(prefix="weir-tidy-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        (Path(folder) / "compile_commands.json").write_text(json.dumps(database()))
        complaints = list(pool.map(lambda file: complaints_about(file, folder), files))
    for complaint in filter(None, complaints):
        print(complaint)
    print(f"tidy: {len(files)} files looked at, {sum(map(bool, complaints))} with complaints")
    print("tidy: 0 passed, 1 failed, 0 skipped" if any(complaints) else "tidy: 1 passed, 0 failed, 0 skipped")
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
