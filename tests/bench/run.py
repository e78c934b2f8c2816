#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the measuring programs part by part and writes tables, plots and JSON into a results folder (README.md)."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

import machine  # noqa: E402
import page  # noqa: E402
from output import end_with, write_text  # noqa: E402
from parts import PARTS, Part  # noqa: E402
from rounds import Measured, group  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def build(build_folder: Path, parts: list[Part]) -> None:
    targets = sorted({target for part in parts for target in part.targets})
    tell(f"bench: building {', '.join(targets)} in {build_folder}")
    quiet = [] if sys.stderr.isatty() else ["--quiet"]  # a log gets only errors
    if subprocess.run(["ninja", "-C", str(build_folder), *quiet, *targets], stdout=sys.stderr).returncode != 0:
        sys.exit("tools/bench: the measuring programs do not build")


def command_of(part: Part, build_folder: Path) -> list[str]:
    if part.script:
        return [sys.executable, str(Path(__file__).with_name(part.script)), "--build", str(build_folder)]
    return [str(build_folder / "tests" / "bench" / part.program)]


def measure(part: Part, build_folder: Path, options: argparse.Namespace) -> list[Measured]:
    """Runs the part's program; its progress goes to the terminal."""
    command = command_of(part, build_folder) + ["--part", part.name]
    command += ["--quick"] if options.quick else []
    command += ["--rounds", str(options.rounds)] if options.rounds else []
    command += ["--only", options.only] if options.only else []
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, stdin=subprocess.DEVNULL)
    cases = group(answer.stdout.splitlines(), part.name)
    if not cases:
        raise ValueError(f"{part.program} measured no case of {part.name}")
    return cases


def write_json(path: Path, part: Part, about: dict[str, Any], cases: list[Measured]) -> None:
    content = {"part": part.name, "machine": about, "cases": [measured.as_json() for measured in cases]}
    write_text(path, json.dumps(content, indent=1) + "\n")


def run_part(part: Part, build_folder: Path, folder: Path, options: argparse.Namespace) -> str:
    """Measures and writes one part; returns its section of the page."""
    about = machine.describe(build_folder)
    started = time.monotonic()
    cases = measure(part, build_folder, options)
    about["load average at end"] = os.getloadavg()
    about["seconds"] = round(time.monotonic() - started, 1)
    write_json(folder / f"{part.name}.json", part, about, cases)
    for title, rows in page.tables_of(part, cases):
        print(f"\n{title}\n{page.as_text(rows)}", flush=True)
    return page.section(part, cases, page.draw_all(part, cases, folder))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/bench", description="Measures Weir, each figure beside its baseline.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these parts (see --list)")
    parser.add_argument("--list", action="store_true", help="list the parts")
    parser.add_argument("--out", type=Path, metavar="DIR", help="results folder (default results/<date>)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases, for trying out")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each case")
    parser.add_argument("--only", metavar="TEXT", help="only cases whose text contains TEXT, e.g. type=f32,")
    parser.add_argument("--build", type=Path, default=ROOT / "build-release", help=argparse.SUPPRESS)
    return parser.parse_args()


def chosen_parts(names: list[str]) -> list[Part]:
    known = {part.name: part for part in PARTS}
    for name in names:
        if name not in known:
            sys.exit(f"tools/bench: found part {name!r}; allowed: {', '.join(known)}")
    return [part for part in PARTS if not names or part.name in names]


def main() -> int:
    options = parse_arguments()
    if options.list:
        for part in PARTS:
            print(f"{part.name:12} {part.about}")
        return 0
    parts = chosen_parts(options.parts)
    build(options.build, parts)
    folder = options.out or ROOT / "results" / datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    sections, failed = [], []
    for number, part in enumerate(parts, 1):
        tell(f"bench: part {number} of {len(parts)}: {part.name}")
        try:
            sections.append(run_part(part, options.build, folder, options))
        except (subprocess.CalledProcessError, ValueError, OSError) as error:
            tell(f"bench: {part.name} failed: {error}")
            failed.append(part.name)
        page.write_page(folder, machine.describe(options.build), sections)
    print(f"\nresults: {folder}/README.md" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    end_with("tools/bench", main)
