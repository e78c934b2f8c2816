# SPDX-License-Identifier: BSD-3-Clause
"""The interposer for MPI programs, with Open MPI and with MPICH: programs that know nothing of Weir, and their bad days."""
from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Collection
from pathlib import Path

from hosts import RANKS
from lab import Lab, smoke_test
from mpi_jobs import BOTH, MODULE, MPICH, OPEN_MPI, Mpi, MpiFabric, build_without_blanks, working_ring
from page_commands import first_sum
from test_control import said
from test_held_rings import wait_for_rings
from test_worker import Process
from torch_ranks import PYTHON
from weir import Skipped, expect, run_to_end, wait_for

# Calls of rank 0 by Weir and by MPI, counted by hand in mpi_calls.c.
CALLS = {"MPI_Allreduce": (73, 8), "MPI_Iallreduce": (25, 8), "MPI_Allreduce_init": (9, 0), "MPI_Reduce": (42, 10),
         "MPI_Bcast": (12, 0), "MPI_Ibcast": (12, 4), "MPI_Bcast_init": (9, 0), "MPI_Allgather": (18, 0),
         "MPI_Reduce_scatter_block": (50, 0), "MPI_Reduce_scatter": (24, 24), "MPI_Barrier": (2, 0)}


def counted_calls(output: str) -> dict[str, tuple[int, int]]:
    rows = re.findall(r"^weir_mpi:   (MPI_\w+): (\d+) by Weir \(\d+ bytes\), (\d+) by MPI", output, re.MULTILINE)
    return {name: (int(weir), int(mpi)) for name, weir, mpi in rows}


def run_calls(lab: Lab, mpi: Mpi, due: dict[str, tuple[int, int]], **variables: str) -> None:
    fabric = MpiFabric(lab)
    program = fabric.compile(mpi, "mpi_calls.c")
    status, output = fabric.start(mpi, [program, "threads"] if mpi == MPICH else [program], **variables).wait()
    expect(status == 0 and output.count("mpi_calls: exact") == RANKS, f"{status}, {output}")
    expect(counted_calls(output) == due, f"by Weir and by MPI: {counted_calls(output)}; due: {due}")
    wait_for_rings(lab, 7)
    fabric.switch.stop()


@smoke_test("mpi-calls-of-open-mpi")
def calls_of_open_mpi(lab: Lab) -> None:
    """Each call, in each way to wait for it, of all ranks, of all in another order, and of halves; where each went."""
    run_calls(lab, OPEN_MPI, CALLS)


@smoke_test("mpi-calls-of-mpich")
def calls_of_mpich(lab: Lab) -> None:
    """The same; each communicator has its ring from the beginning, so that no call must do without."""
    run_calls(lab, MPICH, CALLS | {"MPI_Iallreduce": (33, 0), "MPI_Ibcast": (16, 0)}, WEIR_FORMING="eager")


@smoke_test("mpi-operators")
def operators(lab: Lab) -> None:
    """MPI_MAXLOC, MPI_MINLOC and complex products by operators have MPI's own results; without the variable they are MPI's."""
    fabric = MpiFabric(lab)
    for mpi in BOTH:
        program = fabric.compile(mpi, "mpi_operators.c")
        for given, words, calls in (("1", (), 22), ("0", ("by-mpi",), 0))[:2 if mpi == MPICH else 1]:
            status, output = fabric.start(mpi, [program, *words], WEIR_OPERATORS=given, WEIR_THRESHOLD="1").wait()
            expect(status == 0 and output.count("mpi_operators: exact") == RANKS, f"{status}, {output}")
            expect(counted_calls(output)["MPI_Allreduce"][0] == calls, output)
            expect(counted_calls(output)["MPI_Reduce_scatter_block"][0] == (10 if calls else 0), output)
    fabric.switch.stop()


@smoke_test("mpi-shared-nics")
def shared_nics(lab: Lab) -> None:
    """Two ranks behind each of two NICs: all calls are exact; the communicator of two ranks of one NIC goes to MPI."""
    fabric = MpiFabric(lab)

    def run(*command: str | Path) -> tuple[int, str]:
        first, second = (["env", f"WEIR_DEVICE=host{nic}", f"WEIR_IP=10.77.0.{nic + 100}", *command] for nic in range(2))
        return fabric.start_plainly(MPICH, [*first, ":", "-n", "2", *second], fabric.variables(MPICH), ranks=2).wait()

    status, output = run(fabric.compile(MPICH, "mpi_calls.c"))
    expect(status == 0 and output.count("mpi_calls: exact") == RANKS and counted_calls(output) == CALLS, f"{status}, {output}")
    status, output = run(fabric.compile(MPICH, "mpi_days.c"), "halves")
    expect(status == 0 and counted_calls(output) == {"MPI_Allreduce": (1, 1)}, f"{status}, {output}")
    expect("1 all ranks behind one NIC" in output and "MPI_COMM_WORLD: 4 ranks by switch, ring " in output, output)
    fabric.switch.stop()


