#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the all-reduce through the switch with the hosts' own ring, and writes docs/lab/numbers.md.

    tests/guest/measure.py                     2 to 6 ranks, medians of three, docs/lab/numbers.md
    tests/guest/measure.py --rate 20 --size 4096 --runs 5 --output FILE

Six guests around one Weir, each port limited by tc tbf in its guest. Both ways use the same links, the same soft-RoCE
verbs and the same Weir. For the second, the workers use a ring that Weir does not know, so nobody aggregates and
`--fallback ring` is used. Both check every element. Needs root, like tests/guest/run.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from allreduce import WORKER, finish_job, start_job
from fabric import Setup
from guest import BURST_BYTES
from image import REPOSITORY, build_image
from lab import Lab
from scenarios import expect
from switch import Ring, remove_leftovers

WORLDS = (2, 3, 4, 5, 6)
UNKNOWN_RING = 100  # plus the number of ranks: no such ring is configured
RINGS = tuple(Ring(tuple(range(world)), world, window=4, max_message_bytes=16384, mtu=1024) for world in WORLDS)
SETUP = Setup(guests=max(WORLDS), rings=RINGS)

PAYLOAD = 16384 - 40                                    # of a whole message
FRAMES = 16384 + 16 * (14 + 20 + 8 + 12 + 4) + 16 + 4   # its bytes on the link: headers, ICRC, RETH, immediate


@dataclass(frozen=True)
class Comparison:
    """One data type, compared through the switch and on the hosts' ring."""

    data_type: str
    schedule: str                   # by which the ring reduces that type
    theory: Callable[[int], float]  # how many times the tensor its busiest link carries, by number of ranks


COMPARISONS = (Comparison("i32", "reduce-scatter", lambda n: 2 * (n - 1) / n),
               Comparison("f32", "chain", lambda n: 1.0 if n == 2 else 2.0))


@dataclass(frozen=True)
class Row:
    """Seconds for one number of ranks and one data type."""

    world: int
    comparison: Comparison
    unlimited_switch: float
    unlimited_ring: float
    switch: list[float] = field(default_factory=list)
    ring: list[float] = field(default_factory=list)


# Long enough that frames in the queue of a slow port do not look lost.
PATIENT = "--ack-timeout-ms 8000 --timeout 120"


def by_switch(lab: Lab, ring: Ring, kind: Comparison, size: int) -> float:
    return measure(lab, ring, "algorithm=switch ", f"--size {size} --type {kind.data_type}")


def by_ring(lab: Lab, ring: Ring, kind: Comparison, size: int) -> float:
    unknown = dataclasses.replace(ring, ring_id=UNKNOWN_RING + ring.ring_id)
    way = f"algorithm=ring schedule={kind.schedule} "
    return measure(lab, unknown, way, f"--size {size} --type {kind.data_type} --fallback ring")


def measure(lab: Lab, ring: Ring, way: str, options: str) -> float:
    jobs = start_job(lab, f"{options} {PATIENT}", ring)
    seconds = finish_job(jobs)
    for job in jobs:
        expect(way in job.output, f"not by way of {way}: {job.output}")
    return seconds


def measure_world(lab: Lab, ring: Ring, options: argparse.Namespace) -> list[Row]:
    size = options.size * 1024
    rows = [Row(len(ring.guests), kind, by_switch(lab, ring, kind, size), by_ring(lab, ring, kind, size))
            for kind in COMPARISONS]
    for guest in lab.guests:
        guest.limit_rate(options.rate)
    for _ in range(options.runs):  # in turn, so that all run under the same conditions
        for row in rows:
            row.switch.append(by_switch(lab, ring, row.comparison, size))
            row.ring.append(by_ring(lab, ring, row.comparison, size))
    lab.reset()
    print(*rows, sep="\n", flush=True)
    return rows


def link_seconds(options: argparse.Namespace) -> float:
    """Time of a port for the tensor in frames of whole messages, without acknowledgements."""
    return options.size * 1024 / PAYLOAD * FRAMES * 8 / (options.rate * 1e6)


HEAD = """| ranks n | switch, s | ring, s | ring / switch | theory | switch / link time | ring / (theory x link time) |\
 switch, ring without limit, s |
|---|---|---|---|---|---|---|---|"""


def table(rows: list[Row], data_type: str, once: float) -> str:
    return "\n".join([HEAD, *(line(row, once) for row in rows if row.comparison.data_type == data_type)])


