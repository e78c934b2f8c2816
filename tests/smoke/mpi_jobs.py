# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs with the interposer, whose ranks have an interface each and meet by loopback."""
from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hosts import RANKS, ring_7, ring_ports
from lab import Lab
from netns import veth
from test_control import at_socket, socket_of
from test_held_rings import wait_for_chosen_ring
from test_worker import Process
from weir import BUILD, Skipped, Weir, configuration, expect, wait_for

HERE = Path(__file__).parent
MODULE = BUILD / "lib/host/switch_rings/libweir_switch.so"
WINDOW = 4
MESSAGE_BYTES = 16384
PATIENCE_MS = 30000  # ranks that spin may keep the switch from a CPU for seconds


@cache
def build_without_blanks() -> Path:
    """LD_PRELOAD ends a name at a blank, and a clone's folder may have some. A loader takes `$ORIGIN` for the link."""
    folder = Path(tempfile.mkdtemp(prefix="weir-mpi-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, folder)
    (folder / "build").symlink_to(BUILD)
    return folder / "build"


@dataclass(frozen=True)
class Mpi:
    """An implementation: its programs, and what starts ranks on this machine alone, without shared memory."""
    name: str
    compiler: str
    launcher: tuple[str, ...]

    @property
    def interposer(self) -> Path:
        return build_without_blanks() / f"lib/host/mpi/{self.name}/libweir_mpi.so"

    def need(self) -> None:
        for program in (self.compiler, self.launcher[0]):
            if shutil.which(program) is None:
                raise Skipped(f"there is no {program}")
        if not self.interposer.exists():
            raise Skipped(f"this build has no interposer for {self.name}")

    def given(self, variables: dict[str, str]) -> list[str]:
        """The launcher's words for variables of the ranks, which the launcher itself must not have."""
        if self.name == "openmpi":
            return [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        return [word for name, value in variables.items() for word in ("-genv", name, value)]


OPEN_MPI = Mpi("openmpi", "mpicc.openmpi", (
    "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated",
    "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo",
    "--mca", "oob_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"))
MPICH = Mpi("mpich", "mpicc.mpich", ("mpiexec.mpich", "-launcher", "fork", "-iface", "lo"))
BOTH = (OPEN_MPI, MPICH)


def room(lab: Lab, rings: int) -> str:
    """For so many rings of all ranks, beside the configured one."""
    packets = MESSAGE_BYTES // 1024
    frames = rings * (2 * WINDOW * packets * (RANKS - 1) + 4 * RANKS)
    return (f"spare: {{ rings: {rings}, members: {rings * RANKS}, frames: {frames} }}\n"
            f"state_directory: {lab.directory / 'state'}\n")


class MpiFabric:
    """A switch with ring 7 and room for others, and a namespace with an interface for each rank."""

    def __init__(self, lab: Lab, rings: int = 4) -> None:
        self._lab, self._fabric, self.outside = lab, lab.namespace(), lab.namespace()
        for rank in range(RANKS):
            veth(self._fabric, f"tap{rank}", self.outside, f"host{rank}")
        self._config = at_socket(lab, configuration(ring_ports(), rings=ring_7(WINDOW, MESSAGE_BYTES)) + room(lab, rings))
        self.switch = self.start_switch()

    def start_switch(self) -> Weir:
        return self._lab.ready_weir(self._fabric, self._config)

    def compile(self, mpi: Mpi, source: str) -> Path:
        mpi.need()
        program = self._lab.directory / f"{Path(source).stem}_{mpi.name}"
        done = subprocess.run([mpi.compiler, "-O1", "-std=c99", "-o", str(program), str(HERE / source)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        expect(done.returncode == 0, f"{mpi.compiler}: {done.stderr}")
        return program

    def variables(self, mpi: Mpi) -> dict[str, str]:
        """What a user sets, and where this build has its parts."""
        return {"LD_PRELOAD": str(mpi.interposer), "WEIR_DEVICE": "host%r", "WEIR_IP": "10.77.0.10%r",
                "WEIR_SWITCH": f"unix:{socket_of(self._lab)}", "WEIR_SWITCH_MODULE": str(MODULE),
                "WEIR_WINDOW": str(WINDOW), "WEIR_MESSAGE_BYTES": str(MESSAGE_BYTES), "WEIR_VERBOSE": "1",
                "WEIR_TIMEOUT_MS": str(PATIENCE_MS)}

    def start(self, mpi: Mpi, command: Sequence[str | Path], ranks: int = RANKS, **variables: str) -> Process:
        return self.start_plainly(mpi, command, self.variables(mpi) | variables, ranks)

    def start_plainly(self, mpi: Mpi, command: Sequence[str | Path], variables: dict[str, str], ranks: int) -> Process:
        return Process(self._lab, self.outside, [*mpi.launcher, "-n", str(ranks), *mpi.given(variables), *command])


def working_ring(lab: Lab, fabric: MpiFabric) -> int:
    """The ring of the job, once some calls have been made: more than one of 16 KiB has messages."""
    ring = wait_for_chosen_ring(lab)
    wait_for(lambda: dict(fabric.switch.ask(f"/weir/ring,{ring}")["rings"]["0"])["slots_completed"] > 100, 20, "the job does not work")
    return ring
