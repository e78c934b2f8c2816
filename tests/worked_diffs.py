#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Applies each worked diff of CONTRIBUTING.md to a copy of this tree, and sees that it touches no more than the page says.

A worked diff stands under a heading of its own: a line `Places: 2 in lib, 1 in docs.` with the hunks that each folder may
have, a line `Tests: ` with what tries it in backquotes, then a block of the language diff. A test is a program of the build
folder, perhaps with arguments (`tests/unit/control_test --gtest_filter=KeyTable*`), or a command for the root of the copy
(`tests/docs.py`). With --build programs are built and tests are run, each diff in a copy of its own; a program that is no
test (`app/weir`) only has to build. Ends in "worked-diffs: N passed, …"."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "CONTRIBUTING.md"


@dataclass
class WorkedDiff:
    heading: str
    limits: Counter[str]  # hunks by the first folder of their file
    tests: list[str]
    patch: str


class Mistake(Exception):
    """What is wrong with the page."""


def section_before(page: str, block: int) -> tuple[str, str]:
    """The heading above a block, and what stands between."""
    heading = list(re.finditer(r"^#+ (.+)$", page[:block], re.MULTILINE))[-1]
    return heading[1], page[heading.end():block]


def worked_diffs(page: str) -> list[WorkedDiff]:
    diffs = []
    for block in re.finditer(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        heading, text = section_before(page, block.start())
        places = re.search(r"^Places: (.+?)\.$", text, re.MULTILINE)
        tests = re.search(r"^Tests: (.+?)\.$", text, re.MULTILINE)
        if not places or not tests:
            raise Mistake(f"{PAGE}: found no line Places: or Tests: between the heading {heading} and its diff")
        limits = Counter({folder: int(count) for count, folder in re.findall(r"(\d+) in (\S+?)(?:,|$)", places[1])})
        diffs.append(WorkedDiff(heading, limits, re.findall(r"`([^`]+)`", tests[1]), block[1]))
    return diffs


def places_in(patch: str) -> Counter[str]:
    """Hunks by the first folder of their file."""
    places: Counter[str] = Counter()
    folder = ""
    for line in patch.splitlines():
        if file := re.match(r"(?:---|\+\+\+) [ab]/([^/\s]+)", line):
            folder = file[1]
        places[folder] += line.startswith("@@ ")
    return +places


def copy_tree(to: Path) -> None:
    """As it lies here, what is not committed included."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        file = ROOT / name
        if file.is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to / name)


def run(command: list[str], where: Path, stdin: str | None = None) -> None:
    # Objects of another tree are as good.
    environment = os.environ | {"CCACHE_BASEDIR": str(where), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1"}
    result = subprocess.run(command, cwd=where, input=stdin, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise Mistake(f"{shlex.join(command)} fails: {(result.stdout + result.stderr).strip()[-4000:]}")


def build_and_test(diff: WorkedDiff, copy: Path) -> None:
    run(["meson", "setup", "build", "-Dcpp_args=-g1"], copy)
    for test in diff.tests:
        program, *arguments = shlex.split(test)
        is_built = program.startswith(("app/", "tests/")) and not (copy / program).exists()
        if is_built:
            run(["ninja", "-C", "build", program], copy)
        if not is_built or program.startswith("tests/"):
            run([f"build/{program}" if is_built else program, *arguments], copy)


def check_tests(tests: list[str]) -> None:
    """That there are such tests, without building them."""
    if not tests:
        raise Mistake("names no test")
    programs = (ROOT / "tests/unit/meson.build").read_text()
    for test in tests:
        unit = re.match(r"tests/unit/(\w+)_test\b", test)
        if unit and f"'{unit[1]}': " not in programs:
            raise Mistake(f"found the test {test}; allowed: a program of tests/unit/meson.build")


def try_diff(diff: WorkedDiff, with_build: bool) -> None:
    """Throws a Mistake."""
    check_tests(diff.tests)
    places = places_in(diff.patch)
    if too_many := places - diff.limits:
        told = ", ".join(f"{count} in {folder}" for folder, count in diff.limits.items())
        found = ", ".join(f"{places[folder]} in {folder}" for folder in too_many)
        raise Mistake(f"found {found}; the page says {told}")
    with tempfile.TemporaryDirectory(prefix="weir-worked-diff-") as folder:
        copy = Path(folder)
        copy_tree(copy)
        run(["git", "apply", "--whitespace=error", "-"], copy, diff.patch)
        if with_build:
            build_and_test(diff, copy)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build and run the tests that the page names")
    parser.add_argument("--only", default="", metavar="WORDS", help="only diffs whose heading has these words")
    options = parser.parse_args()
    try:
        diffs = [diff for diff in worked_diffs((ROOT / PAGE).read_text()) if options.only in diff.heading]
    except Mistake as mistake:
        sys.exit(str(mistake))
    failed = 0
    for diff in diffs:
        try:
            try_diff(diff, options.build)
        except Mistake as mistake:
            failed += 1
            print(f"{PAGE}: {diff.heading}: {mistake}", flush=True)
    print(f"worked-diffs: {len(diffs) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not diffs else 0


if __name__ == "__main__":
    sys.exit(main())