def line(row: Row, once: float) -> str:
    theory = row.comparison.theory(row.world)
    ratios = (gain(row), theory, statistics.median(row.switch) / once, statistics.median(row.ring) / once / theory)
    cells = [str(row.world), spread(row.switch), spread(row.ring), *(f"{ratio:.2f}" for ratio in ratios),
             f"{row.unlimited_switch:.2f}, {row.unlimited_ring:.2f}"]
    return f"| {' | '.join(cells)} |"


def answer(rows: list[Row]) -> str:
    """Compares the integers' gains with the theory."""
    shares = [gain(row) / row.comparison.theory(row.world) for row in rows if row.comparison is COMPARISONS[0]]
    return f"**ring / switch** is {min(shares):.2f} to {max(shares):.2f} times the theory."


def gain(row: Row) -> float:
    return statistics.median(row.ring) / statistics.median(row.switch)


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"


def page(rows: list[Row], options: argparse.Namespace, command: str) -> str:
    once = link_seconds(options)
    return f"""<!-- SPDX-License-Identifier: BSD-3-Clause -->
# The claim in numbers

With the switch, a tensor of S bytes crosses each link once in each direction, for any number of ranks n. The best method without
a switch, a ring of reduce-scatter and all-gather, sends 2(n-1)/n S over each link in each direction. So where links are the
bottleneck, the switch should be 2(n-1)/n times as fast. This page measures it.

Made by `{command}` on {date.today().isoformat()}:
emulated guests (QEMU TCG; {os.cpu_count()} CPU cores for all of them and Weir), load average {os.getloadavg()[2]:.1f}
over the last 15 minutes, soft-RoCE, path MTU 1024, messages of 16 packets, window 4. Every guest sends at
{options.rate:g} Mbit/s at most (`tc tbf`). An all-reduce of {options.size} KiB, sum, every element checked; median of
{options.runs} jobs each, run in turn, in brackets the fastest and the slowest; a job's time is that of its slowest rank.

## Integers: the ring of the literature

For types whose result does not depend on the order, here i32, `--fallback ring` is that ring
(`lib/host/collective/ring_reducer.hpp`). Theory: 2(n-1)/n.

{table(rows, "i32", once)}

{answer(rows)}

## Floating point: a ring with the switch's bits

The switch folds in rank order. To get the same bits, here for f32, every fold of the hosts' ring starts at rank 0 and goes to rank
n-1; then the result goes round once more. The total of bytes is the same, but the busiest links carry 2 S (S for two ranks). Theory:
1 for two ranks, otherwise 2. A job that does not need rank order could use the other ring; compare it with 2(n-1)/n.

{table(rows, "f32", once)}

## How to read them

- **switch**: Weir aggregates. **ring**: the same workers, verbs, links and Weir, but with a ring id that Weir does not know. Weir
  forwards, and the workers reduce.
- **Link time** is what a port needs for S in frames, {once:.2f} s: 1024 bytes of payload in 1082 on the link, 40 bytes
  of header in 16384, without acknowledgements. The two columns with it compare each method with its own bound, 1.00. Values above
  it come from start and end of the pipeline, acknowledgements and the emulation. Values below it, by up to
  {BURST_BYTES / (options.size * 1024):.1%}, come from the burst of {BURST_BYTES} bytes that an idle port may send at once.
- **ring / switch above the theory** is not an advantage of Weir: the emulation has slowed the ring more than the switch, or the
  ring's pipeline was not full; the two columns of link times show it.
- **without limit**, one job each: the fastest that the emulation allowed at the time. If it is not well below the figures with the
  limit, CPUs and not ports were the bottleneck, and the row proves nothing. The rate was chosen for this reason: emulated
  guests that share {os.cpu_count()} cores are too slow for a limit of tens of Mbit/s.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="All-reduce with and without the switch, on rate-limited ports.")
    parser.add_argument("--rate", type=float, default=2.0, metavar="MBIT", help="of each port (default 2)")
    parser.add_argument("--size", type=int, default=512, metavar="KIB", help="of the tensor (default 512)")
    parser.add_argument("--runs", type=int, default=3, help="jobs of which the median is taken (default 3)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "lab" / "numbers.md")
    options = parser.parse_args()
    command = " ".join(["tests/guest/measure.py", *sys.argv[1:]])
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"weir-guest-{os.getpid()}-") as logs:
        with Lab(SETUP, "weir", build_image([REPOSITORY / WORKER]), Path(logs)) as lab:
            rows = [row for ring in RINGS for row in measure_world(lab, ring, options)]
    options.output.write_text(page(rows, options, command))
    print(f"{options.output} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
