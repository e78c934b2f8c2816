#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures an all-reduce over links that lose, delay and reorder frames, and prints a table.

    tests/guest/loss_times.py                            this tree's Weir
    tests/guest/loss_times.py --against PATH/TO/weir     beside another one, in turn, in the same guests
    tests/guest/loss_times.py --size 1024 --runs 5

Four guests around one Weir; the settings act on both directions of every guest's link. Every element is checked. Needs
root, like tests/guest/run.py.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from allreduce import WORKER, run_job
from fabric import Setup
from guest import GuestError
from image import REPOSITORY, build_image
from lab import Lab, ScenarioFailed
from switch import WEIR, Ring, remove_leftovers

RING = Ring((0, 1, 2, 3), window=4, max_message_bytes=16384, mtu=1024)
SETUP = Setup(guests=4, rings=(RING,))
LINKS = ("loss 0%", "loss 0.1%", "loss 1%", "loss 5%", "loss 10%", "delay 5ms reorder 5%", "loss 1% delay 5ms reorder 5%")


@dataclass(frozen=True)
class Cell:
    """Jobs of one Weir over one kind of link."""

    seconds: list[float]
    failed: int

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.failed} failed"
        text = f"{statistics.median(self.seconds):.2f} ({min(self.seconds):.2f}–{max(self.seconds):.2f})"
        return f"{text}, {self.failed} failed" if self.failed else text


def spoil_links(lab: Lab, settings: str) -> None:
    for guest in lab.guests:
        guest.netem_both_ways(settings)


def run_with(lab: Lab, program: Path, link: str, options: argparse.Namespace, cell: Cell) -> Cell:
    lab.weir.replace(program)
    job = f"--size {options.size * 1024} --retries {options.retries} --ack-timeout-ms {options.ack_timeout_ms} --timeout 100"
    try:
        return Cell([*cell.seconds, run_job(lab, job)], cell.failed)
    except (ScenarioFailed, GuestError) as failure:
        print(f"{program} over {link}: {failure}", file=sys.stderr)
        lab.reset()
        spoil_links(lab, link)
        return Cell(cell.seconds, cell.failed + 1)


def measure(lab: Lab, programs: list[Path], options: argparse.Namespace) -> None:
    print(f"| link | {' | '.join(str(program) for program in programs)} |\n|---|{'---|' * len(programs)}")
    for link in LINKS:
        spoil_links(lab, link)
        cells = [Cell([], 0) for _ in programs]
        for _ in range(options.runs):  # in turn, so that all run under the same conditions
            cells = [run_with(lab, program, link, options, cell) for program, cell in zip(programs, cells, strict=True)]
        print(f"| {link} | {' | '.join(map(str, cells))} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds of an all-reduce over bad links: median (fastest–slowest).")
    parser.add_argument("--against", type=Path, metavar="WEIR", help="another weir to measure beside this tree's")
    parser.add_argument("--size", type=int, default=256, metavar="KIB", help="of the tensor (default 256)")
    parser.add_argument("--runs", type=int, default=3, help="jobs of which the median is taken (default 3)")
    parser.add_argument("--ack-timeout-ms", type=int, default=250, help="of the queue pairs (default 250)")
    parser.add_argument("--retries", type=int, default=7, help="of the queue pairs (default 7: no limit)")
    options = parser.parse_args()
    programs = [WEIR, *([options.against] if options.against else [])]
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix="weir-guest-") as logs:
        with Lab(SETUP, "weir", build_image([REPOSITORY / WORKER]), Path(logs)) as lab:
            measure(lab, programs, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
