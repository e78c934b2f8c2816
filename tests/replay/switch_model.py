# SPDX-License-Identifier: BSD-3-Clause
"""A slow and simple second implementation of docs/protocol.md (§ means that page): one ring, one frame at a time.

What it does about losses and late ranks is in recovery_rules.py. It shares only the names of the drops with the
switch, those of docs/drops.md.
"""
from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, Protocol, Sequence

from recovery_model import Flow, Voice, plus, turned_around
from recovery_rules import Rules
from roce import (BARRIER, BROADCAST, ALL_REDUCE, HELLO, INA_LEN, PARTIAL, RC_DATA, RC_OTHER_REQUESTS, RESULT,
                  SEND_LAST_INVALIDATE, VERSION, Ina, Roce, icrc, parse_roce, serial)

WAITING_HELLOS = 4  # of each rank
RETIRED_NONCES = 16
STATION_NS = 300 * 10**9  # l2.aging_s unless configured
AGEING_NS = 600 * 10**9  # connections.aging_s unless configured
SHORTEST_ACK_TIMEOUT = 12  # 1 .. 11 count as that
UNTOLD_DEAD_NS = 3600 * 10**9
FIRST_SESSION = 1  # weir-replay's default; the hosts in the captures had 1

# -- reduction


def sum_f32(parts: list[bytes]) -> bytes:
    """Left fold in the order given (§2), rounded to f32 at each step.

    Python adds the two f32 as doubles and struct rounds that to f32. Rounding twice does no harm here: a double has
    53 bits of precision, at least 2*24+2, so the result is that of one correctly rounded f32 addition (Figueroa 1995).
    """
    count = len(parts[0]) // 4
    values = list(struct.unpack(f"<{count}f", parts[0]))
    for part in parts[1:]:
        total = [a + b for a, b in zip(values, struct.unpack(f"<{count}f", part), strict=True)]
        values = list(struct.unpack(f"<{count}f", struct.pack(f"<{count}f", *total)))
    if any(v != v for v in values):
        raise AssertionError("a NaN in the captures' data: its payload bits are not modelled")
    return struct.pack(f"<{count}f", *values)


def sum_i32(parts: list[bytes]) -> bytes:
    """Integers wrap (§2); modulo 2^32 signed and unsigned sums have the same bits."""
    count = len(parts[0]) // 4
    columns = zip(*(struct.unpack(f"<{count}I", part) for part in parts), strict=True)
    return struct.pack(f"<{count}I", *(sum(column) & 0xFFFFFFFF for column in columns))


def min_i32(parts: list[bytes]) -> bytes:
    count = len(parts[0]) // 4
    return struct.pack(f"<{count}i", *map(min, *(struct.unpack(f"<{count}i", part) for part in parts)))


REDUCERS = {(0, 0): sum_f32, (0, 1): sum_i32, (1, 1): min_i32}  # (op, dtype) of §2 that captures and jobs use


TYPES, OPERATIONS, BITWISE, FLOATS = 14, 7, (4, 5, 6), (0, 2, 3, 4, 12, 13)  # numbers of §2


def is_reducible(ina: Ina) -> bool:
    return ina.op < OPERATIONS and ina.dtype < TYPES and not (ina.op in BITWISE and ina.dtype in FLOATS)


def result_of(ina: Ina, parts: list[bytes]) -> bytes:
    """The result of all ranks' data, in rank order (§2, collective)."""
    if ina.collective == BROADCAST:
        return parts[ina.root]
    return REDUCERS[ina.op, ina.dtype](parts)


# -- state


