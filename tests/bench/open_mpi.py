# SPDX-License-Identifier: BSD-3-Clause
"""All-reduces by Open MPI over loopback TCP, and by Weir's hosts through the switch over shared memory."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from comparison import Missing, Options, Pair, need, report, tell_progress
from rounds import Parameters

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import demonstrate  # noqa: E402

ABOUT = "all-reduce"
RANKS = 2
SIZES = [8, 1024, 131072, 16777216]  # bytes, as weir-worker's sweep by FACTOR makes them
FACTOR = 128
WARM_UP = 5
SOURCE = Path(__file__).with_name("open_mpi_rank.c")
# Open MPI listens on every address. In a network namespace of its own there is none but loopback's.
LOOPBACK_ONLY = ["sh", "-ec", 'ip link set lo up; exec "$@"', "sh"]
# Nothing but TCP between the ranks, by loopback; the same freedom on the CPUs as Weir's processes have.
MPI_OPTIONS = ["--allow-run-as-root", "--bind-to", "none", "--host", f"localhost:{RANKS}", "--mca", "plm", "isolated",
               "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo",
               "--mca", "oob_tcp_if_include", "lo"]
TIMEOUT_S = 120


def in_a_namespace() -> list[str]:
    """What a command is put after. Raises Missing."""
    unshare = [need("unshare", "util-linux"), "--net"]
    unshare += [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    need("ip", "iproute2")
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        raise Missing("this process may make no network namespace, and Open MPI would listen on every address")
    return [*unshare, *LOOPBACK_ONLY]


def calls_of(options: Options) -> int:
    """The shortest counts: where CPUs are shared with other work, it is the one that was disturbed least."""
    return 5 if options.is_quick else 50


class OpenMpi:
    def __init__(self, folder: Path) -> None:
        launcher, compiler = need("mpirun", "openmpi-bin"), need("mpicc", "libopenmpi-dev")
        self._command = [*in_a_namespace(), launcher, *MPI_OPTIONS, "-np", str(RANKS)]
        self._program = folder / "open_mpi_rank"
        subprocess.run([compiler, "-O3", "-o", self._program, SOURCE, "-lm"], check=True)

    def shortest(self, options: Options) -> dict[int, float]:
        """Microseconds of the shortest call of each size."""
        command = [*self._command, str(self._program), str(calls_of(options)), str(WARM_UP), *map(str, SIZES)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                              timeout=TIMEOUT_S)
        return {int(size): float(time) for size, time in map(str.split, done.stdout.splitlines())}


def job() -> argparse.Namespace:
    """The largest frames and the longest messages, as TCP over loopback has them."""
    return argparse.Namespace(ranks=RANKS, mtu=4096, window=8, message_bytes=65536, timeout=TIMEOUT_S)


def shortest_of_weir(build: Path, folder: Path, options: Options) -> dict[int, float]:
    """The same through the switch."""
    weir = demonstrate.start_configured(build / "app/weir", demonstrate.configuration(job(), folder), folder)
    rendezvous = f"127.0.0.1:{demonstrate.free_port()}"
    sweep = ["--begin", str(SIZES[0]), "--end", str(SIZES[-1]), "--factor", str(FACTOR), "--in-place",
             "--warm-up", str(WARM_UP), "--iterations", str(calls_of(options))]
    workers: list[demonstrate.Process] = []
    try:
        for rank in range(RANKS):
            command = demonstrate.rank_command(job(), folder, rank, rendezvous, build / "app/weir-worker")
            workers.append(demonstrate.Process(f"worker{rank}", [*command, *sweep], folder))
        for worker in workers:
            if worker.wait(TIMEOUT_S) != 0:
                raise OSError(worker.ending())
    finally:
        for process in [*workers, weir]:
            process.kill()
    rows = json.loads((folder / "worker0.json").read_text())["rows"]
    return {row["bytes"]: row["in_place"]["min_us"] for row in rows}


def case_of(size: int) -> Parameters:
    return {"about": ABOUT, "rival": "Open MPI", "ranks": RANKS, "bytes": size}


def measure(build: Path, options: Options) -> None:
    sizes = [size for size in SIZES if options.wants(case_of(size))]
    if not sizes:
        return
    folder = demonstrate.make_folder()
    try:
        open_mpi = OpenMpi(folder)
        for round_number in range(options.rounds):
            tell_progress(ABOUT, round_number, options)
            weir, rival = shortest_of_weir(build, folder, options), open_mpi.shortest(options)
            report((Pair(case_of(size), weir[size], rival[size], "us") for size in sizes), round_number)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
