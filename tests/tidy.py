#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy (.clang-tidy says what for) over lib/ and app/, as many at once as there are cores.

All files are one test. The kernels are left out, because clang-tidy 14 cannot parse some of their GCC vector extensions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def complaints_about(file: Path) -> str:
    answer = subprocess.run(["clang-tidy", "--quiet", "-p", str(ROOT / "build"), str(file)], capture_output=True, text=True)
    return "" if answer.returncode == 0 else "\n".join(line for line in answer.stdout.splitlines() if "error:" in line) \
        or answer.stderr


def main() -> int:
    files = [file for folder in ("lib", "app") for file in sorted((ROOT / folder).rglob("*.cpp"))
             if not file.name.startswith("kernel_")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(complaints_about, files))
    for complaint in filter(None, complaints):
        print(complaint)
    print(f"tidy: {len(files)} files looked at, {sum(map(bool, complaints))} with complaints")
    print("tidy: 0 passed, 1 failed, 0 skipped" if any(complaints) else "tidy: 1 passed, 0 failed, 0 skipped")
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
