# SPDX-License-Identifier: BSD-3-Clause
"""The switch between the ports: Weir, or the kernel's bridge, in a network namespace without a name."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guest import Identity
from image import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
import telemetry  # noqa: E402

WEIR = REPOSITORY / "build" / "app" / "weir"
WEIR_START_S = 60.0
WEIR_STOP_S = 30.0
AF_PACKET_OVERHEAD = 84  # 66 bytes before a frame in the kernel's ring, 14 + 4 of Ethernet and VLAN headers
DPDK_RUNTIME = Path("/var/run/dpdk")
CONTROL_SOCKET = "control.sock"
REGIONS_IP = "10.77.0.254"

_numbers = itertools.count()


class FabricError(Exception):
    """A part of the network, or Weir itself, did not do what it should."""


@dataclass(frozen=True)
class Ring:
    """A ring of Weir's configuration. Rank r is guest `guests[r]`, on the port of that number."""

    guests: tuple[int, ...]
    ring_id: int = 7
    window: int = 4
    max_message_bytes: int = 16384
    mtu: int = 1024
    ip_version: int = 4

    def address_of(self, guest: int) -> str:
        return Identity(guest).ip if self.ip_version == 4 else Identity(guest).ip6

    def entry(self, *place: str) -> str:
        """As under `rings:`. `place` has a tree's keys `parent` and `children`; without it all members are this switch's."""
        members = [f'ip: "{self.address_of(guest)}"' + ("" if place else f", port: p{guest}") for guest in self.guests]
        keys = [f"id: {self.ring_id}", f"window: {self.window}", f"max_message_bytes: {self.max_message_bytes}",
                f"mtu: {self.mtu}", f"members: [{', '.join(f'{{ {member} }}' for member in members)}]", *place]
        return "  - " + "\n    ".join(keys)


def remove_leftovers() -> None:
    """Removes directories of killed runs. Their processes and links have already ended."""
    directories = [*DPDK_RUNTIME.glob("weir-guest-*"), *Path(tempfile.gettempdir()).glob("weir-guest-*")]
    for directory in directories:
        owner = re.match(r"weir-guest-(\d+)-", directory.name)
        if owner is not None and not Path("/proc", owner[1]).exists():
            shutil.rmtree(directory, ignore_errors=True)


