#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tools/bench --quick and checks that every part has its rows and its section of the page. Judges no figure.

Ends in "bench: N passed, N failed, 0 skipped".
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import rivals
from parts import PARTS, Part

BENCH_FOLDER = Path(__file__).resolve().parent
ROOT = BENCH_FOLDER.parent.parent
BENCH = ROOT / "tools" / "bench"
NO_CASE = "no case is called so"


def run(*arguments: str | Path) -> int:
    """The status of tools/bench. Its output goes where ours goes, except for the tables."""
    return subprocess.run([BENCH, "--quick", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=sys.stdout).returncode


def section_of(page: str, part: Part) -> str:
    return next((section for section in page.split("\n## ") if section.startswith(f"{part.name}\n")), "")


def rivals_missing(cases: list[dict[str, Any]]) -> list[str]:
    """tools/prepare installs the packages of all comparisons."""
    found = {case["case"]["about"] for case in cases}
    return [f"no comparison is about {about}" for about in rivals.ABOUTS if about not in found]


def mistakes_without_programs() -> list[str]:
    """A comparison whose program is missing must say so in one line, and the others must be there."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as nothing:
        command = [sys.executable, BENCH_FOLDER / "rivals.py", "--build", ROOT / "build-release", "--quick",
                   "--rounds", "1"]
        done = subprocess.run(command, env=os.environ | {"PATH": nothing}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "is left out" in line]
    mistakes = [] if done.returncode == 0 else [f"rivals.py ended with {done.returncode}: {done.stderr[-500:]}"]
    mistakes += [f"it does not say once what {about} lacks: {complaints}" for about in rivals.PROGRAMS
                 if sum(f": {about} is left out: " in line for line in complaints) != 1]
    lines = [json.loads(line)["case"]["about"] for line in done.stdout.splitlines()]
    return mistakes + ([] if set(lines) == set(rivals.IN_ONE_PROCESS) else [f"it measured {sorted(set(lines))}"])


def mistakes_of(part: Part, folder: Path, page: str) -> list[str]:
    file = folder / f"{part.name}.json"
    if not file.exists():
        return [f"there is no {file.name}"]
    mistakes = []
    cases = json.loads(file.read_text())["cases"]
    if not cases or not all(figure["rounds"] for case in cases for figure in case["figures"].values()):
        mistakes.append(f"{file.name} has a figure without a round, or no case")
    if part.name == rivals.PART:
        mistakes += rivals_missing(cases)
    section = section_of(page, part)
    if "\n|" not in section:
        mistakes.append("its section of the page has no table")
    mistakes += [f"the page shows {name}, which is not there" for name in re.findall(r"\]\(([^)]+)\)", section)
                 if not (folder / name).exists()]
    return mistakes


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        status = run("--out", folder)
        page = (folder / "README.md").read_text() if (folder / "README.md").exists() else ""
        found = {part.name: mistakes_of(part, folder, page) for part in PARTS}
        found["exit status"] = [f"tools/bench ended with {status}"] if status != 0 else []
        # A part that measures nothing must fail.
        unheard = run(PARTS[0].name, "--only", NO_CASE, "--out", folder / "nothing")
        found["exit status without rows"] = ["0, though no case was measured"] if unheard == 0 else []
    found["rivals without their programs"] = mistakes_without_programs()
    for name, mistakes in found.items():
        print("\n".join([f"  {'FAILED' if mistakes else 'passed'}  {name}", *(f"    {line}" for line in mistakes)]))
    failed = sum(map(bool, found.values()))
    print(f"bench: {len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
