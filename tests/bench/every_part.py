#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tools/bench --quick and checks that every part has its rows and its section of the page. Judges no figure.

Ends in "bench: N passed, N failed, 0 skipped".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from parts import PARTS, Part

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "tools" / "bench"
NO_CASE = "no case is called so"


def run(*arguments: str | Path) -> int:
    """The status of tools/bench. Its output goes where ours goes, except for the tables."""
    return subprocess.run([BENCH, "--quick", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=sys.stdout).returncode


def section_of(page: str, part: Part) -> str:
    return next((section for section in page.split("\n## ") if section.startswith(f"{part.name}\n")), "")


def mistakes_of(part: Part, folder: Path, page: str) -> list[str]:
    file = folder / f"{part.name}.json"
    if not file.exists():
        return [f"there is no {file.name}"]
    mistakes = []
    cases = json.loads(file.read_text())["cases"]
    if not cases or not all(figure["rounds"] for case in cases for figure in case["figures"].values()):
        mistakes.append(f"{file.name} has a figure without a round, or no case")
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
    for name, mistakes in found.items():
        print("\n".join([f"  {'FAILED' if mistakes else 'passed'}  {name}", *(f"    {line}" for line in mistakes)]))
    failed = sum(map(bool, found.values()))
    print(f"bench: {len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
