#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs what tools/bench --quick runs, and checks that every part has its rows and its section of the page.

Judges no figure, but that the laboratory's page has the trees' rows. So it uses the programs of build/, which are there, and not those that are built for speed.

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
from parts import PARTS, TREES, Part

BENCH_FOLDER = Path(__file__).resolve().parent
ROOT = BENCH_FOLDER.parent.parent
BUILD = ROOT / "build"
TREES_PAGE = ROOT / "docs" / "lab" / "trees.md"
NO_CASE = "no case is called so"


def run(*arguments: str | Path) -> tuple[int, list[str]]:
    """The status of the measurement, and what it said beside its tables. That goes where our output goes, too."""
    said = []
    command = [sys.executable, BENCH_FOLDER / "run.py", "--build", BUILD, "--quick"]
    with subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as bench:
        assert bench.stderr is not None
        for line in bench.stderr:
            print(line, end="", flush=True)
            said.append(line)
    return bench.returncode, said


def section_of(page: str, part: Part) -> str:
    return next((section for section in page.split("\n## ") if section.startswith(f"{part.name}\n")), "")


# By part: what its cases are told apart by, and the values that must be there.
MUST_HAVE = {
    rivals.PART: ("about", rivals.ABOUTS),
    "region": ("about", ("broadcast", "all-gather", "reduce-scatter", "both", "flood")),
    "links": ("link", re.findall(r'\.name = "([^"]+)"', (BENCH_FOLDER / "link_kinds.hpp").read_text())),
}


def missing_of(part: Part, cases: list[dict[str, Any]], said: list[str]) -> list[str]:
    """What is neither measured nor left out with a reason."""
    key, values = MUST_HAVE.get(part.name, ("", ()))
    found = {case["case"].get(key) for case in cases}
    return [f"there is no {key} {value}, and nobody said why" for value in values
            if value not in found and not any(f"{value} is left out: " in line for line in said)]


def mistakes_without_programs() -> list[str]:
    """A comparison whose program is missing must say so in one line, and the others must be there."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as nothing:
        command = [sys.executable, BENCH_FOLDER / "rivals.py", "--build", BUILD, "--quick", "--rounds", "1"]
        done = subprocess.run(command, env=os.environ | {"PATH": nothing}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "is left out" in line]
    mistakes = [] if done.returncode == 0 else [f"rivals.py ended with {done.returncode}: {done.stderr[-500:]}"]
    mistakes += [f"it does not say once what {about} lacks: {complaints}" for about in rivals.PROGRAMS
                 if sum(f": {about} is left out: " in line for line in complaints) != 1]
    lines = [json.loads(line)["case"]["about"] for line in done.stdout.splitlines()]
    return mistakes + ([] if set(lines) == set(rivals.IN_ONE_PROCESS) else [f"it measured {sorted(set(lines))}"])


def stale_rows(section: str) -> list[str]:
    """Rows of the trees' tables without loss that the laboratory's page lacks. They are the same on every machine."""
    shown = TREES_PAGE.read_text().splitlines()
    tables = [table.split("\n\n")[1] for table in section.split("Link times / over the tree's, ")[1:]
              if table.split(":\n")[0].endswith(", 0 frames of a million lost")]
    rows = [row for table in tables for row in table.splitlines()]
    return [f"{TREES_PAGE.name} does not have this row: {row}" for row in rows if row not in shown] \
        + ([] if tables else ["there is no table without loss"])


def mistakes_of(part: Part, folder: Path, page: str, said: list[str]) -> list[str]:
    file = folder / f"{part.name}.json"
    if not file.exists():
        return [f"there is no {file.name}"]
    mistakes = []
    cases = json.loads(file.read_text())["cases"]
    if not cases or not all(figure["rounds"] for case in cases for figure in case["figures"].values()):
        mistakes.append(f"{file.name} has a figure without a round, or no case")
    mistakes += missing_of(part, cases, said)
    section = section_of(page, part)
    if "\n|" not in section:
        mistakes.append("its section of the page has no table")
    mistakes += stale_rows(section) if part is TREES else []
    mistakes += [f"the page shows {name}, which is not there" for name in re.findall(r"\]\(([^)]+)\)", section)
                 if not (folder / name).exists()]
    return mistakes


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        status, said = run("--out", folder)
        page = (folder / "README.md").read_text() if (folder / "README.md").exists() else ""
        found = {part.name: mistakes_of(part, folder, page, said) for part in PARTS}
        found["exit status"] = [f"it ended with {status}"] if status != 0 else []
        # A part that measures nothing must fail.
        unheard, _ = run(PARTS[0].name, "--only", NO_CASE, "--out", folder / "nothing")
        found["exit status without rows"] = ["0, though no case was measured"] if unheard == 0 else []
    found["rivals without their programs"] = mistakes_without_programs()
    for name, mistakes in found.items():
        print("\n".join([f"  {'FAILED' if mistakes else 'passed'}  {name}", *(f"    {line}" for line in mistakes)]))
    failed = sum(map(bool, found.values()))
    print(f"bench: {len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