def ranks_of(program: Path) -> list[int]:
    """The processes that run it."""
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            if link.readlink() == program:
                found.append(int(link.parent.name))
    return found


def expect_end(job: Process, program: Path, *due: str, tellers: Collection[int] = (RANKS,)) -> None:
    """The job has ended with an error that so many ranks tell, and nothing else is told; no process is left of it."""
    status, output = job.wait()
    told = [line for line in output.splitlines() if line.startswith("mpi_days: ")]
    are_right = all(text in line for line in told for text in due)
    expect(status != 0 and are_right and len(told) in tellers, f"{status}; due from {tellers} ranks: {due}:\n{output[-3000:]}")
    wait_for(lambda: not ranks_of(program), 20, "processes are left")


@smoke_test("mpi-days")
def bad_days(lab: Lab) -> None:
    """A rank is killed, or its program ends, or its call is another; a ring is withdrawn, the switch stopped in the middle of a job:
    each rank tells the cause, nothing stays."""
    fabric = MpiFabric(lab)
    programs = {mpi: fabric.compile(mpi, "mpi_days.c") for mpi in BOTH}
    for mpi, program in programs.items():
        job = fabric.start(mpi, [program, "loop"])
        working_ring(lab, fabric)
        os.kill(max(ranks_of(program)), signal.SIGKILL)
        # The launcher ends the others, maybe before they have told.
        expect_end(job, program, "peer_died: rank ", tellers=range(RANKS))
        wait_for_rings(lab, 7)
    program = programs[MPICH]
    expect_end(fabric.start(MPICH, [program, "leave"]), program, "peer_died: rank 3", tellers=range(RANKS))
    wait_for_rings(lab, 7)
    expect_end(fabric.start(MPICH, [program, "unlike"]), program, "MPI_Allreduce of MPI_COMM_WORLD: mismatch: ", "rank 3 calls all-reduce of 2048 f32", "4096 f32")
    job = fabric.start(MPICH, [program, "loop"])
    ring = working_ring(lab, fabric)
    said(lab, f"withdraw ring {ring}")
    expect_end(job, program, "MPI_Allreduce of MPI_COMM_WORLD: aborted: ", f"ring {ring} was withdrawn")
    job = fabric.start(MPICH, [program, "start"], WEIR_RINGS="offered")
    working_ring(lab, fabric)
    fabric.switch.stop()
    expect_end(job, program, "MPI_Iallreduce of MPI_COMM_WORLD: aborted: ", "the switch stops")
    fabric.start_switch()
    wait_for_rings(lab, 7)
    status, output = fabric.start(MPICH, [program, "many"]).wait()
    expect(status == 0, f"after the restart: {status}, {output}")


@smoke_test("mpi-messages-before-a-barrier")
def messages_before_a_barrier(lab: Lab) -> None:
    """Whoever has passed a barrier of Weir's finds what was sent before it at the first look, as programs are used to."""
    fabric = MpiFabric(lab, rings=1)
    program = fabric.compile(MPICH, "mpi_days.c")
    status, output = fabric.start(MPICH, [program, "probe"]).wait()
    expect(status == 0 and counted_calls(output) == {"MPI_Allreduce": (1, 0), "MPI_Barrier": (200, 0)}, f"{status}, {output}")
    fabric.switch.stop()


@smoke_test("mpi-without-rings")
def without_rings(lab: Lab) -> None:
    """Eight communicators where there is room for four: the others' calls go to MPI, by libweir, or fail, as the user chose."""
    fabric = MpiFabric(lab, rings=4)
    program = fabric.compile(MPICH, "mpi_days.c")
    why = "there are 5 rings, as many as the switch has room for"
    for fallback, by_mpi, by_hosts in (("mpi", 4, 0), ("ring", 0, 4)):
        status, output = fabric.start(MPICH, [program, "many"], WEIR_FALLBACK=fallback).wait()
        expect(status == 0 and counted_calls(output) == {"MPI_Allreduce": (8 - by_mpi, by_mpi)}, f"{fallback}: {status}, {output}")
        expect(output.count(" 4 ranks by ring: ") == by_hosts, f"{fallback}: {output}")
        expect(output.count("(said once; ") == (1 if by_mpi else 0), f"{fallback}: {output}")
        wait_for_rings(lab, 7)
    job = fabric.start(MPICH, [program, "many"], WEIR_FALLBACK="none")
    expect_end(job, program, "MPI_Allreduce of a communicator of 4 ranks: not_aggregated: ")
    wait_for_rings(lab, 7)
    status, output = fabric.start(MPICH, [program, "many"], WEIR_SWITCH="", WEIR_RINGS="7").wait()
    expect(status == 0, f"{status}, {output}")
    fabric.switch.stop()


