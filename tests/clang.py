#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Brings the whole tree before clang: builds what runs under ASan and UBSan, and only parses what else is in tests/.

tests/clang.py BUILD, which is configured. To generate and link code that no stage runs took a third of the time, and shows
nothing that parsing does not. What else is in lib/ and app/ is left to tests/tidy.py, which reports the compiler's warnings too.
Ends in "clang: N passed, N failed, 0 skipped": the build is a test, and the parsing another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from compile_commands import Compilation, compilations_in  # noqa: E402

# Beside the unit tests.
RUN_FOLDER = Path("tests/fuzz")
RUN_BESIDE = "app/weir-replay"


def files_of(build: Path, kind: str) -> list[str]:
    """What the targets of a kind make."""
    targets = json.loads((build / "meson-info/intro-targets.json").read_text())
    return [str(Path(file).relative_to(build)) for target in targets if target["type"] == kind for file in target["filename"]]


def programs_that_run(build: Path) -> list[str]:
    tests = json.loads((build / "meson-info/intro-tests.json").read_text())
    # A program, or one that calls it.
    words = {build / word for test in tests if any("unit" in suite for suite in test["suite"]) for word in test["cmd"]}
    unit_tests = {str(word.relative_to(build)) for word in words if word.is_relative_to(build)}
    return [name for name in files_of(build, "executable")
            if name in unit_tests or name == RUN_BESIDE or Path(name).parent == RUN_FOLDER]


def objects_of(build: Path, programs: list[str]) -> set[str]:
    answer = subprocess.run(["ninja", "-C", str(build), "-t", "inputs", *programs], check=True, capture_output=True, text=True)
    return {line for line in answer.stdout.splitlines() if line.endswith(".o")}


def complaint_about(left: Compilation) -> str:
    command = [left.compiler, *left.options, "-fsyntax-only", str(left.file)]
    answer = subprocess.run(command, cwd=left.folder, capture_output=True, text=True)
    return "" if answer.returncode == 0 else f"{left.file}:\n{answer.stderr}"


def main() -> int:
    build = ROOT / sys.argv[1]
    programs = programs_that_run(build)
    generated = files_of(build, "custom")
    is_built = subprocess.run(["ninja", "-C", str(build), "--quiet", *programs, *generated]).returncode == 0
    built = objects_of(build, programs)
    left = [compilation for compilation in compilations_in(build)
            if str(compilation.output) not in built and compilation.output.parts[0] == "tests"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(filter(None, pool.map(complaint_about, left)))
    print("".join(complaints), end="")
    print(f"clang: {len(programs)} programs of {len(built)} objects built, {len(left)} other objects parsed")
    passed = is_built + (not complaints)
    print(f"clang: {passed} passed, {2 - passed} failed, 0 skipped")
    return 0 if passed == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
