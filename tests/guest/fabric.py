# SPDX-License-Identifier: BSD-3-Clause
"""The guests' network: a namespace of its own, TAP ports, and the switch or the tree of switches between them.

The namespace has no name. It exists as long as a process in it, and each of these is killed with the process that made
the fabric. So nothing is left behind, even after SIGKILL. No packet can leave the namespace.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from guest import Identity
from switch import Bridge, FabricError, Namespace, Ring, Switch, Weir
from tree import Tree

CAPTURE_BUFFER_KB = 32768


class Capture:
    """tcpdump on one port, one direction."""

    def __init__(self, namespace: Namespace, tap: str, direction: str, file: Path) -> None:
        self.file = file
        self._log = file.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*namespace.prefix, "tcpdump", "-i", tap, "-Q", direction, "-s", "0", "-n", "-U", "-Z", "root",
                 "-B", str(CAPTURE_BUFFER_KB), "-w", str(file)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        deadline = time.monotonic() + 30.0
        while "listening on" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise FabricError(f"tcpdump does not capture on {tap}: {self._log.read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the capture; FabricError when it has missed frames."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        text = self._log.read_text()
        dropped = re.search(r"(\d+) packets? dropped by kernel", text)
        if dropped is None or dropped[1] != "0":
            raise FabricError(f"tcpdump missed frames: {text}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Setup:
    """Scenarios with equal setups share a lab. Those with as many guests share these, which are booted once."""

    guests: int
    link_mtu: int = 1500
    rings: tuple[Ring, ...] = ()
    leaves: int = 0  # switches below a spine, each with as many guests; without any, one switch has all guests

    @property
    def path_mtu(self) -> int:
        """The RDMA path MTU that soft-RoCE takes on such a link: the largest that fits with all headers."""
        return max(mtu for mtu in (256, 512, 1024, 2048, 4096) if mtu + 80 <= self.link_mtu)

    @property
    def hosts(self) -> str:
        """The same for all that can share their guests."""
        return f"{self.guests}x{self.link_mtu}"

    @property
    def name(self) -> str:
        return self.hosts + (f"-{self.leaves}-leaves" if self.leaves else "")

    def __str__(self) -> str:
        return f"{self.guests} guests, link MTU {self.link_mtu}" + (f", {self.leaves} leaves" if self.leaves else "")


class Fabric:
    """A namespace, TAP devices tap0 … and the switch between them. A context manager; make it in the main thread."""

    def __init__(self, switch: str, setup: Setup, logs: Path) -> None:
        self._kind, self._logs = switch, logs
        with ExitStack() as stack:
            self.namespace = Namespace()
            stack.callback(self.namespace.close)
            taps = [Identity(guest).tap for guest in range(setup.guests)]
            for tap in taps:
                self.namespace.run("ip", "tuntap", "add", tap, "mode", "tap")
                self.namespace.run("ip", "link", "set", tap, "mtu", str(setup.link_mtu), "txqueuelen", "2000", "up")
                self.namespace.run("tc", "qdisc", "replace", "dev", tap, "root", "pfifo", "limit", "10000")  # in order
            self.switch = self._make_switch(setup)
            stack.callback(lambda: self._remove_switch())
            self.switch.start()
            self._captures: list[Capture] = []
            self._cleanup = stack.pop_all()

    def arrange(self, setup: Setup) -> None:
        """Another switch between the same guests."""
        self._remove_switch()
        self.switch = self._make_switch(setup)
        self.switch.start()

    def _remove_switch(self) -> None:
        self.switch.kill()
        self.switch.remove_links()

    def _make_switch(self, setup: Setup) -> Switch:
        ports = {f"p{guest}": Identity(guest).tap for guest in range(setup.guests)}
        logs = self._logs / setup.name
        logs.mkdir(exist_ok=True)
        if self._kind == "bridge":
            return Bridge(self.namespace, list(ports.values()), setup.link_mtu)
        if setup.leaves:
            return Tree(self.namespace, setup.leaves, setup.link_mtu, setup.rings, logs)
        return Weir(self.namespace, ports, setup.link_mtu, [ring.entry() for ring in setup.rings], logs)

    def capture(self, port: int, direction: str) -> Capture:
        """Captures what comes "in" from a guest or goes "out" to it, until stop() or the end of the fabric."""
        return self.capture_on(Identity(port).tap, direction)

    def capture_on(self, interface: str, direction: str) -> Capture:
        """The same of any of the namespace's interfaces."""
        file = self._logs / f"{interface}-{direction}-{len(self._captures)}.pcap"
        capture = Capture(self.namespace, interface, direction, file)
        self._captures.append(capture)
        return capture

    def close(self) -> None:
        for capture in self._captures:
            capture.kill()
        self._cleanup.close()

    def __enter__(self) -> Fabric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
