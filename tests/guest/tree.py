# SPDX-License-Identifier: BSD-3-Clause
"""A tree of switches (docs/protocol.md §11): leaves with the guests, and a spine above, each a Weir. Every link may lose."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from guest import Identity
from image import REPOSITORY
from switch import Namespace, Ring, Switch, Weir

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
from lossy_links import LossyLinks  # noqa: E402

SPINE = "spine"


class Tree(Switch):
    """Each leaf has an equal share of the guests, in their order, which is that of all rings.

    Each switch has a network namespace of its own: net_af_packet tells its sockets from others' by the process's number and
    the interface's, which can be alike for two switches in one."""

    name = "tree"

    def __init__(self, namespace: Namespace, leaves: int, link_mtu: int, rings: Sequence[Ring], logs: Path) -> None:
        self._outside, self._link_mtu, self._rings, self._logs = namespace, link_mtu, rings, logs
        self._width = len(rings[0].guests) // leaves
        self.links = LossyLinks(namespace.run)
        self._inside: list[Namespace] = []
        self._ends: list[str] = []
        self.spine = self._make_spine(leaves)
        self.leaves = [self._make_leaf(leaf) for leaf in range(leaves)]

    def lost(self) -> dict[str, int]:
        """Frames that the links have lost, by where they were going."""
        by_way = self.links.lost()
        leaves, ranks = range(len(self.leaves)), range(len(self.leaves) * self._width)
        return {"from hosts": sum(by_way[Identity(rank).tap] for rank in ranks),
                "to hosts": sum(by_way[outside(rank)] for rank in ranks),
                "up to the spine": sum(by_way[uplink(leaf)] for leaf in leaves),
                "down from it": sum(by_way[downlink(leaf)] for leaf in leaves)}

    def lists(self) -> str:
        """Who adds up whom, as weir-worker takes it."""
        return f"[{','.join(str(list(self.ranks_of(leaf))).replace(' ', '') for leaf in range(len(self.leaves)))}]"

    def ranks_of(self, leaf: int) -> range:
        return range(leaf * self._width, (leaf + 1) * self._width)

    def _make_spine(self, leaves: int) -> Weir:
        below = ", ".join(f"{{ switch: leaf{leaf}, ranks: [{self.ranks_of(leaf)[0]}, {self.ranks_of(leaf)[-1]}], "
                          f"port: down{leaf} }}" for leaf in range(leaves))
        return self._make_weir(SPINE, {f"down{leaf}": downlink(leaf) for leaf in range(leaves)}, f"children: [{below}]")

    def _make_leaf(self, leaf: int) -> Weir:
        parent = f"parent: {{ switch: {SPINE}, port: up }}"
        children = ", ".join(f"{{ rank: {rank}, port: p{rank} }}" for rank in self.ranks_of(leaf))
        ends = {"up": uplink(leaf)} | {f"p{rank}": outside(rank) for rank in self.ranks_of(leaf)}
        weir = self._make_weir(f"leaf{leaf}", ends, parent, f"children: [{children}]")
        self.links.join(uplink(leaf), downlink(leaf))
        for rank in self.ranks_of(leaf):
            self.links.join(outside(rank), Identity(rank).tap)
        return weir

    def _make_weir(self, name: str, ends: Mapping[str, str], *place: str) -> Weir:
        """`ends` has by each port's name the far end of its cable."""
        inside = Namespace()
        self._inside.append(inside)
        mtu = str(self._link_mtu)
        for port, end in ends.items():
            self._outside.run("ip", "link", "add", end, "mtu", mtu, "type", "veth", "peer", "name", port, "mtu", mtu,
                              "netns", str(inside.pid))
            self._ends.append(end)
            self._outside.run("ip", "link", "set", "dev", end, "up")
            inside.run("ip", "link", "set", "dev", port, "up")
        ports = {port: port for port in ends}
        return Weir(inside, ports, self._link_mtu, [ring.entry(*place) for ring in self._rings], self._logs, name)

    @property
    def weirs(self) -> Sequence[Weir]:
        return (self.spine, *self.leaves)

    def start(self) -> None:
        for weir in self.weirs:
            weir.launch()
        for weir in self.weirs:
            weir.wait_ready()

    def stop(self) -> str:
        return "; ".join(f"{weir.name}: {weir.stop()}" for weir in self.weirs)

    def kill(self) -> None:
        for weir in self.weirs:
            weir.kill()

    @property
    def is_alive(self) -> bool:
        return all(weir.is_alive for weir in self.weirs)

    def reset(self) -> None:
        self.links.lose(0.0)

    def remove_links(self) -> None:
        self.links.remove()
        for end in self._ends:
            self._outside.run("ip", "link", "del", end)
        for inside in self._inside:
            inside.close()

    def report(self) -> str:
        return "\n".join(f"-- {weir.name}\n{weir.report()}" for weir in self.weirs)


def outside(rank: int) -> str:
    """The interface whose frames enter at the port of that rank, as if the rank had sent them."""
    return f"out{rank}"


def uplink(leaf: int) -> str:
    """The interface by which what that leaf sends up enters the link to the spine."""
    return f"uplink{leaf}"


def downlink(leaf: int) -> str:
    """The same at the spine, for what it sends down."""
    return f"downlink{leaf}"
