# SPDX-License-Identifier: BSD-3-Clause
"""The place of one switch in a ring's tree: its children, its parent, and the connections that it meets. A switch that
has all ranks for children, and no parent, is the root of a tree of one."""
from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol, Sequence


class Child(NamedTuple):
    """A rank, or a switch that covers some. `port` is None for a rank that its hello binds."""

    lo: int
    hi: int
    port: int | None
    switch: str = ""  # its name; none: the child is a rank

    def covers(self, rank: int) -> bool:
        return self.lo <= rank <= self.hi


class Parent(NamedTuple):
    switch: str
    port: int


class Ring(Protocol):
    """What the ring's switches are configured with alike."""

    @property
    def ring(self) -> int: ...
    @property
    def mtu(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def max_message_bytes(self) -> int: ...


class Place(Protocol):
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def children(self) -> Sequence[Child]: ...
    @property
    def parent(self) -> Parent | None: ...


class Kind(Enum):
    INNER = auto()  # from a child to the next one; on the root from the last one to the first one too
    OUTGOING = auto()  # from the last child to the parent
    ENTERING = auto()  # from the parent to the first child


PARENT = -1  # in place of a child's number


@dataclass(frozen=True)
class Line:
    """One connection that the switch meets. Those of the children have their children's numbers, the entering one comes
    after them."""

    number: int
    kind: Kind
    rank: int  # that sends the data
    sender: int  # child that the data comes from
    receiver: int


class Tree:
    """What a switch knows of the tree."""

    def __init__(self, place: Place) -> None:
        self.members = list(place.members)
        self.world = len(self.members)
        self.children = list(place.children)
        self.parent = place.parent
        self.lo, self.hi = self.children[0].lo, self.children[-1].hi
        self.lines = [self.line_of_child(number) for number in range(len(self.children))]
        if self.parent:
            rank = (self.lo - 1) % self.world
            self.lines.append(Line(len(self.children), Kind.ENTERING, rank, PARENT, 0))

    def line_of_child(self, number: int) -> Line:
        rank, is_last = self.children[number].hi, number == len(self.children) - 1
        if is_last and self.parent:
            return Line(number, Kind.OUTGOING, rank, number, PARENT)
        return Line(number, Kind.INNER, rank, number, (number + 1) % len(self.children))

    @property
    def has_switches(self) -> bool:
        """The tree has more than this switch."""
        return self.parent is not None or any(child.switch for child in self.children)

    def side_of(self, rank: int) -> int:
        """The child that covers the rank, or the parent."""
        return next((number for number, child in enumerate(self.children) if child.covers(rank)), PARENT)

    def is_switch(self, side: int) -> bool:
        return side == PARENT or bool(self.children[side].switch)

    def fixed_port(self, side: int) -> int | None:
        """The configured one."""
        if side != PARENT:
            return self.children[side].port
        assert self.parent
        return self.parent.port

    def neighbours(self) -> dict[tuple[str, str], int]:
        """Source and destination of each connection: its line."""
        return {(self.members[line.rank], self.members[(line.rank + 1) % self.world]): line.number for line in self.lines}


def digest_of(ring: Ring) -> int:
    """CRC-32 of what all switches of the ring must have alike. An IPv4 address is written as ::ffff:a.b.c.d."""
    words = struct.pack(">5I", ring.ring, len(ring.members), ring.window, ring.max_message_bytes, ring.mtu)
    addresses = (bytes(10) + b"\xff\xff" + bytes(map(int, member.split("."))) for member in ring.members)
    return zlib.crc32(words + b"".join(addresses))
