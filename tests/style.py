#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks every tracked source file for clang-format and its SPDX line, and for the views of
<ranges>, which one of our compilers cannot compile: three tests. Ends in "style: N passed, …"."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
CODE = {".cpp", ".hpp", ".h"}
COMPLAINT = re.compile(r"^([^:\n]+)(:\d+:\d+: (?:error|warning): .*)$", re.MULTILINE)
BATCH = 40
FORMATTED = ROOT / "build" / "formatted"  # digests of what clang-format had nothing to say of the last time
SPDX_SUFFIXES = CODE | {".py", ".build", ".yaml", ".pml", ".service", ".sh"}


def tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def wants_spdx(file: Path) -> bool:
    return file.suffix in SPDX_SUFFIXES or (file.suffix == "" and file.parent.name in {"tools", ".ci"})


def check_spdx(files: list[Path]) -> list[str]:
    return [f"{file.relative_to(ROOT)}: no SPDX line among the first three" for file in filter(wants_spdx, files)
            if not any(SPDX in line for line in file.read_text(errors="replace").splitlines()[:3])]


def format_complaints(files: list[Path]) -> list[str]:
    """One line for each file that clang-format would change: the first place."""
    answer = subprocess.run(["clang-format", "--dry-run", "--Werror", *files], capture_output=True, text=True)
    places = COMPLAINT.findall(answer.stderr)
    if answer.returncode != 0 and not places:
        return [f"clang-format failed: {answer.stderr.strip() or answer.returncode}"]
    return list({file: f"{file}{rest}" for file, rest in reversed(places)}.values())


def digests_of(files: list[Path]) -> dict[Path, str]:
    """Of each file, the rules and the program."""
    version = subprocess.run(["clang-format", "--version"], check=True, capture_output=True).stdout
    rules = version + (ROOT / ".clang-format").read_bytes()
    return {file: hashlib.sha256(rules + file.read_bytes()).hexdigest() for file in files}


def check_format(files: list[Path]) -> list[str]:
    """Some files by one process, as its start takes longer than a file; only those that are not known to be right."""
    digests = digests_of([file for file in files if file.suffix in CODE])
    known = set(FORMATTED.read_text().split()) if FORMATTED.exists() else set()
    code = [file for file, digest in digests.items() if digest not in known]
    batches = [code[start:start + BATCH] for start in range(0, len(code), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [complaint for complaints in pool.map(format_complaints, batches) for complaint in complaints]
    if not found and FORMATTED.parent.exists():
        FORMATTED.write_text("\n".join(digests.values()))
    return found


def check_views(files: list[Path]) -> list[str]:
    """Clang up to 15 rejects the views of libstdc++, and no quick stage compiles by it."""
    return [f"{file.relative_to(ROOT)}:{number}: std::views does not compile by clang 14: write the loop"
            for file in files if file.suffix in CODE
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1) if "std::views::" in line]


def main() -> int:
    files = tracked_files()
    found = [check(files) for check in (check_spdx, check_format, check_views)]
    for failure in [failure for failures in found for failure in failures]:
        print(failure)
    failed = sum(map(bool, found))
    print(f"style: {len(files)} files looked at")
    print(f"style: {len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
