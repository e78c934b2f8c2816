#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Part `rivals` of tools/bench: what others would use for the same bytes, beside Weir (README.md).

Prints the lines of rivals_bench, and those of the comparisons that need another program. One whose package is missing
says so in a line, and the rest runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import mpi_sweep
import open_mpi
import testpmd
from comparison import PART, Missing, Options

ROUNDS, QUICK_ROUNDS = 5, 2
IN_ONE_PROCESS = ("check", "sum")  # rivals_bench's
PROGRAMS = {testpmd.ABOUT: testpmd.measure, open_mpi.ABOUT: open_mpi.measure, mpi_sweep.ABOUT: mpi_sweep.measure}
ABOUTS = (*IN_ONE_PROCESS, *PROGRAMS)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="where rivals_bench, weir and weir-worker are built")
    parser.add_argument("--part", choices=[PART], default=PART)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT")
    return parser.parse_args()


def in_one_process(build: Path, options: Options) -> None:
    command = [str(build / "tests/bench/rivals_bench"), "--rounds", str(options.rounds)]
    command += ["--quick"] if options.is_quick else []
    command += ["--only", options.only] if options.only else []
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)


def main() -> int:
    arguments = parse_arguments()
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    options = Options(rounds, arguments.quick, arguments.only)
    build = arguments.build.resolve()
    in_one_process(build, options)
    for about, measure in PROGRAMS.items():
        try:
            measure(build, options)
        except Missing as what:
            print(f"{PART}: {about} is left out: {what}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