@smoke_test("mpi-mistakes")
def mistakes(lab: Lab) -> None:
    """Wrong settings, the library for another MPI and a rank without a device end the job with a sentence; a file of settings does."""
    fabric = MpiFabric(lab, rings=1)
    program = fabric.compile(MPICH, "mpi_days.c")
    usual = fabric.variables(MPICH)
    module = usual.pop("WEIR_SWITCH_MODULE")  # the library's, not the interposer's
    settings = {name: value for name, value in usual.items() if name != "LD_PRELOAD"}
    lines = "# mine\n\n" + "".join(f"{name}={value}\n" for name, value in settings.items())
    preload = {"LD_PRELOAD": usual["LD_PRELOAD"], "WEIR_SWITCH_MODULE": module}

    def run_with(variables: dict[str, str]) -> tuple[int, str]:
        return fabric.start_plainly(MPICH, [program, "many"], variables, ranks=2).wait()

    status, output = run_with(preload | {"WEIR_MPI_CONFIG": str(lab.file("mpi.conf", lines)), "WEIR_THRESHOLD": "1"})
    expect(status == 0 and "WEIR_THRESHOLD is 1 bytes" in output, f"{status}, {output}")
    expect(counted_calls(output) == {"MPI_Allreduce": (1, 7)}, f"one ring has room: {output}")
    wrong = lab.file("wrong.conf", lines + "WEIR_WINDW=8\n")
    for mistake, due in (
            ({"WEIR_MPI_CONFIG": str(wrong)}, f"{wrong}:{lines.count(chr(10)) + 1}: found 'WEIR_WINDW=8'; allowed: NAME=VALUE"),
            (settings | {"WEIR_THRESHOLD": "4k"}, "WEIR_THRESHOLD: found '4k'; allowed: a number from 0 to "),
            (settings | {"WEIR_FALLBACK": "yes"}, "WEIR_FALLBACK: found 'yes'; allowed: mpi, ring, none"),
            (settings | {"WEIR_RINGS": "1,x"}, "WEIR_RINGS: found '1,x'; allowed: numbers from 0 to 4294967295, with commas between them, or offered"),
            (settings | {"WEIR_DEVICE": "host%x"}, "WEIR_DEVICE: found 'host%x'; allowed: after a '%' one of 'r', 'l' and '%'"),
            ({"LD_PRELOAD": str(OPEN_MPI.interposer)}, "the program uses MPICH (")):
        status, output = run_with(preload | mistake)
        expect(status != 0 and "weir_mpi: " in output and due in output, f"{due}: {status}, {output}")
    lone = [":", "-n", "1", "env", "WEIR_DEVICE=", program, "many"]
    status, output = fabric.start_plainly(MPICH, [program, "many", *lone], preload | settings, ranks=1).wait()
    expect(status != 0 and "rank 1: WEIR_DEVICE is not set here, and is on other ranks" in output, f"{status}, {output}")
    status, output = run_with(preload | settings | {"WEIR_DEVICE": "absent%r"})
    expect(status == 0 and "goes by MPI: transport_failure: " in output and "interface absent0: not found" in output,
           f"{status}, {output}")
    status, output = run_with(preload | {"WEIR_VERBOSE": "1"})
    expect(status == 0 and "weir_mpi" not in output, f"without a device, everything is MPI's: {status}, {output}")
    fabric.switch.stop()


@smoke_test("mpi-page")
def page(lab: Lab) -> None:
    """What docs/mpi.md tells a newcomer to type ends in a sum that Weir has made."""
    OPEN_MPI.need()
    if run_to_end([PYTHON, "-c", "import mpi4py"]).status != 0:
        raise Skipped(f"{PYTHON} has no mpi4py (Debian's package python3-mpi4py)")
    script = lab.file("first.sh", first_sum("docs/mpi.md", lab.directory / "page", {
        "/usr/lib/x86_64-linux-gnu/weir/": f"{build_without_blanks()}/lib/host/mpi/", "mpirun ": "mpirun.openmpi ", "python3 ": f"{PYTHON} "}))
    status, output = Process(lab, lab.namespace(), ["bash", "-eu", script], WEIR_SWITCH_MODULE=str(MODULE)).wait()
    expect(status == 0 and output.count("10.0") == RANKS, f"{status}, {output}")
    expect(counted_calls(output) == {"MPI_Allreduce": (20, 0)}, output)


@smoke_test("mpi-order")
def order(lab: Lab) -> None:
    """Two communicators that rank 0 uses in another order than the others: every rank is told so."""
    fabric = MpiFabric(lab)
    program = fabric.compile(MPICH, "mpi_days.c")
    job = fabric.start(MPICH, [program, "order"], WEIR_TIMEOUT_MS="5000")
    expect_end(job, program, "wait for each other: rank 0 in MPI_Allreduce of one, rank 1 in MPI_Allreduce of other; right is")
    wait_for_rings(lab, 7)
    fabric.switch.stop()