class Configuration(Protocol):
    """The switch's configuration of ports and of its ring, number 7."""

    @property
    def mtu(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def port_macs(self) -> Sequence[str]: ...
    @property
    def member_ports(self) -> bool: ...
    @property
    def world(self) -> int: ...
    @property
    def packets_per_message(self) -> int: ...
    @property
    def max_message_bytes(self) -> int: ...


RING = 7
Key = tuple[str, str, int]  # <source IP, destination IP, destination QP>


@dataclass
class Message:
    """A message whose FIRST was seen: what its later packets do not carry."""

    ina: Ina
    psn: int  # of the FIRST packet
    count: int  # packets


def agreement(ina: Ina) -> tuple[int, ...]:
    """The fields on which all ranks must agree (§2)."""
    return ina.op, ina.dtype, ina.msg_len, ina.collective, ina.root


def disagreement_of(theirs: tuple[int, ...], own: tuple[int, ...]) -> str | None:
    """The name of the first difference between two agreements; the payload's size may be their last item."""
    subjects = "operation", "type", "length", "collective", "root", "payload"
    return next((f"disagree_{name}" for name, a, b in zip(subjects, theirs, own) if a != b), None)


class State(Enum):
    """What the switch knows about a queue pair."""

    PLAIN = auto()
    ANNOUNCED = auto()  # a foreign hello was forwarded
    FOREIGN = auto()  # and messages too
    LIVE = auto()  # admitted by the current incarnation
    DEAD = auto()  # admitted by a former one
    BARRED = auto()  # a message with the magic, but of no ring, was dropped on it


# The states in which packets other than a FIRST or ONLY are dropped, and the reason.
STOPPED = {State.DEAD: "dead_connection", State.BARRED: "unannounced", State.ANNOUNCED: "unannounced"}


@dataclass
class Connection:
    """A queue pair and its message history (§3)."""

    state: State
    seen_ns: int  # of its last packet
    rank: int = -1
    ack_timeout: int = 0
    newest: int = 0  # M
    known: dict[int, Message] = field(default_factory=dict)  # messages M-2N+1 .. M, holes left out
    floor: int | None = None  # None until a message has left: nothing is "before" it until then
    flow: Flow | None = None  # of a connection that was admitted

    @property
    def the_flow(self) -> Flow:
        assert self.flow is not None
        return self.flow


class Packet(NamedTuple):
    """A packet for a slot."""

    index: int  # of the input frame
    roce: Roce
    rank: int
    message: Message
    k: int

    @property
    def data(self) -> bytes:
        """Tensor data: the payload without the INA header."""
        return self.roce.payload[INA_LEN if self.k == 0 else 0:]


@dataclass
class Slot:
    tag: int
    terms: tuple[int, ...]  # agreement and payload size
    begun_ns: int
    packets: dict[int, Packet] = field(default_factory=dict)  # by rank; kept to explain differences
    result: bytes | None = None
    released: bool = False  # the result has left (§9, R1)


@dataclass(eq=False)
class Waiting:
    """A hello of an incarnation that has not begun."""

    index: int
    roce: Roce
    ina: Ina
    port: int
    arrived_ns: int
    kept_alive_ns: int

    @property
    def qp(self) -> int:
        """The sender's own queue pair; 0: not told."""
        return self.ina.qp if self.ina.qp < 1 << 24 else 0

    @property
    def run(self) -> tuple[int, int]:
        """(epoch, nonce)."""
        return self.ina.epoch, self.ina.session


@dataclass
class Incarnation:
    epoch: int
    nonce: int
    session: int
    connections: list[Connection]  # by rank
    ports: list[int]  # by rank, those of the hellos
    stations: list[bytes]  # by rank, source MACs of the hellos
    news_ns: int  # when a rank last brought something new
    next_out: tuple[int, int] = (0, 0)  # message and packet whose results leave next
    next_out_since_ns: int = 0


OWN_KINDS = "resent", "ack", "nak", "rnr-nak", "keep-alive"  # frames that the switch makes itself


@dataclass(frozen=True)
class Sent:
    """One frame that leaves."""

    frame: bytes
    cause: int | None  # index of the input frame; None: a timer
    kind: str  # forward, flood, result, cached-result, or one of OWN_KINDS
    port: int
    rank: int | None = None
    msg: int | None = None
    k: int | None = None
    contributors: tuple[int, ...] = ()  # input frames summed, in rank order
    ns: int = 0  # when, if a timer caused it


# -- the switch


class Switch:
    """docs/protocol.md for one ring."""

    def __init__(self, case: Configuration) -> None:
        self.case = case
        self.port_of_source = {bytes.fromhex(m.replace(":", "")): i for i, m in enumerate(case.port_macs)}
        self.fdb: dict[bytes, tuple[int, int]] = {}  # station: port, time of its last frame
        self.connections: dict[Key, Connection] = {}  # of the ring
        self.strangers: dict[tuple[Key, int], Connection] = {}  # all others: what each port's packets have shown
        self.waiting: list[list[Waiting]] = [[] for _ in case.members]  # by rank, oldest first
        self.incarnation: Incarnation | None = None
        self.begun = 0  # incarnations so far
        self.retired: list[int] = []  # nonces, newest last
        self.slots: dict[int, Slot] = {}
        self.sent: list[Sent] = []
        self.fate: dict[int, str] = {}  # exactly one for each input frame (I6)
        # Hellos to other switches: port, host, ring, epoch, nonce, and the port that they left by (None: flooded).
        self.greeted: set[tuple[int, str, int, int, int, int | None]] = set()
        self.answered: set[tuple[int, str, int, int]] = set()  # port, host, ring, session: by another switch
        self.foreign: Counter[str] = Counter()  # why headers were foreign
        self.now = 0  # ns
        self.port = 0  # that the frame came by
        self.cause: int | None = None
        self.completed = 0  # slots
        self.rules = Rules(self)

    # -- the plain switch

    def receive(self, index: int, frame: bytes, ns: int) -> None:
        self.cause = None
        self.rules.advance(ns)
        self.now, self.cause = ns, index
        port = self.port = self.port_of_source[frame[6:12]]
        if not frame[6] & 1:
            self.fdb[frame[6:12]] = port, ns  # from every frame, also those dropped below
        if frame[:5] == b"\x01\x80\xc2\x00\x00" and frame[5] <= 0x0F:  # IEEE 802.1D 7.12.6
            return self.drop(index, "link_local")
        roce = parse_roce(frame)
        if roce and self.enters_elsewhere(roce, port):
            return self.drop(index, "wrong_port")
        if roce and (roce.src, roce.dst) in self.neighbours():
            if roce.opcode in RC_DATA:
                return self.classify(index, roce, port)
            if roce.opcode in RC_OTHER_REQUESTS:
                return self.other_request(index, roce, port)
        elif roce and roce.opcode in RC_DATA and not self.passes_between_strangers(roce):
            return self.drop(index, "unannounced")
        if roce and self.response_is_absorbed(roce):
            return self.drop(index, "nak_mended")
        self.forward(index, frame, port)

    def response_is_absorbed(self, roce: Roce) -> bool:
        """An ACK or NAK for a rank whose successor is the source."""
        if self.incarnation is None or not roce.icrc_is_right():
            return False
        rank = self.neighbours().get((roce.dst, roce.src))
        live = None if rank is None else self.live(rank)
        if rank is None or live is None or live.the_flow.qp != roce.qp or roce.qp == 0:
            return False
        return self.rules.absorbs(roce, rank)

    def say(self, frame: bytes, kind: str, rank: int, port: int, msg: int | None = None, k: int | None = None) -> None:
        """A frame of the switch's own."""
        self.sent.append(Sent(frame, self.cause, kind, port, rank, msg, k, ns=self.now))

    def live(self, rank: int) -> Connection | None:
        """The admitted connection of the rank, unless its queue pair was used for something else since."""
        if self.incarnation is None:
            return None
        connection = self.incarnation.connections[rank]
        return connection if connection in self.connections.values() else None

    def port_of_rank(self, rank: int) -> int:
        port = self.bound_port(self.case.members[rank])
        assert port is not None
        return port

    def stalled(self) -> tuple[Slot, int] | None:
        """The slot whose results leave next, if it waits for ranks, and since when."""
        if self.incarnation is None:
            return None
        slot = self.slots.get(self.place_of(*self.incarnation.next_out))
        if slot is None or slot.tag != self.incarnation.next_out[0] or slot.result is not None:
            return None
        return slot, max(slot.begun_ns, self.incarnation.next_out_since_ns)

    def port_of(self, station: bytes) -> int | None:
        """The port of a living incarnation's member, otherwise that of the station's last frame."""
        if self.incarnation and station in self.incarnation.stations:
            return self.incarnation.ports[self.incarnation.stations.index(station)]
        port, heard = self.fdb.get(station, (None, 0))
        return port if self.now - heard <= STATION_NS else None

    def forward(self, index: int, frame: bytes, port: int) -> None:
        """Forwards unchanged, by destination MAC; floods when that is a group or unknown."""
        ports, known = self.egress(frame, port)
        self.fate[index] = ("forward" if known else "flood") if ports else "drop.same_port"
        for p in ports:
            self.sent.append(Sent(frame, index, "forward" if known else "flood", p))

    def egress(self, frame: bytes, ingress: int) -> tuple[list[int], bool]:
        """Ports, and whether the destination is known."""
        port = None if frame[0] & 1 else self.port_of(frame[:6])
        roce = parse_roce(frame)
        if roce and self.between_neighbours(roce):
            bound = self.bound_port(roce.dst)
            port = port if bound is None else bound
        if port is None:
            return [p for p in range(len(self.case.port_macs)) if p != ingress], False
        return [port] if port != ingress else [], True

    def drop(self, index: int, reason: str) -> None:
        self.fate[index] = "drop." + reason

    def neighbours(self) -> dict[tuple[str, str], int]:
        """<source, destination> of each member and its successor: the rank (§1)."""
        ips = self.case.members
        return {(ips[r], ips[(r + 1) % len(ips)]): r for r in range(len(ips))}

    def enters_elsewhere(self, roce: Roce, port: int) -> bool:
        """§3, Ports: RoCE between two neighbours, in either direction, that enters by another port than its source's."""
        return self.between_neighbours(roce) and self.bound_port(roce.src) not in (None, port)

    def between_neighbours(self, roce: Roce) -> bool:
        return (roce.src, roce.dst) in self.neighbours() or (roce.dst, roce.src) in self.neighbours()

    def bound_port(self, member: str) -> int | None:
        """The port from the configuration, or from its hello for the incarnation."""
        rank = list(self.case.members).index(member)
        if self.case.member_ports:
            return rank
        return self.incarnation.ports[rank] if self.incarnation else None

    # -- queue pairs (§3)

    def connection(self, roce: Roce) -> Connection | None:
        """What the switch knows of the packet's connection: the ring's entry, or the one of the packet's port."""
        entry = self.connections.get(roce.connection)
        if entry is None:
            return self.stranger_entry(roce)
        if entry.state is State.DEAD:
            told = 16 * 4096 << max(entry.ack_timeout, SHORTEST_ACK_TIMEOUT)
            at_least = told if entry.ack_timeout else UNTOLD_DEAD_NS
            assert self.now - entry.seen_ns < at_least, "only the least time for which a dead connection is kept is laid down"
        return entry

    def stranger_entry(self, roce: Roce) -> Connection | None:
        entry = self.strangers.get(self.at_port(roce))
        if entry and self.now - entry.seen_ns > AGEING_NS:
            del self.strangers[self.at_port(roce)]
            return None
        return entry

    def at_port(self, roce: Roce) -> tuple[Key, int]:
        return roce.connection, self.port_of_frame(roce)

    def port_of_frame(self, roce: Roce) -> int:
        return self.port_of_source[roce.frame[6:12]]

    def note(self, roce: Roce, state: State) -> None:
        self.connections.pop(roce.connection, None)
        self.strangers[self.at_port(roce)] = Connection(state, self.now)

    def classify(self, index: int, roce: Roce, port: int) -> None:
        if roce.starts_message:
            self.first_or_only(index, roce, port)
        else:
            self.middle_or_last(index, roce, port)

    def other_request(self, index: int, roce: Roce, port: int) -> None:
        if roce.icrc_is_right():
            self.overtake(roce, port)
        entry = self.connection(roce)
        if entry and entry.state is State.LIVE:
            return self.drop(index, "unsupported_request")
        if entry and entry.state in STOPPED:
            return self.drop(index, STOPPED[entry.state])
        if entry is None and roce.opcode == SEND_LAST_INVALIDATE:
            return self.drop(index, "unclassified")
        self.forward(index, roce.frame, port)

    def first_or_only(self, index: int, roce: Roce, port: int) -> None:
        """The ICRC is checked first: a ring's FIRST with a damaged magic must not make its connection plain."""
        if not roce.icrc_is_right():
            return self.drop(index, "bad_icrc")
        self.overtake(roce, port)
        ina = roce.ina()
        if ina is None:
            return self.plain_start(index, roce, port)
        entry = self.connection(roce)
        if entry and entry.state is State.PLAIN:
            entry.state = State.BARRED
        repeat = self.repeated_start(roce, ina)
        if repeat:
            return self.drop(index, repeat)
        stranger = self.stranger(ina, roce)
        if stranger:
            return self.foreign_start(index, roce, port, ina, stranger)
        refusal = self.refusal(ina, roce)
        if refusal:
            return self.drop(index, refusal)
        if ina.collective == HELLO:
            return self.hello(Waiting(index, roce, ina, port, self.now, self.now))
        self.data_start(index, roce, ina)

    def repeated_start(self, roce: Roce, ina: Ina) -> str | None:
        """§9, R4: of a packet below s only the session is looked at. The reason for which it is dropped."""
        now, entry = self.incarnation, self.connection(roce)
        if now is None or entry is None or not self.is_swallowed(roce, entry):
            return None
        if ina.session != now.session:
            if ina.collective != HELLO:
                return "wrong_session"
            if (ina.epoch, ina.session) != (now.epoch, now.nonce):
                return None
        entry.seen_ns = self.now
        self.rules.repeat(entry.rank, roce.psn)
        return "repeat_swallowed"

    def is_swallowed(self, roce: Roce, entry: Connection) -> bool:
        return (entry.state is State.LIVE and serial(roce.psn, entry.the_flow.s, 24) < 0
                and self.rules.may_answer(entry.rank))

    def interleave(self, index: int, roce: Roce, port: int, entry: Connection) -> None:
        """§9, R1: a message that is not the ring's leaves on a ring's connection in its turn."""
        ahead = serial(roce.psn, entry.the_flow.s, 24)
        if ahead > 0:
            return self.drop(index, "out_of_turn")
        if ahead == 0:
            entry.the_flow.left(roce.psn, self.now)
        self.forward(index, roce.frame, port)

    def plain_start(self, index: int, roce: Roce, port: int) -> None:
        entry = self.connection(roce)
        if entry and entry.state is State.LIVE:
            held = any(not slot.released and entry.rank in slot.packets for slot in self.slots.values())
            if held or self.now - entry.seen_ns <= AGEING_NS:
                entry.seen_ns = self.now
                return self.interleave(index, roce, port, entry)
        self.note(roce, State.PLAIN)
        self.forward(index, roce.frame, port)

    def stranger(self, ina: Ina, roce: Roce) -> str | None:
        """Why a header is foreign (§3, Belonging)."""
        ips = self.case.members
        if ina.version != VERSION:
            return "unknown_version"
        if ina.ring != RING:
            return "unknown_ring"
        if ina.world != len(ips):
            return "world_mismatch"
        if ina.rank >= len(ips):
            return "rank_out_of_range"
        if roce.src != ips[ina.rank]:
            return "source_mismatch"
        if roce.dst != ips[(ina.rank + 1) % len(ips)]:
            return "destination_mismatch"
        return None

    def foreign_start(self, index: int, roce: Roce, port: int, ina: Ina, why: str) -> None:
        """§3, the magic, between ring neighbours."""
        entry = self.connection(roce)
        state = self.after_foreign_header(entry, roce, ina)
        self.foreign[why] += 1
        if entry and entry.state is State.DEAD and ina.collective == HELLO:
            return self.drop(index, "dead_connection")
        if entry and entry.state not in (State.LIVE, State.DEAD) or ina.collective == HELLO and entry is None:
            self.note(roce, state)
        if state is State.BARRED or entry and entry.state is State.DEAD:
            return self.drop(index, "unannounced")
        if entry and entry.state is State.LIVE:
            return self.interleave(index, roce, port, entry)
        self.forward(index, roce.frame, port)

    def after_foreign_header(self, entry: Connection | None, roce: Roce, ina: Ina) -> State:
        """After a hello that passed, a ring's messages pass once another switch has answered that host's hello. The
        hello alone opens nothing: a host that goes back to its hello repeats the hello too."""
        if ina.collective == HELLO:
            if entry is None or entry.state is not State.DEAD:
                self.hear_foreign_hello(roce, ina)
            return State.ANNOUNCED
        greeted = entry is not None and entry.state in (State.ANNOUNCED, State.FOREIGN)
        answered = bool(ina.flags & RESULT) or (self.port, roce.src, ina.ring, ina.session) in self.answered
        return State.FOREIGN if greeted and answered else State.BARRED

    def hear_foreign_hello(self, roce: Roce, ina: Ina) -> None:
        """An answer counts if it comes by the port that its host's hello left by, and leaves by the one it came by."""
        ports, _ = self.egress(roce.frame, self.port)
        if not ina.flags & RESULT and ports:
            out = ports[0] if len(ports) == 1 else None
            self.greeted.add((self.port, roce.src, ina.ring, ina.epoch, ina.session, out))
        elif ina.flags & RESULT and len(ports) == 1:
            hello = ports[0], roce.dst, ina.ring, ina.epoch, ina.msg
            if (*hello, self.port) in self.greeted or (*hello, None) in self.greeted:
                self.answered.add((ports[0], roce.dst, ina.ring, ina.session))

    def passes_between_strangers(self, roce: Roce) -> bool:
        """The same rule for addresses between which no ring has data: there, all that is not stopped passes."""
        entry, ina = self.connection(roce), roce.ina()
        if not roce.starts_message or not roce.icrc_is_right():
            return entry is None or entry.state is State.FOREIGN
        if ina is None:
            self.strangers.pop(self.at_port(roce), None)
            return True
        state = self.after_foreign_header(entry, roce, ina)
        self.note(roce, state)
        return state is not State.BARRED

    def middle_or_last(self, index: int, roce: Roce, port: int) -> None:
        """The history's table (§3): the rows for other packets, and "never guess"."""
        if roce.icrc_is_right():
            self.overtake(roce, port)
        entry = self.connection(roce)
        if entry is None:
            return self.drop(index, "unclassified")
        entry.seen_ns = self.now
        if entry.state in (State.PLAIN, State.FOREIGN):
            return self.forward(index, roce.frame, port)
        if entry.state in STOPPED:
            return self.drop(index, STOPPED[entry.state])
        if self.is_swallowed(roce, entry):
            if not roce.icrc_is_right():
                return self.drop(index, "bad_icrc")
            self.rules.repeat(entry.rank, roce.psn)
            return self.drop(index, "repeat_swallowed")
        for message in entry.known.values():
            k = serial(roce.psn, message.psn, 24)
            if 0 <= k < message.count:
                if not roce.icrc_is_right():
                    return self.drop(index, "bad_icrc")
                if not self.fits(roce, message, k):
                    return self.drop(index, "length_mismatch")
                return self.into_slot(Packet(index, roce, entry.rank, message, k))
        if entry.floor is not None and serial(roce.psn, entry.floor, 24) < 0:
            return self.drop(index, "stale_repeat")
        if not roce.icrc_is_right():
            return self.drop(index, "bad_icrc")
        entry.the_flow.heard(roce.psn, self.now)
        if 0 <= serial(roce.psn, entry.the_flow.e, 24) < 2 * self.case.window * self.case.packets_per_message:
            entry.the_flow.reach(plus(roce.psn, 1))  # its sender has come so far
        self.rules.note_gap(entry.rank, roce.psn)
        return self.drop(index, "unknown_message")

    # -- the header of a member (§2)

    def message_of(self, ina: Ina, psn: int) -> Message:
        return Message(ina, psn, -(-(INA_LEN + ina.msg_len) // self.case.mtu))

    def refusal(self, ina: Ina, roce: Roce) -> str | None:
        """The reason why no state of the switch makes the header acceptable."""
        if ina.flags & RESULT:
            return "result_flag"
        if ina.flags & PARTIAL:
            return "partial_flag"
        if ina.flags:
            return "reserved_bits"
        if ina.collective not in (ALL_REDUCE, HELLO, BROADCAST, BARRIER):
            return "unsupported_collective"
        if ina.dtype >= TYPES or (ina.collective in (ALL_REDUCE, HELLO) and not is_reducible(ina)):
            return "unsupported_pair"
        if ina.root if ina.collective != BROADCAST else ina.root >= self.case.world:
            return "bad_root"
        if ina.collective == HELLO and (ina.msg or ina.msg_len):
            return "bad_hello"
        if ina.collective == HELLO and not ina.session:
            return "bad_nonce"
        if ina.collective == HELLO and ina.ack_timeout > 31:
            return "bad_ack_timeout"
        if ina.collective == BARRIER and ina.msg_len:
            return "barrier_data"
        if INA_LEN + ina.msg_len > self.case.max_message_bytes:
            return "message_too_long"
        if ina.msg_len % 4:
            return "partial_element"
        return None if self.fits(roce, self.message_of(ina, roce.psn), 0) else "length_mismatch"

    def fits(self, roce: Roce, message: Message, k: int) -> bool:
        """The opcode fits the packet's place, and its payload is an MTU, or in the last packet the rest (§2)."""
        last = k == message.count - 1
        place = "ONLY" if message.count == 1 else "FIRST" if k == 0 else "LAST" if last else "MIDDLE"
        rest = INA_LEN + message.ina.msg_len - (message.count - 1) * self.case.mtu
        return place in roce.kind and len(roce.payload) == (rest if last else self.case.mtu)

    # -- incarnations (§2a)

    def overtake(self, roce: Roce, port: int) -> None:
        """A packet after a waiting hello on its connection, by its port: the sender has passed that hello."""
        ina = roce.ina() if roce.opcode in RC_DATA else None
        for waiting in self.waiting:
            for hello in list(waiting):
                behind = hello.roce.connection == roce.connection and serial(roce.psn, hello.roce.psn, 24) > 0
                if behind and hello.port == port and (ina is None or ina.epoch == hello.ina.epoch):
                    waiting.remove(hello)
                    self.drop(hello.index, "hello_overtaken")

    def hello(self, hello: Waiting) -> None:
        ina, now = hello.ina, self.incarnation
        if now and hello.run == (now.epoch, now.nonce):
            return self.current_hello(hello, now)
        if now and ina.epoch < now.epoch:
            return self.drop(hello.index, "old_epoch")
        if ina.session in self.retired[-RETIRED_NONCES:]:
            return self.drop(hello.index, "retired_nonce")
        waiting = self.waiting[ina.rank]
        for other in waiting:
            if other.run == hello.run:
                same = (other.roce.connection, other.roce.psn) == (hello.roce.connection, hello.roce.psn)
                return self.drop(hello.index, "repeat_held" if same else "hello_conflict")
        for other in (w for waiting in self.waiting for w in waiting if w.run == hello.run):
            disagreement = disagreement_of(agreement(other.ina), agreement(ina))
            if disagreement:
                return self.drop(hello.index, disagreement)
        waiting.append(hello)
        self.fate[hello.index] = "held"
        if len(waiting) > WAITING_HELLOS:
            by_port = Counter(other.port for other in waiting)
            displaced = max(waiting[:-1], key=lambda other: by_port[other.port])  # the oldest of that port
            waiting.remove(displaced)
            self.drop(displaced.index, "hello_displaced")
        complete = [w for waiting in self.waiting for w in waiting if w.run == hello.run]
        if len(complete) == self.case.world:
            self.begin(complete, hello)

    def current_hello(self, hello: Waiting, now: Incarnation) -> None:
        ina, roce = hello.ina, hello.roce
        entry = self.connection(roce)
        if entry is None or entry is not now.connections[ina.rank]:
            return self.drop(hello.index, "hello_elsewhere")
        entry.seen_ns = self.now
        self.enter(Packet(hello.index, roce, ina.rank, Message(ina, roce.psn, 1), 0), entry)

    def begin(self, hellos: list[Waiting], last: Waiting) -> None:
        """`hellos` are in rank order."""
        self.end_incarnation()
        for waiting in self.waiting:
            for other in waiting:
                if other not in hellos:
                    self.drop(other.index, "hello_given_up")
            waiting.clear()
        messages = [Message(h.ina, h.roce.psn, 1) for h in hellos]
        flows = [Flow(h.roce, h.qp, h.ina.ack_timeout, Voice(turned_around(h.roce, h.qp)), self.now) for h in hellos]
        connections = [Connection(State.LIVE, self.now, h.ina.rank, h.ina.ack_timeout, 0, {0: message}, flow=flow)
                       for h, message, flow in zip(hellos, messages, flows)]
        self.connections |= {h.roce.connection: c for h, c in zip(hellos, connections)}
        self.strangers = {key: c for key, c in self.strangers.items() if key[0] not in self.connections}
        session, self.begun = FIRST_SESSION + self.begun, self.begun + 1
        self.incarnation = Incarnation(*last.run, session, connections, [h.port for h in hellos],
                                       [h.roce.frame[6:12] for h in hellos], self.now)
        for h, message in zip(hellos, messages):
            self.into_slot(Packet(h.index, h.roce, h.ina.rank, message, 0))

    def end_incarnation(self) -> None:
        if self.incarnation is None:
            return
        for slot in self.slots.values():
            for packet in slot.packets.values():
                if not slot.released:
                    self.drop(packet.index, "incarnation_flush")
        self.slots.clear()
        for connection in self.incarnation.connections:
            connection.state = State.DEAD
        self.retired.append(self.incarnation.nonce)

    # -- history (§3)

    def data_start(self, index: int, roce: Roce, ina: Ina) -> None:
        now, entry = self.incarnation, self.connection(roce)
        if now is None:
            return self.drop(index, "no_connection")
        if ina.epoch != now.epoch:
            return self.drop(index, "wrong_epoch")
        if ina.session != now.session:
            return self.drop(index, "wrong_session")
        if entry is None or entry is not now.connections[ina.rank]:
            return self.drop(index, "no_connection")
        entry.seen_ns = self.now
        self.enter(Packet(index, roce, ina.rank, self.message_of(ina, roce.psn), 0), entry)

    def enter(self, packet: Packet, connection: Connection) -> None:
        """The history's table (§3): the rows for FIRST and ONLY."""
        window = self.case.window
        msg = 0 if packet.message.ina.collective == HELLO else packet.message.ina.msg
        ahead = serial(msg, connection.newest, 32)
        if ahead <= -2 * window:
            return self.drop(packet.index, "stale_repeat")
        if ahead > window:
            return self.drop(packet.index, "window_exceeded")
        if self.contradicts(connection.known, msg, packet.message):
            return self.drop(packet.index, "history_conflict")
        connection.known.setdefault(msg, packet.message)
        if ahead > 0:
            connection.newest = msg  # even if the slot then drops the packet
            for old in sorted(connection.known, key=lambda m: serial(m, msg, 32)):
                if serial(old, msg, 32) <= -2 * window:
                    gone = connection.known.pop(old)  # a hole that leaves has no PSN and does not change the floor
                    connection.floor = (gone.psn + gone.count) % (1 << 24)
        self.into_slot(packet)

    @staticmethod
    def contradicts(known: dict[int, Message], msg: int, said: Message) -> bool:
        """Whether it differs from what is known of the message, or lies inside another: a host numbers packets without overlap."""
        if msg in known:
            noted = known[msg]
            return (noted.psn, noted.count, agreement(noted.ina)) != (said.psn, said.count, agreement(said.ina))
        before = [m for number, m in known.items() if serial(number, msg, 32) < 0]
        behind = [m for number, m in known.items() if serial(number, msg, 32) > 0]
        return (any(serial(said.psn, m.psn + m.count, 24) < 0 for m in before)
                or any(serial(m.psn, said.psn + said.count, 24) < 0 for m in behind))

    # -- slots (§4)

    @staticmethod
    def terms(packet: Packet) -> tuple[int, ...]:
        return *agreement(packet.message.ina), len(packet.roce.payload)

    def place_of(self, msg: int, k: int) -> int:
        return msg % (2 * self.case.window) * self.case.packets_per_message + k

    def into_slot(self, packet: Packet) -> None:
        msg = packet.message.ina.msg
        where = self.place_of(msg, packet.k)
        terms = self.terms(packet)
        slot = self.slots.get(where)
        age = serial(msg, slot.tag, 32) if slot else 1  # how much newer the packet is than the slot
        if age < 0:
            return self.drop(packet.index, "stale_repeat")
        if age > 0:
            if slot and not slot.released:
                return self.drop(packet.index, "window_violation")
            slot = self.slots[where] = Slot(msg, terms, self.now)
        assert slot is not None
        disagreement = disagreement_of(slot.terms, terms)
        if disagreement:
            return self.drop(packet.index, disagreement)
        if slot.released:
            self.fate[packet.index] = "cached-repeat"
            return self.emit(packet, slot, packet.index, "cached-result")
        assert self.incarnation
        flow = self.incarnation.connections[packet.rank].the_flow
        flow.heard(packet.roce.psn, self.now)
        if packet.rank in slot.packets:
            self.drop(packet.index, "repeat_held")  # the first copy stays
        else:
            slot.packets[packet.rank] = packet
            self.fate[packet.index] = "held"
            self.incarnation.news_ns = self.now
            flow.took(packet.roce.psn)
        self.rules.note_gap(packet.rank, packet.roce.psn)
        if len(slot.packets) == self.case.world and slot.result is None:
            self.complete(slot, packet.index)

    def complete(self, slot: Slot, last: int) -> None:
        ina = slot.packets[0].message.ina
        slot.result = result_of(ina, [slot.packets[r].data for r in range(self.case.world)])
        self.completed += 1
        self.release(last)

    def release(self, last: int) -> None:
        """§9, R1: results leave in the order of message and packet."""
        while slot := self.ready():
            assert self.incarnation
            msg, k = self.incarnation.next_out
            ends = k == slot.packets[0].message.count - 1
            self.incarnation.next_out = (msg + 1, 0) if ends else (msg, k + 1)
            self.incarnation.next_out_since_ns = self.now
            gap = any(c.the_flow.lacks_packets for c in self.incarnation.connections)
            slot.released = True
            for own in (slot.packets[r] for r in range(self.case.world)):
                self.fate[own.index] = "aggregated"
                self.leave(own, slot, last, asks=gap and self.ready() is None)

    def ready(self) -> Slot | None:
        """The slot whose results leave next, if they can."""
        assert self.incarnation
        slot = self.slots.get(self.place_of(*self.incarnation.next_out))
        if slot is None or slot.tag != self.incarnation.next_out[0] or slot.released:
            return None
        return slot if slot.result is not None else None

    def leave(self, own: Packet, slot: Slot, last: int, asks: bool) -> None:
        """A result leaves for the first time. `asks`: for an acknowledgement, even if its sender did not."""
        assert self.incarnation
        roce, flow = own.roce, self.incarnation.connections[own.rank].the_flow
        frame, at = roce.frame, roce.bth_at + 8
        if asks:
            frame = frame[:at] + bytes([frame[at] | 0x80]) + frame[at + 1:]
        self.emit(own._replace(roce=replace(roce, frame=frame)), slot, last, "result")
        flow.left(roce.psn, self.now)
        if frame[at] & 0x80 and flow.timed is None:
            flow.timed = roce.psn, self.now

    def emit(self, own: Packet, slot: Slot, cause: int, kind: str) -> None:
        """The result packet of a rank (§5). `own` gives the headers; for a repeat it is the repeat."""
        assert slot.result is not None and self.incarnation is not None
        roce, header = own.roce, b""
        if own.k == 0:
            ina = roce.ina()
            assert ina is not None
            said = ina._replace(flags=RESULT, session=self.incarnation.session)
            if ina.collective == HELLO:
                said = said._replace(msg=ina.session)
            header = Ina.LAYOUT.pack(*said)
        pad = roce.frame[roce.payload_end:roce.end]
        frame = roce.frame[:roce.payload_at] + header + slot.result + pad
        frame += icrc(frame, roce.ip_at, roce.bth_at, roce.end)
        assert len(frame) == len(roce.frame)
        contributors = tuple(slot.packets[r].index for r in range(self.case.world))
        for port in self.egress(frame, self.port_of_source[roce.frame[6:12]])[0]:
            self.sent.append(Sent(frame, cause, kind, port, own.rank, slot.tag, own.k, contributors))
