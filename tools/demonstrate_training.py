#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small net with PyTorch on four ranks, whose gradients are added up in the switch.

The ranks run docs/examples/train.py on the installed library, in network namespaces. Their cables lose frames, and one
rank pauses now and then. Needs root and Debian's python3-torch. Prints the loss, the share of time in all-reduce, the
switch's own table and, last, "demo: OK" or what went wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests/smoke"), str(ROOT / "tests/support")]
os.environ.setdefault("WEIR_BUILD", "build-demo")  # before its modules are read

from hosts import RANKS  # noqa: E402
from lab import Lab  # noqa: E402
from output import end_with  # noqa: E402
from torch_ranks import TRAIN, Rank, TorchJob, need_torch  # noqa: E402
from weir import Failed, Skipped, expect  # noqa: E402

STRAGGLER = 3
LINES = 15  # of the loss
BAR = 50
STEP = re.compile(r"^step (\d+) of \d+: loss ([\d.]+)$")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", action="store_true", required=True, help="this demonstration")
    parser.add_argument("--steps", type=int, default=60, help="of the training (default 60)")
    parser.add_argument("--loss", type=float, default=0.001,
                        help="share of frames that the cables lose, 0 .. 0.05 (default 0.001)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds until the demo gives up (default 300)")
    options = parser.parse_args()
    if not 0 <= options.loss <= 0.05:
        parser.error(f"--loss: found {options.loss}; allowed: 0 .. 0.05")
    if options.steps < 1:
        parser.error(f"--steps: found {options.steps}; allowed: 1 and more")
    return options


def give_up(_: int, __: FrameType | None) -> None:
    raise Failed("not done in time (--timeout)")


def show_loss(rank: Rank, steps: int) -> None:
    """A line with a bar for some of the steps, as they come."""
    highest = 0.0
    for line in rank.lines():
        if (found := STEP.match(line)) is None:
            continue
        step, loss = int(found[1]), float(found[2])
        highest = max(highest, loss)
        if step == 1 or step == steps or step % max(1, steps // LINES) == 0:
            print(f"  step {step:4d}  loss {loss:7.4f}  {'#' * round(BAR * loss / highest)}", flush=True)


def show_ranks(reports: list[dict[str, Any]]) -> None:
    for report in reports:
        share = 100 * report["seconds"] / report["training_seconds"]
        print(f"  rank {report['rank']}: {report['training_seconds']:.2f} s, {share:.0f} % of them in all-reduce "
              f"({report['calls']} calls, {report['bytes'] / 1e6:.1f} MB, waits for the slowest rank included), "
              f"{report['retransmitted_packets']} packets repeated, algorithm: {report['algorithm']}")
    hashes = {report["parameters"] for report in reports}
    expect(len(hashes) == 1, f"the ranks' parameters differ: {sorted(hashes)}")
    print(f"  parameters are equal to the bit on all ranks: sha256 {hashes.pop()[:16]}…")


def ring_table(output: str) -> str:
    """`show ring` as the switch prints it at its end."""
    return re.search(r"^rings\n((?:  .*\n)+)", output, re.MULTILINE)[1]


def demonstrate(options: argparse.Namespace, lab: Lab) -> None:
    job = TorchJob(lab, options.loss)
    print(f"demo: {RANKS} ranks train by DistributedDataParallel through the switch; cables lose {options.loss:g} of their "
          f"frames, rank {STRAGGLER} pauses now and then", flush=True)
    ranks = job.start(TRAIN, "--steps", str(options.steps), "--straggler", str(STRAGGLER))
    show_loss(ranks[0], options.steps)
    print("\nranks")
    show_ranks([rank.report(options.timeout) for rank in ranks])
    print(f"  the cables lost {job.cables.lost()} frames")
    job.switch.stop()
    print(f"\nshow ring\n{ring_table(job.switch.output())}")


def main() -> int:
    options = parse_options()
    if os.geteuid() != 0:
        print("demo: FAILED: network namespaces need root")
        return 1
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(options.timeout)
    lab = Lab("demo")
    try:
        need_torch()
        demonstrate(options, lab)
    except (Failed, Skipped) as problem:
        print(f"\ndemo: FAILED: {problem}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", flush=True)
        return 1
    finally:
        signal.alarm(0)
        lab.close()
    print("demo: OK", flush=True)
    return 0


if __name__ == "__main__":
    end_with("tools/demo --training", main)
