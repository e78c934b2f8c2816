# SPDX-License-Identifier: BSD-3-Clause
"""A program of MPI with libweir_mpi.so and without it, over the same cables of one rate: four hosts and a switch.

Without it the switch is an Ethernet switch for Open MPI's TCP.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from comparison import Missing, Options, Pair, need, report, tell_progress
from rounds import Parameters

if TYPE_CHECKING:
    from lab import Lab
    from torch_ranks import TorchHosts

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).with_name("mpi_sweep_rank.c")
INTERPOSER = "lib/host/mpi/openmpi/libweir_mpi.so"  # of the build folder
ABOUT = "mpi"
CALLS = ("allreduce", "reduce", "bcast", "allgather")
RANKS = 4
RATE_MBIT = 100  # so little that the cables, and not the processors, are what all wait for
SIZES = (4096, 65536, 1048576)  # bytes: from WEIR_THRESHOLD on
QUICK_SIZES = (65536,)
TIMED, QUICK_TIMED, WARM_UP = 20, 3, 2
TIMEOUT_S = 240.0

Medians = dict[tuple[str, int], float]


def case_of(call: str, size: int) -> Parameters:
    return {"about": ABOUT, "rival": "Open MPI", "call": call, "ranks": RANKS, "mbit": RATE_MBIT, "bytes": size}


def medians_of(output: str) -> Medians:
    """Microseconds, by call and bytes."""
    rows = [line.split() for line in output.splitlines() if line.startswith(CALLS)]
    return {(call, int(size)): float(time) for call, size, time in rows}


class Sweep:
    def __init__(self, lab: Lab, job: TorchHosts, build: Path, options: Options) -> None:
        self._lab, self._job, self._options = lab, job, options
        self._preload = str(build / INTERPOSER)
        self._sizes = QUICK_SIZES if options.is_quick else SIZES
        program = make_program(lab.directory)
        self._command = [program, str(QUICK_TIMED if options.is_quick else TIMED), str(WARM_UP), *map(str, self._sizes)]

    def run(self, variables: dict[str, str]) -> Medians:
        from mpi_hosts import run_by_mpi
        return medians_of(run_by_mpi(self._lab, self._job.hosts, self._command, variables, TIMEOUT_S))

    def round(self, number: int) -> None:
        by_weir = self.run({"LD_PRELOAD": self._preload, "WEIR_DEVICE": "host%r", "WEIR_RINGS": "7", "WEIR_FALLBACK": "none"})
        plain = self.run({})
        cases = [(call, size) for call in CALLS for size in self._sizes if self._options.wants(case_of(call, size))]
        report((Pair(case_of(*case), by_weir[case], plain[case], "us") for case in cases), number)


def make_program(folder: Path) -> Path:
    program = folder / SOURCE.stem
    subprocess.run([need("mpicc.openmpi", "libopenmpi-dev"), "-O2", "-std=c99", "-o", program, SOURCE], check=True)
    return program


def need_interposer(build: Path) -> None:
    """Built, where this build has it."""
    made = subprocess.run([need("ninja", "ninja-build"), "-C", build, "--quiet", INTERPOSER], stdout=sys.stderr)
    if made.returncode != 0:
        raise Missing(f"{build} has no {INTERPOSER} (package libopenmpi-dev, before it was configured)")


def measure(build: Path, options: Options) -> None:
    if not any(options.wants(case_of(call, size)) for call in CALLS for size in SIZES):
        return
    need("mpirun.openmpi", "openmpi-bin")
    need("ip", "iproute2")
    if os.geteuid() != 0:
        raise Missing("network namespaces need root")
    need_interposer(build)
    os.environ["WEIR_BUILD"] = str(build)  # before these modules are read
    sys.path[:0] = [str(ROOT / "tests/smoke"), str(ROOT / "tests/support")]
    from lab import Lab
    from torch_ranks import TorchHosts
    lab = Lab("mpi-sweep")
    try:
        job = TorchHosts(lab, loss=0, rate=f"{RATE_MBIT}mbit")
        job.give_addresses(bits=24)
        sweep = Sweep(lab, job, build, options)
        for number in range(options.rounds):
            tell_progress(ABOUT, number, options)
            sweep.round(number)
        job.switch.stop()
    finally:
        lab.close()