class Namespace:
    """A network namespace without a name, held by a sleeping process. IPv6 is off: the kernel sends nothing by itself."""

    def __init__(self) -> None:
        # A child is killed with this process: setpriv's death signal stays set in the programs that it starts.
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            self.close()
            raise FabricError("cannot make a network namespace (unshare --net): root is needed")
        self.pid = self._holder.pid
        self.prefix = ("setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/proc/{self.pid}/ns/net", "--")
        # Before a link exists, because the kernel's neighbour discovery would send frames on every port.
        self.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")

    def run(self, *arguments: str) -> str:
        done = subprocess.run([*self.prefix, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise FabricError(f"`{' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()


class Switch(ABC):
    """The switch between the ports."""

    name: str

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> str:
        """Ends it as an operator would, and returns a summary; FabricError when it did not end cleanly."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it at once. No effect when not running."""

    @property
    @abstractmethod
    def is_alive(self) -> bool: ...

    @abstractmethod
    def report(self) -> str:
        """Its output, to find out what went wrong."""

    @property
    def weirs(self) -> Sequence[Weir]:
        """Those of which it is made."""
        return ()

    def reset(self) -> None:
        """Restores its links, as after start()."""

    def remove_links(self) -> None:
        """Those that it has made, when it is not running."""


class Bridge(Switch):
    """The kernel's bridge: a plain switch."""

    name = "bridge"

    def __init__(self, namespace: Namespace, taps: Sequence[str], link_mtu: int) -> None:
        self._namespace, self._taps, self._link_mtu = namespace, taps, link_mtu
        self._running = False

    def start(self) -> None:
        run = self._namespace.run
        # Without snooping it floods multicast, as Weir does.
        run("ip", "link", "add", "br0", "mtu", str(self._link_mtu), "type", "bridge", "mcast_snooping", "0")
        for tap in self._taps:
            run("ip", "link", "set", tap, "master", "br0")
        run("ip", "link", "set", "br0", "up")
        self._running = True

    def stop(self) -> str:
        self.kill()
        return "bridge removed"

    def kill(self) -> None:
        if self._running:
            self._running = False
            self._namespace.run("ip", "link", "del", "br0")

    @property
    def is_alive(self) -> bool:
        return self._running

    def report(self) -> str:
        return ""


class Weir(Switch):
    """build/app/weir, or another one after replace(), with AF_PACKET ports."""

    def __init__(self, namespace: Namespace, ports: Mapping[str, str], link_mtu: int, rings: Sequence[str], logs: Path,
                 name: str = "weir") -> None:
        """`ports` has the interface of each by its name, `rings` what is under `rings:`."""
        self.name = name
        self._namespace = namespace
        self._file_prefix = f"weir-guest-{os.getpid()}-{next(_numbers)}"
        self._runtime = DPDK_RUNTIME / self._file_prefix
        self._configuration = logs / f"{name}.yaml"
        self._configuration.write_text(weir_configuration(ports, link_mtu, rings, self._file_prefix))
        self._log = logs / f"{name}.log"
        self._before = 0  # bytes of the log, from earlier runs
        self._program = WEIR
        self._process: subprocess.Popen[bytes] | None = None

    def replace(self, program: Path) -> None:
        """Ends it and starts another one with the same configuration."""
        self.kill()
        self._program = program
        self.start()

    def start(self) -> None:
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """The first half of start()."""
        self._before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._namespace.prefix, str(self._program), "--config", str(self._configuration), "--no-interactive"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + WEIR_START_S
        while b"weir: ready" not in self._log.read_bytes()[self._before:]:
            if not self.is_alive or time.monotonic() > deadline:
                self.kill()
                raise FabricError(f"{self.name} never said `weir: ready`; it said:\n{self.report()}")
            time.sleep(0.05)

    def stop(self) -> str:
        if self._process is None:
            raise FabricError("weir is not running")
        process, self._process = self._process, None
        before = self._log.stat().st_size
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(WEIR_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise FabricError(f"weir did not stop within {WEIR_STOP_S:.0f} s of SIGTERM:\n{self.report()}") from None
        finally:
            shutil.rmtree(self._runtime, ignore_errors=True)
        if status != 0:
            raise FabricError(f"weir ended with status {status}, not 0:\n{self.report()}")
        return self._check_totals(self._log.read_bytes()[before:].decode(errors="replace"))

    @staticmethod
    def _check_totals(said: str) -> str:
        """Checks in Weir's last output that every frame is accounted for (docs/protocol.md, I6) and every buffer is back (I5)."""
        accounts = re.search(r"^ *(\d+) +(\d+) .* (yes|no)$", said, re.MULTILINE)
        buffers = re.search(r"weir: stopped, (\d+) of (\d+) mbufs free", said)
        if accounts is None or buffers is None:
            raise FabricError(f"weir did not print its totals when it stopped; it said:\n{said}")
        if accounts[3] != "yes" or buffers[1] != buffers[2]:
            raise FabricError(f"frames or buffers went missing in weir:\n{said}")
        return f"{accounts[1]} frames received and {accounts[2]} made; {buffers[1]} of {buffers[2]} mbufs free"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        shutil.rmtree(self._runtime, ignore_errors=True)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def report(self) -> str:
        return self._log.read_text(errors="replace")[-6000:] if self._log.exists() else ""

    @property
    def weirs(self) -> Sequence[Weir]:
        return (self,)

    @property
    def control_socket(self) -> Path:
        return self._runtime / CONTROL_SOCKET

    def telemetry(self, command: str) -> Any:
        """The telemetry socket's answer to `command` ("/weir/drops", "/ethdev/stats,0"); null: no such command."""
        answer = json.loads(telemetry.ask(self._runtime / "dpdk_telemetry.v2", command))
        said = answer[command.partition(",")[0]]
        if isinstance(said, dict) and "error" in said:
            raise FabricError(f"weir answers {command} with: {said['error']}")
        return said


def weir_configuration(ports: Mapping[str, str], link_mtu: int, rings: Sequence[str], file_prefix: str) -> str:
    # A slot of the AF_PACKET ring has 66 bytes of the kernel and then a frame (18 bytes more than the MTU, with a VLAN
    # tag). The driver assumes that there are no gaps between slots, so slots must fill their blocks, which are pages.
    slot = 2048
    while slot < link_mtu + AF_PACKET_OVERHEAD:
        slot += 1024
    # The driver needs mbufs for all that fits into a slot, and Weir makes them for its largest port MTU. So a port gets
    # the largest MTU that fits a slot. The links keep their own MTU, which the guests use.
    port_mtu = link_mtu if slot == 2048 else slot - AF_PACKET_OVERHEAD
    # By default the driver bypasses the queueing discipline; then captures would not see Weir's frames.
    sizes = f"blocksz={slot * 4 if slot > 2048 else 4096},framesz={slot},framecnt=512,qdisc_bypass=0"
    lines = [
        "eal:",
        f'  options: ["--no-huge", "-m", "512", "--no-pci", "--file-prefix={file_prefix}"]',
        "ports:",
        *(f'  - {{ name: {name}, device: "net_af_packet{i},iface={interface},{sizes}", mtu: {port_mtu} }}'
          for i, (name, interface) in enumerate(ports.items())),
        "lcores:",
        "  - { id: 0, roles: [control], idle: sleep }",
        "  - { id: 1, roles: [rx, worker, tx], idle: sleep }",
        f'control: {{ listen: ["unix:{DPDK_RUNTIME / file_prefix / CONTROL_SOCKET}"] }}',
        f'regions: {{ address: {REGIONS_IP}, mac: "02:57:45:00:00:01", rooms: {{ regions: 4, members: 16, frames: 1024, entries: 64 }} }}',
    ]
    if rings:
        lines += ["rings:", *rings]
    return "\n".join(lines) + "\n"
