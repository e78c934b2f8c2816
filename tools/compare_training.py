#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small transformer on four ranks, whose gradients Weir, Gloo and Open MPI add up in turn, over the same cables.

The cables have a rate, each way. They end in the same switch, which is an Ethernet switch for Gloo and Open MPI. A fourth run adds
up nothing: what its steps take is computing, and the rest of the others' steps is communication. Open MPI's ranks look for packets
all the time, which costs where there are fewer processors than ranks. Needs root, Debian's
python3-torch, and for Open MPI openmpi-bin and python3-mpi4py. Prints a table; the last line is "demo: OK" or what went wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests/smoke"), str(ROOT / "tests/support"), str(ROOT / "tests/bench"), str(ROOT / "tools")]
os.environ.setdefault("WEIR_BUILD", "build-demo")  # before its modules are read

from demonstrate_training import give_up  # noqa: E402
from hosts import RANKS  # noqa: E402
from lab import Lab  # noqa: E402
from mpi_hosts import run_by_mpi  # noqa: E402
from output import end_with  # noqa: E402
from torch_ranks import MASTER_PORT, PYTHON, TorchHosts, need_torch  # noqa: E402
from training_picture import picture  # noqa: E402
from weir import Failed, Skipped, expect  # noqa: E402

RANK = ROOT / "tools/comparison_rank.py"
TEXT = sorted((ROOT / "docs").glob("*.md"))  # this repository's pages
WAYS = {"weir": "Weir", "gloo": "Gloo", "openmpi": "Open MPI"}
LOSS_DIFFERENCE = 0.05  # they add up in other orders


@dataclass(frozen=True)
class Training:
    """Seconds since the start, and the loss, at the end of each step."""

    steps: list[tuple[float, float]]
    sent_bytes: int  # by rank 0, frames whole
    gradient_bytes: int

    @property
    def sent_share(self) -> float:
        """What rank 0 sends in a step, over the gradients."""
        return self.sent_bytes / len(self.steps) / self.gradient_bytes

    @property
    def step_ms(self) -> float:
        """The median."""
        ends = [0.0, *(end for end, _ in self.steps)]
        return 1000 * statistics.median(end - begin for begin, end in zip(ends, ends[1:], strict=False))


class Comparison(TorchHosts):
    """Hosts of their own for the ranks, at cables of one rate."""

    def __init__(self, lab: Lab, rate_mbit: int) -> None:
        super().__init__(lab, loss=0, rate=f"{rate_mbit}mbit")
        self.give_addresses(bits=24)

    def train(self, by: str, steps: int, seconds: float) -> Training:
        arguments = ["--by", by, "--steps", str(steps), *map(str, TEXT)]
        return self._by_mpi(arguments, seconds) if by == "openmpi" else self._by_torch(arguments, seconds)

    def _by_torch(self, arguments: list[str], seconds: float) -> Training:
        ranks = self.start(RANK, *arguments, MASTER_ADDR="10.77.0.1")
        ended = [rank.wait(seconds) for rank in ranks]
        for rank, (status, output) in zip(ranks, ended, strict=True):
            expect(status == 0, f"rank {rank.number}: status {status}: {output[-3000:]}")
        return training_of(ended[0][1])

    def _by_mpi(self, arguments: list[str], seconds: float) -> Training:
        own = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": MASTER_PORT}
        output = run_by_mpi(self.lab, self.hosts, [PYTHON, RANK, *arguments], own, seconds)
        return training_of(output)


def training_of(output: str) -> Training:
    found = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    return Training([(end, loss) for end, loss, _ in found["steps"]], found["steps"][-1][2], found["gradient_bytes"])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", action="store_true", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--compare", action="store_true", required=True, help="this demonstration")
    parser.add_argument("--steps", type=int, default=20, help="of each training (default 20)")
    parser.add_argument("--rate", type=int, default=25, metavar="MBIT", help="of each cable, 10^6 bits a second (default 25)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="an SVG of the loss and the steps")
    parser.add_argument("--timeout", type=int, default=300, help="seconds until the demo gives up (default 300)")
    options = parser.parse_args()
    for name, value in (("--steps", options.steps), ("--rate", options.rate)):
        if value < 1:
            parser.error(f"{name}: found {value}; allowed: 1 and more")
    return options


def available() -> list[str]:
    """Who can add up here."""
    has_mpi4py = subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True).returncode == 0
    if has_mpi4py and shutil.which("mpirun.openmpi"):
        return list(WAYS)
    print("demo: Open MPI is left out: openmpi-bin or python3-mpi4py is missing", flush=True)
    return [way for way in WAYS if way != "openmpi"]


def show(trainings: dict[str, Training], computing: Training, rate_mbit: int) -> None:
    link_ms = computing.gradient_bytes * 8 / rate_mbit / 1000
    print(f"\n  the gradients, {computing.gradient_bytes / 1e6:.2f} MB, occupy a cable for {link_ms:.0f} ms; a ring sends "
          f"{2 * (RANKS - 1) / RANKS:.2f} times as much\n  computing alone: {computing.step_ms:.0f} ms a step\n\n"
          f"  {'':10}{'ms a step':>10}{'communication':>16}{'over Weir':>12}{'sent / gradients':>18}{'last loss':>11}")
    ours = trainings["weir"].step_ms - computing.step_ms
    for way, training in trainings.items():
        rest = training.step_ms - computing.step_ms
        print(f"  {WAYS[way]:10}{training.step_ms:10.0f}{rest:9.0f} ms {100 * rest / training.step_ms:2.0f} %{rest / ours:12.2f}"
              f"{training.sent_share:18.2f}{training.steps[-1][1]:11.3f}")


def compare(options: argparse.Namespace, lab: Lab) -> None:
    job = Comparison(lab, options.rate)
    print(f"demo: {RANKS} ranks train a transformer over cables of {options.rate} Mbit/s each way", flush=True)
    computing = job.train("alone", options.steps, options.timeout)
    trainings = {}
    for way in available():
        trainings[way] = job.train(way, options.steps, options.timeout)
        print(f"  {WAYS[way]}: {options.steps} steps in {trainings[way].steps[-1][0]:.1f} s", flush=True)
    job.switch.stop()
    show(trainings, computing, options.rate)
    losses = [training.steps[-1][1] for training in trainings.values()]
    expect(max(losses) - min(losses) < LOSS_DIFFERENCE, f"the losses differ: {losses}")
    if options.picture:
        title = f"A transformer on {RANKS} ranks, cables of {options.rate} Mbit/s, {computing.gradient_bytes / 1e6:.1f} MB of gradients"
        options.picture.write_text(picture(title, {WAYS[way]: training.steps for way, training in trainings.items()},
                                           {WAYS[way]: training.step_ms for way, training in trainings.items()}, computing.step_ms))
        print(f"\n  {options.picture}")


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
        compare(options, lab)
    except (Failed, Skipped) as problem:
        print(f"\ndemo: FAILED: {problem}", flush=True)
        return 1
    finally:
        signal.alarm(0)
        lab.close()
    print("demo: OK", flush=True)
    return 0


if __name__ == "__main__":
    end_with("tools/demo --training --compare", main)
