#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite with libweir_mpi.so and without it, on Open MPI and on MPICH.

    tests/mpi4py.py [openmpi|mpich ...] [-- OPTION OF ITS runtests.py ...]

Three ranks, each call through the switch that can be. What passes without Weir on all ranks must pass with it: each MPI is one
test. tools/prepare test has the sources in build/mpi4py; for MPICH they are compiled there, in a minute.
"""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/smoke"), str(ROOT / "tests/support")]

from lab import Lab  # noqa: E402
from mpi4py_tests import EVERY_CALL, FOR_MPICH, SOURCES, Verdicts, make_tests, need_sources  # noqa: E402
from mpi_jobs import BOTH, MPICH, Mpi, MpiFabric  # noqa: E402
from test_mpi import counted_calls  # noqa: E402
from torch_ranks import PYTHON  # noqa: E402
from weir import Failed, Skipped, expect  # noqa: E402

RANKS = 3
LONGEST_S = 3600.0  # ranks that spin share two processors with the switch


def make_for_mpich() -> None:
    if FOR_MPICH.exists():
        return
    print("mpi4py: compiling it for MPICH", flush=True)
    new = SOURCES / "mpich.new"
    made = subprocess.run([PYTHON, "setup.py", "--quiet", "build", f"--build-lib={new}", "--mpicc=mpicc.mpich"], cwd=SOURCES,
                          env=os.environ | {"CFLAGS": "-O0 -g0"}, capture_output=True, text=True)
    expect(any(new.glob("mpi4py/MPI.*.so")), f"mpi4py is not compiled for MPICH: status {made.returncode}: {made.stdout}{made.stderr}")
    new.rename(FOR_MPICH)


def judge(lab: Lab, mpi: Mpi, words: list[str]) -> None:
    mpi.need()
    need_sources()
    if mpi == MPICH:
        make_for_mpich()
    fabric = MpiFabric(lab, rings=16)
    verdicts: list[Verdicts] = []
    statuses: list[int] = []
    for about, variables in (("without Weir", {}), ("with Weir", fabric.variables(mpi) | EVERY_CALL)):
        begin = time.monotonic()
        found, status, output = make_tests(lab, fabric, mpi, RANKS, words, variables, LONGEST_S)
        verdicts.append(found)
        statuses.append(status)
        print(f"mpi4py: {mpi.name} {about}: {len(found.passed())} tests pass on each rank, {time.monotonic() - begin:.0f} s", flush=True)
    lost = verdicts[0].passed() - verdicts[1].passed()
    expect(not lost, f"{len(lost)} pass without Weir alone: {sorted(lost)}")
    expect(statuses[0] != 0 or statuses[1] == 0, f"the launcher's status without Weir and with it: {statuses}")
    calls = counted_calls(output)
    expect(sum(by_weir for by_weir, _ in calls.values()) > 0, f"none by Weir: {calls}")
    print(f"mpi4py: {mpi.name}: calls of rank 0 by Weir and by MPI: {calls}", flush=True)
    fabric.switch.stop()


def verdict_of(mpi: Mpi, words: list[str]) -> str:
    lab = Lab(f"mpi4py-{mpi.name}")
    try:
        judge(lab, mpi, words)
    except (Failed, Skipped) as error:
        print(f"mpi4py: {mpi.name}: {error}", flush=True)
        return "skipped" if isinstance(error, Skipped) else "failed"
    finally:
        lab.close()
    return "passed"


def main() -> int:
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    unknown = set(given[:at]) - {mpi.name for mpi in BOTH}
    if unknown:
        print(f"mpi4py: found {', '.join(sorted(unknown))}; allowed: {', '.join(mpi.name for mpi in BOTH)}", file=sys.stderr)
        return 2
    verdicts = [verdict_of(mpi, given[at + 1:]) for mpi in BOTH if mpi.name in given[:at] or at == 0]
    print("mpi4py: " + ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("passed", "failed", "skipped")))
    return 1 if "failed" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
