# SPDX-License-Identifier: BSD-3-Clause
"""A server with NICs of three models, and a host at each of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/guest"), str(ROOT / "tests/smoke")]

from guest import OFFLOADS_OFF  # noqa: E402
from image import Image  # noqa: E402
from machine import Machine, emulator  # noqa: E402
from netns import KILLED_WITH_US, Namespace, veth  # noqa: E402

CPUS = "2"
CPU = "Nehalem"  # the least that DPDK's packages take: systemd is up in less time than with all that the emulator has
MEMORY_MB = 1024
LINK_MTU = 9000
QUIETLY = "systemd.show_status=0"


@dataclass(frozen=True)
class Nic:
    """One of the server's. Those behind slots of their own can be unplugged."""

    number: int
    model: str
    driver: str  # DPDK's
    settings: str = ""

    @property
    def slot(self) -> str:
        """Its PCI address: buses are numbered in the order of the slots."""
        return f"0000:{self.number + 1:02x}:00.0"

    @property
    def tap(self) -> str:
        return f"tap{self.number}"

    @property
    def name(self) -> str:
        return f"nic{self.number}"

    @property
    def device(self) -> str:
        return (f"{self.model},id={self.name},bus=slot{self.number},netdev=net{self.number},romfile=,"
                f"mac=52:54:00:00:02:{self.number:02x}{self.settings}")

    @property
    def arguments(self) -> list[str]:
        return ["-device", f"pcie-root-port,id=slot{self.number},chassis={self.number + 1},slot={self.number + 1}",
                "-netdev", f"tap,id=net{self.number},ifname={self.tap},script=no,downscript=no",
                "-device", self.device]


NICS = (Nic(0, "e1000e", "net_e1000_em"), Nic(1, "vmxnet3", "net_vmxnet3"),
        Nic(2, "virtio-net-pci", "net_virtio", f",disable-legacy=on,iommu_platform=on,host_mtu={LINK_MTU},{OFFLOADS_OFF}"))


class Hosts:
    """One at each NIC: a namespace with an interface that a cable leads to."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.cables = _closed_by(stack)
            self.namespaces: list[Namespace] = []
            for nic in NICS:
                host = _closed_by(stack)
                self.namespaces.append(host)
                self._plug(nic, host)
            self._cleanup = stack.pop_all()

    def _plug(self, nic: Nic, host: Namespace) -> None:
        """tap – bridge – veth: the tap is the emulator's end."""
        cables, bridge = self.cables, f"bridge{nic.number}"
        cables.ip(f"tuntap add {nic.tap} mode tap")
        cables.ip(f"link set {nic.tap} mtu {LINK_MTU} up")
        cables.ip(f"link add {bridge} mtu {LINK_MTU} type bridge mcast_snooping 0")
        veth(cables, f"cable{nic.number}", host, f"host{nic.number}", LINK_MTU)
        for port in (nic.tap, f"cable{nic.number}"):
            cables.ip(f"link set {port} master {bridge}")
        cables.ip(f"link set {bridge} up")

    def start(self, number: int, *command: str | Path) -> subprocess.Popen[str]:
        with self.namespaces[number].entered():
            return subprocess.Popen([*KILLED_WITH_US, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)

    def close(self) -> None:
        self._cleanup.close()


def _closed_by(stack: ExitStack) -> Namespace:
    namespace = Namespace()
    stack.callback(namespace.close)
    return namespace


class Server(Machine):
    """Its command line is what its boot loader's file has; the emulator only adds where the console is."""

    def __init__(self, disk: Path, image: Image, command_line: str, hosts: Hosts, logs: Path) -> None:
        ours, theirs = socket.socketpair()
        self._monitor = ours.makefile("rw")
        arguments = [
            *emulator("server", image, f"{command_line} {QUIETLY}", CPUS, MEMORY_MB, CPU), "-device", "intel-iommu,intremap=on",
            "-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={disk}", "-device", "virtio-blk-pci,drive=disk,romfile=",
            *(argument for nic in NICS for argument in nic.arguments),
            "-chardev", f"socket,id=monitor,fd={theirs.fileno()}", "-mon", "chardev=monitor,mode=control"]
        with hosts.cables.entered():
            super().__init__("server", arguments, (), logs, [theirs.fileno()])
        theirs.close()
        self._monitor.readline()  # its greeting
        self.order("qmp_capabilities")

    def order(self, command: str, **arguments: Any) -> Any:
        """Tells the emulator's monitor what happens to the hardware."""
        self._monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._monitor.flush()
        for line in self._monitor:
            said = json.loads(line)
            if "event" not in said:
                return said["return"]
        raise OSError(f"the emulator has ended under {command}")

    def wait_up(self, seconds: float) -> None:
        self.wait_ready(seconds)
        self.run("systemctl is-system-running --wait || true", seconds)

    def wait_end(self, seconds: float) -> bool:
        """Whether the machine ends by itself in that time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def power_off(self) -> None:
        super().power_off()
        self._monitor.close()
