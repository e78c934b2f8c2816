# SPDX-License-Identifier: BSD-3-Clause
"""The guests' network: a namespace of its own, TAP ports, and the switch between them.

The namespace has no name. It exists as long as a process in it, and each of these is killed with the process that made
the fabric. So nothing is left behind, even after SIGKILL. No packet can leave the namespace.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from guest import Identity
from switch import Bridge, FabricError, Namespace, Ring, Switch, Weir

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


class Fabric:
    """A namespace, TAP devices tap0 … and the switch between them. A context manager; make it in the main thread."""

    def __init__(self, switch: str, ports: int, link_mtu: int, rings: Sequence[Ring], logs: Path) -> None:
        self._logs = logs
        with ExitStack() as stack:
            self.namespace = Namespace()
            stack.callback(self.namespace.close)
            taps = [Identity(port).tap for port in range(ports)]
            # Before a link exists, because the kernel's neighbour discovery would send frames on every port.
            self.namespace.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
            for tap in taps:
                self.namespace.run("ip", "tuntap", "add", tap, "mode", "tap")
                self.namespace.run("ip", "link", "set", tap, "mtu", str(link_mtu), "txqueuelen", "2000", "up")
                self.namespace.run("tc", "qdisc", "replace", "dev", tap, "root", "pfifo", "limit", "10000")  # in order
            self.switch: Switch = (Bridge(self.namespace, taps, link_mtu) if switch == "bridge"
                                   else Weir(self.namespace, taps, link_mtu, rings, logs))
            stack.callback(self.switch.kill)
            self.switch.start()
            self._captures: list[Capture] = []
            self._cleanup = stack.pop_all()

    def capture(self, port: int, direction: str) -> Capture:
        """Captures what comes "in" from a guest or goes "out" to it, until stop() or the end of the fabric."""
        tap = Identity(port).tap
        capture = Capture(self.namespace, tap, direction, self._logs / f"{tap}-{direction}-{len(self._captures)}.pcap")
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
