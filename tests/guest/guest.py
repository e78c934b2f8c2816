# SPDX-License-Identifier: BSD-3-Clause
"""One guest: a virtual machine on one TAP port, with a soft-RoCE device."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from image import Image
from machine import CHANNELS, GuestError, Job, Machine, Result, emulator

__all__ = ["Guest", "GuestError", "Identity", "Job", "Result"]

MEMORY_MB = 256
BURST_BYTES = 8192  # of a rate-limited port: with less, a guest that was not scheduled would be slower
# A second CPU that is never added. With one possible CPU, QEMU's translator omits the guest's memory barriers, as if there
# were no I/O thread. Then driver and device sometimes miss each other's notification, and the guest never sends again.
ONE_CPU = "1,maxcpus=2"
OFFLOADS_OFF = ",".join(
    f"{offload}=off"
    for offload in ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo",
                    "host_tso4", "host_tso6", "host_ecn", "host_ufo", "mrg_rxbuf"))


@dataclass(frozen=True)
class Identity:
    """The addresses of guest number `rank`."""

    rank: int

    @property
    def name(self) -> str:
        return f"guest{self.rank}"

    @property
    def ip(self) -> str:
        return f"10.77.0.{self.rank + 1}"

    @property
    def ip6(self) -> str:
        """Set after Guest.add_ip6."""
        return f"fd77::{self.rank + 1:x}"

    @property
    def mac(self) -> str:
        return f"52:54:00:00:00:{self.rank + 1:02x}"

    @property
    def tap(self) -> str:
        return f"tap{self.rank}"


class Guest(Machine):
    """Start it from the main thread, as any machine."""

    def __init__(self, who: Identity, image: Image, namespace_prefix: Sequence[str], link_mtu: int, logs: Path) -> None:
        self.who = who
        self._has_discipline = False
        self._receives_through_ifb = False
        self._asks_nobody = False
        super().__init__(who.name, self._arguments(image, link_mtu), namespace_prefix, logs)

    def _arguments(self, image: Image, link_mtu: int) -> list[str]:
        settings = {"name": self.who.name, "address": f"{self.who.ip}/24", "mtu": link_mtu, "channels": CHANNELS}
        options = " ".join(f"weir.{key}={value}" for key, value in settings.items())
        return [*emulator(self.who.name, image, options, ONE_CPU, MEMORY_MB),
                "-netdev", f"tap,id=net,ifname={self.who.tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=net,mac={self.who.mac},host_mtu={link_mtu},romfile=,{OFFLOADS_OFF}"]

    def add_ip6(self) -> int:
        """Gives the guest its IPv6 address, if it has none yet, and returns the index of the address's GID."""
        self.run(f"ip -6 address replace {self.who.ip6}/64 dev eth0 nodad")
        gid = ipaddress.IPv6Address(self.who.ip6).exploded
        table = "/sys/class/infiniband/rxe0/ports/1/gids"
        self.wait_until(f"grep -q {gid} {table}/*", 30.0)
        found = self.run(f"grep -l {gid} {table}/* | head -n 1").output
        return int(found.strip().rpartition("/")[2])

    def rdma_counters(self) -> dict[str, int]:
        """What the soft-RoCE device has counted since boot: packets sent, retries, …"""
        said = self.run("cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep -H . *").output
        return {name: int(count) for name, count in (line.split(":") for line in said.split())}

    def netem(self, settings: str) -> None:
        """Applies `settings` ("loss 2% delay 1ms") to all that the guest sends, until reset()."""
        self._queue_through(f"netem {settings}")

    def netem_both_ways(self, settings: str) -> None:
        """Applies `settings` to all that the guest sends and receives, as if both ends of the link had them."""
        self.netem(settings)
        self._receives_through_ifb = True
        self.run("ip link set ifb0 up; tc qdisc replace dev eth0 ingress && "
                 "tc filter replace dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0 && "
                 f"tc qdisc replace dev ifb0 root netem {settings}")

    def limit_rate(self, megabits: float) -> None:
        """Limits the guest's sending rate, Ethernet headers included, until reset(). Nothing is dropped."""
        self._queue_through(f"tbf rate {megabits}mbit burst {BURST_BYTES} limit 4mb")

    def ask_nobody(self, neighbours: Sequence[Identity]) -> None:
        """Fixes its neighbours' MAC addresses, so that there is no ARP, until reset()."""
        self._asks_nobody = True
        self.run(" && ".join(f"ip neigh replace {who.ip} lladdr {who.mac} nud permanent dev eth0"
                             for who in neighbours if who != self.who))

    def _queue_through(self, discipline: str) -> None:
        self._has_discipline = True
        self.run(f"tc qdisc replace dev eth0 root {discipline}")

    def reset(self) -> None:
        """Restores the network and ends all commands, as after boot."""
        if self._is_stopped:
            self.resume()
        for channel in self._channels[1:]:
            if (job := channel.job) is not None:
                job.kill()
                job.wait(30.0)
        if self._receives_through_ifb:
            self.run("tc qdisc del dev eth0 ingress; tc qdisc del dev ifb0 root")
            self._receives_through_ifb = False
        if self._asks_nobody:
            self.run("ip neigh flush dev eth0 nud permanent")
            self._asks_nobody = False
        if self._has_discipline:
            self.run("tc qdisc del dev eth0 root")
            self._has_discipline = False
