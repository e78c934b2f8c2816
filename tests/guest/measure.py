#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the all-reduce through the switch against the one without it, and writes docs/numbers.md.

    tests/guest/measure.py                     2 to 6 ranks, medians of three, docs/numbers.md
    tests/guest/measure.py --rate 20 --size 4096 --runs 5 --output FILE

Six guests around one Weir, each port limited by tc tbf in its guest. Both ways use the same links, the same soft-RoCE
verbs and the same Weir: for the second, the workers name a ring that it does not know, so that nobody aggregates and
`--fallback ring` takes over. Both check every element. Needs root, like tests/guest/run.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from allreduce import WORKER, finish_job, start_job
from guest import BURST_BYTES
from image import REPOSITORY, build_image
from lab import Lab, Setup
from scenarios import expect
from switch import Ring, remove_leftovers

WORLDS = (2, 3, 4, 5, 6)
UNKNOWN_RING = 100  # plus the number of ranks: no such ring is configured
RINGS = tuple(Ring(tuple(range(world)), world, window=4, max_message_bytes=16384, mtu=1024) for world in WORLDS)
SETUP = Setup(guests=max(WORLDS), rings=RINGS)

PAYLOAD = 16384 - 40                                    # of a whole message
FRAMES = 16384 + 16 * (14 + 20 + 8 + 12 + 4) + 16 + 4   # its bytes on the link: headers, ICRC, RETH, immediate


@dataclass(frozen=True)
class Row:
    """Seconds, of one number of ranks."""

    world: int
    switch: list[float]
    hosts: list[float]
    unlimited_switch: float
    unlimited_hosts: float


def measure(lab: Lab, ring: Ring, way: str, size: int, options: str) -> float:
    jobs = start_job(lab, f"--size {size} {options}", ring)
    seconds = finish_job(jobs)
    for job in jobs:
        expect(f"algorithm={way} " in job.output, f"not by way of the {way}: {job.output}")
    return seconds


def measure_world(lab: Lab, ring: Ring, options: argparse.Namespace) -> Row:
    size = options.size * 1024
    unknown = dataclasses.replace(ring, ring_id=UNKNOWN_RING + ring.ring_id)
    # What queues before a slow port must not look like a loss.
    patient = "--ack-timeout-ms 8000 --timeout 120"
    on_hosts = f"{patient} --fallback ring"
    row = Row(len(ring.guests), [], [], measure(lab, ring, "switch", size, patient),
              measure(lab, unknown, "ring", size, on_hosts))
    for guest in lab.guests:
        guest.limit_rate(options.rate)
    for _ in range(options.runs):  # in turn, so that both meet the same weather
        row.switch.append(measure(lab, ring, "switch", size, patient))
        row.hosts.append(measure(lab, unknown, "ring", size, on_hosts))
    lab.reset()
    print(row, flush=True)
    return row


def link_seconds(options: argparse.Namespace) -> float:
    """What a port needs for the tensor once, in whole messages' frames, acknowledgements not counted."""
    return options.size * 1024 / PAYLOAD * FRAMES * 8 / (options.rate * 1e6)


def page(rows: list[Row], options: argparse.Namespace, command: str) -> str:
    once = link_seconds(options)
    table = "\n".join(line(row, once) for row in rows)
    return f"""<!-- SPDX-License-Identifier: BSD-3-Clause -->
# The claim in numbers

Made by `{command}` on {date.today().isoformat()}:
emulated guests (QEMU TCG; {os.cpu_count()} CPU cores for all of them and Weir), load average {os.getloadavg()[2]:.1f}
over the last 15 minutes, soft-RoCE, path MTU 1024, messages of 16 packets, window 4. Every guest sends at
{options.rate:g} Mbit/s at most (`tc tbf`). An all-reduce of {options.size} KiB of f32, sum, every element checked; median of
{options.runs} jobs each, taken in turn; a job's time is its slowest rank's.

| ranks n | switch, s | hosts, s | hosts / switch | this fallback's theory, n-1 | ring theory, 2(n-1)/n |\
 switch / link time | hosts / (n-1) link times | switch, hosts without limit, s |
|---|---|---|---|---|---|---|---|---|
{table}

- **switch**: Weir aggregates. Each link carries the tensor S once in each direction, whatever n is.
- **hosts**: the same workers, verbs, links and Weir, but a ring that Weir does not know: it forwards, and the workers'
  `--fallback ring` reduces.
- **Which theory.** Weir's fallback is *not* the ring all-reduce that the literature compares with. That one
  (reduce-scatter, then all-gather) carries 2(n-1)/n S per link. The fallback sends everybody's tensor round the ring
  whole and folds at every rank in rank order, so that its bits are the switch's: (n-1) S per link. For two ranks they
  are equal; from three on **hosts / switch** must be read beside n-1. It says nothing about Weir against a ring of
  2(n-1)/n, which has not been measured; against such a one the gain could be 2(n-1)/n at the most, 1.67 for six ranks.
- **Link time** is what a port needs for S in frames, {once:.2f} s: 1024 bytes of payload in 1082 on the link, 40 bytes
  of INA header in 16384, acknowledgements not counted. The two columns with it say how near each way comes to its own
  bound, 1.00. Above it are start and end of the pipeline, acknowledgements and the emulation; below it, by up to
  {BURST_BYTES / (options.size * 1024):.1%}, only the burst of {BURST_BYTES} bytes with which a rested port begins.
- **hosts / switch above n-1** is not Weir's merit: then the emulation has slowed the hosts' way more than the
  switch's, as the two columns of link times show. The figures in brackets are the fastest and the slowest job.
- **without limit**, one job each: what the emulation could do at the time. Where it is not well below the figures with
  the limit, CPUs and not ports were the bottleneck, and the row proves nothing. The rate was chosen for this: emulated
  guests that share {os.cpu_count()} cores do not reach the tens of Mbit/s that one would like to limit them to.
"""


def line(row: Row, once: float) -> str:
    n = row.world
    switch, hosts = statistics.median(row.switch), statistics.median(row.hosts)
    ratios = (hosts / switch, n - 1, 2 * (n - 1) / n, switch / once, hosts / once / (n - 1))
    cells = [str(n), spread(row.switch), spread(row.hosts), *(f"{ratio:.2f}" for ratio in ratios),
             f"{row.unlimited_switch:.2f}, {row.unlimited_hosts:.2f}"]
    return f"| {' | '.join(cells)} |"


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description="All-reduce with and without the switch, on rate-limited ports.")
    parser.add_argument("--rate", type=float, default=2.0, metavar="MBIT", help="of each port (default 2)")
    parser.add_argument("--size", type=int, default=256, metavar="KIB", help="of the tensor (default 256)")
    parser.add_argument("--runs", type=int, default=3, help="jobs of which the median is taken (default 3)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "numbers.md")
    options = parser.parse_args()
    command = " ".join(["tests/guest/measure.py", *sys.argv[1:]])
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"weir-guest-{os.getpid()}-") as logs:
        with Lab(SETUP, "weir", build_image([REPOSITORY / WORKER]), Path(logs)) as lab:
            rows = [measure_world(lab, ring, options) for ring in RINGS]
    options.output.write_text(page(rows, options, command))
    print(f"{options.output} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
