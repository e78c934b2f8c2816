# SPDX-License-Identifier: BSD-3-Clause
"""A part of mpi4py's own tests through Weir; `tests/run.py mpi4py` makes all of them."""
from __future__ import annotations

from lab import Lab, smoke_test
from mpi4py_tests import EVERY_CALL, make_tests, need_sources
from mpi_jobs import OPEN_MPI, MpiFabric
from test_held_rings import wait_for_rings
from test_mpi import counted_calls
from weir import expect

CHOSEN = ("--include=test_cco_buf", "--include=test_cco_vec", "--include=test_comm$", "-k", "World.")
RANKS = 2  # more wait for one another, on two processors
LEAST_TESTS, LEAST_CALLS = 50, 2000
BY_WEIR = ("MPI_Allreduce", "MPI_Reduce", "MPI_Bcast", "MPI_Allgather", "MPI_Reduce_scatter_block")


@smoke_test("mpi4py")
def tests_of_mpi4py(lab: Lab) -> None:
    """Its collectives and its communicators, with each call through the switch that can be."""
    OPEN_MPI.need()
    need_sources()
    fabric = MpiFabric(lab, rings=16)
    verdicts, status, output = make_tests(lab, fabric, OPEN_MPI, RANKS, CHOSEN, fabric.variables(OPEN_MPI) | EVERY_CALL, 80)
    made = verdicts.made()
    expect(status == 0 and len(made) >= LEAST_TESTS and verdicts.passed() == made,
           f"status {status}, {len(made)} tests; not passed: {made - verdicts.passed()}")
    calls = counted_calls(output)
    expect(all(calls[name][0] > 0 for name in BY_WEIR) and sum(by_weir for by_weir, _ in calls.values()) >= LEAST_CALLS, f"{calls}")
    wait_for_rings(lab, 7)
    fabric.switch.stop()
