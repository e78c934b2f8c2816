# SPDX-License-Identifier: BSD-3-Clause
"""Ranks in Python that use the installed weir_torch, behind cables that lose frames."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cables import LossyCables
from hosts import RANKS, ring_7, ring_ports
from lab import Lab
from netns import KILLED_WITH_US, Namespace
from python_stacks import standing
from weir import BUILD, ROOT, Failed, Skipped, Weir, configuration, expect

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages
TRAIN = ROOT / "docs/examples/train.py"
MASTER_PORT = "7480"  # in a namespace, where nobody else listens


def need_torch() -> None:
    looked = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"  # to import it takes a second
    if subprocess.run([PYTHON, "-c", looked], capture_output=True).returncode != 0:
        raise Skipped(f"{PYTHON} has no torch (Debian's package python3-torch)")


class Rank:
    def __init__(self, number: int, process: subprocess.Popen[str]) -> None:
        self.number, self.process = number, process
        self.job: list[Rank] = []  # all ranks
        self._read: list[str] = []

    def lines(self) -> Iterator[str]:
        """Its output, as it comes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._read.append(line)
            yield line.rstrip("\n")

    def wait(self, seconds: float) -> tuple[int, str]:
        """Status and whole output."""
        try:
            output = self.process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            hung = [rank for rank in self.job if rank.process.poll() is None]
            outputs = "".join(rank.aborted() for rank in hung)
            places = "".join(f"{rank.told_place()}\n" for rank in hung)
            raise Failed(f"rank {self.number} does not end within {seconds} s; who has not:\n{places}{outputs}") from None
        self._read.append(output)
        return self.process.returncode, "".join(self._read)

    def aborted(self) -> str:
        """Ends a rank that hangs. Its threads in the kernel, and its output with Python's stacks."""
        threads = [f"{(task / 'comm').read_text().strip()}: {(task / 'wchan').read_text()}\n"
                   for task in sorted(Path(f"/proc/{self.process.pid}/task").iterdir())]
        self.process.send_signal(signal.SIGABRT)
        before, output = "".join(self._read), self.process.communicate(timeout=10)[0]
        self._read.append(output)
        return f"--- rank {self.number}\n{''.join(threads)}{before}{output[-3000:]}\n"

    def told_place(self) -> str:
        """Where a rank stood that has ended and printed its stacks."""
        return f"rank {self.number}: status {self.process.returncode}: {standing(''.join(self._read).splitlines())}"

    def report(self, seconds: float) -> dict[str, Any]:
        """What docs/examples/train.py prints last."""
        status, output = self.wait(seconds)
        expect(status == 0, f"rank {self.number}: status {status}: {output[-3000:]}")
        return dict(json.loads(output.splitlines()[-1]))

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


@cache
def installed_folder() -> tempfile.TemporaryDirectory[str]:
    """The build, installed once for all tests."""
    folder = tempfile.TemporaryDirectory(prefix="weir-smoke-installed-", dir="/var/tmp")
    done = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--tags", "host", "--destdir", folder.name],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect(done.returncode == 0, f"meson install: {done.stdout}{done.stderr}")
    return folder


def installed() -> dict[str, str]:
    """Where Python and the loader find it."""
    root = Path(installed_folder().name)
    return {"PYTHONPATH": str(only(root, "weir_torch").parent), "LD_LIBRARY_PATH": str(only(root, "libweir.so.1").parent)}


class TorchJob:
    """A switch with ring 7, `more_rings` and `more` of a configuration, and a namespace for ranks that reach it by lossy
    cables."""

    def __init__(self, lab: Lab, loss: float, more_rings: str = "", more: str = "", python: str | Path = PYTHON,
                 rate: str = "") -> None:
        self.lab, self.python = lab, python
        self.hosts = self._make_hosts()
        fabric = lab.namespace()
        self.cables = LossyCables(lab.namespace(), loss, rate)
        for rank in range(RANKS):
            self.cables.connect(fabric, f"tap{rank}", self.hosts[rank], f"host{rank}")
        self._fabric = fabric
        self._configuration = configuration(ring_ports(), rings=ring_7(window=8, max_message_bytes=65536) + more_rings) + more
        self.switch: Weir = lab.ready_weir(fabric, self._configuration)

    def _make_hosts(self) -> list[Namespace]:
        """By rank. Here they are one."""
        return [self.lab.namespace()] * RANKS

    def give_addresses(self, bits: int = 32) -> None:
        """To the ranks' interfaces, so that WEIR_IP may be empty."""
        for rank, host in enumerate(self.hosts):
            host.ip(f"address add 10.77.0.{rank + 1}/{bits} dev host{rank}")

    def use_ipv6(self) -> None:
        """On the loopback, by which the ranks meet."""
        with self.hosts[0].entered():
            Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6").write_text("0")

    def restart_switch(self) -> None:
        """It knows nothing of what was before."""
        self.switch.close()
        self.switch = self.lab.ready_weir(self._fabric, self._configuration)

    def start(self, program: Path, *arguments: str, **environment: str) -> list[Rank]:
        return self.start_some(RANKS, program, *arguments, **environment)

    def start_some(self, count: int, *command: str | Path, **environment: str) -> list[Rank]:
        """The first ones, with Python's arguments."""
        ranks = [self._start_rank(rank, command, environment) for rank in range(count)]
        for rank in ranks:
            rank.job = ranks
        return ranks

    def _start_rank(self, rank: int, command: Sequence[str | Path], environment: dict[str, str]) -> Rank:
        own = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": MASTER_PORT,
               "WEIR_DEVICE": f"host{rank}", "WEIR_IP": f"10.77.0.{rank + 1}",
               "WEIR_RINGS": "7", "PYTHONFAULTHANDLER": "1"}
        path = ":".join(filter(None, (installed()["PYTHONPATH"], environment.get("PYTHONPATH"))))
        with self.hosts[rank].entered():
            process = subprocess.Popen([*KILLED_WITH_US, str(self.python), *map(str, command)], text=True, errors="replace",
                                       env=os.environ | installed() | own | environment | {"PYTHONPATH": path}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        started = Rank(rank, process)
        self.lab.on_end(started.kill)
        return started


class TorchHosts(TorchJob):
    """Each rank has a host of its own; they meet through the switch."""

    def _make_hosts(self) -> list[Namespace]:
        return [self.lab.namespace() for _ in range(RANKS)]


def only(root: Path, name: str) -> Path:
    found = sorted(root.rglob(name))
    expect(len(found) == 1, f"found {len(found)} of {name} below {root}; should be 1")
    return found[0]
