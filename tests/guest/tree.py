# SPDX-License-Identifier: BSD-3-Clause
"""A tree of switches (docs/protocol.md §11): leaves with the guests, and a spine above, each a Weir. Every link may lose."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from guest import Identity
from image import REPOSITORY
from switch import FabricError, Namespace, Ring, Switch, Weir

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
from lossy_links import LossyLinks  # noqa: E402

SPINE = "spine"


class Tree(Switch):
    """Leaf k is the switch of the guests between k and k+1 parts of a ring's members."""

    name = "tree"

    def __init__(self, namespace: Namespace, leaves: int, link_mtu: int, rings: Sequence[Ring], logs: Path) -> None:
        self._namespace, self._link_mtu, self._rings, self._logs = namespace, link_mtu, rings, logs
        self._width = len(rings[0].guests) // leaves
        self.links = LossyLinks(namespace.run)
        self._ports: list[str] = []
        self.spine = self._make_spine(leaves)
        self.leaves = [self._make_leaf(leaf) for leaf in range(leaves)]

    @property
    def between_switches(self) -> Sequence[str]:
        """Interfaces by which what a switch sends to another one enters their link."""
        return [f"{end}{leaf}" for leaf in range(len(self.leaves)) for end in "ud"]

    def lists(self) -> str:
        """Who adds up whom, as weir-worker takes it."""
        return f"[{','.join(str(list(self.ranks_of(leaf))).replace(' ', '') for leaf in range(len(self.leaves)))}]"

    def ranks_of(self, leaf: int) -> range:
        return range(leaf * self._width, (leaf + 1) * self._width)

    def _make_spine(self, leaves: int) -> Weir:
        below = ", ".join(f"{{ switch: leaf{leaf}, ranks: [{self.ranks_of(leaf)[0]}, {self.ranks_of(leaf)[-1]}], "
                          f"port: down{leaf} }}" for leaf in range(leaves))
        ports = {f"down{leaf}": self._make_port(f"down{leaf}", f"d{leaf}") for leaf in range(leaves)}
        return Weir(self._namespace, ports, self._link_mtu, [ring.entry(f"children: [{below}]") for ring in self._rings],
                    self._logs, SPINE)

    def _make_leaf(self, leaf: int) -> Weir:
        parent = f"parent: {{ switch: {SPINE}, port: up }}"
        ports = {"up": self._make_port(f"up{leaf}", f"u{leaf}")}
        self.links.join(f"u{leaf}", f"d{leaf}")
        for rank in self.ranks_of(leaf):
            ports[f"p{rank}"] = self._make_port(f"port{rank}", outside(rank))
            self.links.join(outside(rank), Identity(rank).tap)
        children = ", ".join(f"{{ rank: {rank}, port: p{rank} }}" for rank in self.ranks_of(leaf))
        return Weir(self._namespace, ports, self._link_mtu,
                    [ring.entry(parent, f"children: [{children}]") for ring in self._rings], self._logs, f"leaf{leaf}")

    def _make_port(self, interface: str, other_end: str) -> str:
        mtu = str(self._link_mtu)
        self._namespace.run("ip", "link", "add", interface, "mtu", mtu, "type", "veth", "peer", "name", other_end, "mtu", mtu)
        for end in (interface, other_end):
            self._namespace.run("ip", "link", "set", end, "up")
        self._ports.append(interface)
        return interface

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
        for interface in self._ports:
            self._namespace.run("ip", "link", "del", interface)

    def report(self) -> str:
        return "\n".join(f"-- {weir.name}\n{weir.report()}" for weir in self.weirs)


def outside(rank: int) -> str:
    """The interface whose frames enter at the port of that rank, as if the rank had sent them."""
    return f"out{rank}"
