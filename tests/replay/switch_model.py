# SPDX-License-Identifier: BSD-3-Clause
"""A slow and simple second implementation of docs/protocol.md (§ means that page): one ring, one frame at a time.

The switch may be one of a tree: tree.py has its place there. What it does about losses and late ranks is in
recovery_rules.py. It shares only the names of the drops with the switch, those of docs/drops.md.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, Protocol, Sequence

from fold import AS_OPERATOR, ELEMENT_BYTES, TYPES, fold, is_reducible
from operators import FIRST_NUMBER, are_alike, by_number, fold_by, is_table, left_of, may_be_table
from recovery_model import Farewell, Flow, Voice, plus, turned_around
from recovery_rules import Rules
from roce import (BARRIER, BROADCAST, ALL_REDUCE, HELLO, INA_LEN, PARTIAL, RC_DATA, RC_OTHER_REQUESTS, RESULT,
                  SEND_LAST_INVALIDATE, VERSIONS, Ina, Roce, icrc, parse_roce, serial)
from tree import PARENT, Child, Kind, Line, Place, Ring, Tree, digest_of

WAITING_HELLOS = 4  # of each child
RETIRED_NONCES = 16
STATION_NS = 300 * 10**9  # l2.aging_s unless configured
AGEING_NS = 600 * 10**9  # connections.aging_s unless configured
SHORTEST_ACK_TIMEOUT = 12  # 1 .. 11 count as that
UNTOLD_DEAD_NS = 3600 * 10**9


# -- reduction


def result_of(ina: Ina, parts: list[bytes], ranges: Sequence[Child]) -> bytes:
    """The result of all children's data, in their order (§2, collective)."""
    if ina.collective == BROADCAST:  # without the root's, the last one's, which nobody reads
        return next((part for part, child in zip(parts, ranges) if child.covers(ina.root)), parts[-1])
    return fold(ina.op, ina.dtype, parts)


# -- state


class Configuration(Ring, Place, Protocol):
    """The switch's configuration of ports and of its ring."""

    @property
    def stations(self) -> Sequence[Sequence[str]]: ...  # MAC addresses behind each port
    @property
    def operators(self) -> Sequence[str]: ...  # that the switch grants to the ring
    @property
    def first_session(self) -> int: ...
    @property
    def world(self) -> int: ...
    @property
    def packets_per_message(self) -> int: ...


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


def said_in_hello(ina: Ina) -> tuple[int, ...]:
    """The fields of hellos on which all must agree; their data are compared by themselves."""
    return ina.op, ina.dtype


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
    line: int = -1
    ack_timeout: int = 0
    newest: int = 0  # M
    known: dict[int, Message] = field(default_factory=dict)  # messages M-2N+1 .. M, holes left out
    floor: int | None = None  # None until a message has left: nothing is "before" it until then
    flow: Flow | None = None  # of a connection that was admitted
    farewell: Farewell | None = None  # of one whose incarnation the running one has ended

    @property
    def the_flow(self) -> Flow:
        assert self.flow is not None
        return self.flow


class Packet(NamedTuple):
    """A packet for a slot."""

    index: int  # of the input frame
    roce: Roce
    line: int
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
    packets: dict[int, Packet] = field(default_factory=dict)  # by line; kept to explain differences
    sum: bytes | None = None  # of the children's data
    has_climbed: bool = False  # the partial sum has left
    result: bytes | None = None  # on the root the sum, otherwise what the parent has sent
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
    line: int
    heard: int = 0  # it, or a repeat of it, was the switch's so many-th hello

    @property
    def qp(self) -> int:
        return told_qp(self.ina)

    @property
    def run(self) -> Run:
        return self.ina.epoch, self.ina.session

    @property
    def table(self) -> bytes:
        return table_of(self.roce)


Run = tuple[int, int]  # (epoch, nonce)


def run_of(ina: Ina) -> Run:
    """Of a hello, or of its result."""
    return ina.epoch, ina.msg if ina.flags & RESULT else ina.session


def is_hello(roce: Roce, ina: Ina) -> bool:
    """What has other data than a table of operators is none (§2a)."""
    return ina.collective == HELLO and may_be_table(ina.version, len(table_of(roce)))


def table_of(hello: Roce) -> bytes:
    return hello.payload[INA_LEN:]


def told_qp(ina: Ina) -> int:
    """The sender's own queue pair; 0: not told."""
    return ina.qp if ina.qp < 1 << 24 else 0


def message_zero(ina: Ina, psn: int) -> Message:
    """Of a hello, a switch's too: that has other things in the places of number and root."""
    return Message(ina._replace(msg=0, root=0), psn, 1)


@dataclass
class Climb:
    """A complete set of hellos that went to the parent as one."""

    frame: bytes
    hello: Waiting  # of the last child
    last_ns: int


@dataclass
class Cursor:
    """The message and packet that leave next, in one direction."""

    msg: int = 0
    k: int = 0
    since_ns: int = 0

    def advance(self, count: int, now: int) -> None:
        """The message has `count` packets."""
        self.msg, self.k = (self.msg + 1, 0) if self.k == count - 1 else (self.msg, self.k + 1)
        self.since_ns = now


@dataclass
class Incarnation:
    epoch: int
    nonce: int
    session: int
    parents_session: int  # 0 on the root
    connections: list[Connection]  # by line
    ports: list[int]  # by child, those of the hellos
    stations: dict[bytes, int]  # source MACs of the hellos of ranks: their ports
    operators: dict[int, str]  # by number (§12)
    news_ns: int  # when anybody last brought something new
    up: Cursor  # of partial sums; unused on the root
    down: Cursor  # of results


OWN_KINDS = "resent", "ack", "nak", "rnr-nak", "keep-alive"  # frames that the switch makes itself; in a tree also "climb"


@dataclass(frozen=True)
class Sent:
    """One frame that leaves."""

    frame: bytes
    cause: int | None  # index of the input frame; None: a timer
    kind: str  # forward, flood, result, partial, cached-result, climb, or one of OWN_KINDS
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
        self.tree = Tree(case)
        self.neighbours = self.tree.neighbours()
        self.port_of_source = {bytes.fromhex(m.replace(":", "")): i for i, macs in enumerate(case.stations) for m in macs}
        self.fdb: dict[bytes, tuple[int, int]] = {}  # station: port, time of its last frame
        self.connections: dict[Key, Connection] = {}  # of the ring
        self.strangers: dict[tuple[Key, int], Connection] = {}  # all others: what each port's packets have shown
        self.waiting: list[list[Waiting]] = [[] for _ in case.children]  # by child, oldest first
        self.climbs: dict[Run, Climb] = {}
        self.hellos_heard = 0
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
        roce = parse_roce(frame)
        self.treat(index, frame, port, roce)
        if roce and roce.opcode in RC_DATA and (roce.src, roce.dst) in self.neighbours:
            self.tell_if_ended(roce, port)

    def tell_if_ended(self, roce: Roce, port: int) -> None:
        """§2a, "Told": a packet on a connection of the incarnation that the running one has ended."""
        entry = self.connections.get(roce.connection)
        if entry and entry.state is State.DEAD and entry.farewell and roce.icrc_is_right():
            self.rules.tell(entry.farewell, entry.the_flow, roce, port)

    def treat(self, index: int, frame: bytes, port: int, roce: Roce | None) -> None:
        if not frame[6] & 1 and not (roce and self.between_neighbours(roce) and self.is_between_switches(port)):
            self.fdb[frame[6:12]] = port, self.now  # from every frame, also those dropped below
        if frame[:5] == b"\x01\x80\xc2\x00\x00" and frame[5] <= 0x0F:  # IEEE 802.1D 7.12.6
            return self.drop(index, "link_local")
        if roce and self.enters_elsewhere(roce, port):
            return self.drop(index, "wrong_port")
        if roce and (roce.src, roce.dst) in self.neighbours:
            if roce.opcode in RC_DATA:
                return self.classify(index, roce, port)
            if roce.opcode in RC_OTHER_REQUESTS:
                return self.other_request(index, roce, port)
        elif roce and roce.opcode in RC_DATA and (reason := self.stopped_between_strangers(roce)):
            return self.drop(index, reason)
        if roce and self.response_is_absorbed(roce):
            return self.drop(index, "nak_mended")
        self.forward(index, frame, port)

    def is_between_switches(self, port: int) -> bool:
        """The port of the parent or of a child that is a switch."""
        sides = [PARENT] * bool(self.tree.parent) + list(range(len(self.tree.children)))
        return any(self.tree.is_switch(side) and self.tree.fixed_port(side) == port for side in sides)

    def response_is_absorbed(self, roce: Roce) -> bool:
        """An ACK or NAK for a rank whose successor is the source."""
        if not roce.icrc_is_right():
            return False
        line = self.neighbours.get((roce.dst, roce.src))
        live = None if line is None else self.live(line)
        if line is None or live is None or live.the_flow.qp != roce.qp or roce.qp == 0:
            self.rules.take_late(roce, self.port)
            return False
        return self.rules.absorbs(roce, self.line(line))

    def say(self, frame: bytes, kind: str, rank: int, port: int, msg: int | None = None, k: int | None = None) -> None:
        """A frame of the switch's own."""
        self.sent.append(Sent(frame, self.cause, kind, port, rank, msg, k, ns=self.now))

    def line(self, number: int) -> Line:
        return self.tree.lines[number]

    def live(self, line: int) -> Connection | None:
        """The admitted connection, unless its queue pair was used for something else since."""
        if self.incarnation is None:
            return None
        connection = self.incarnation.connections[line]
        return connection if connection in self.connections.values() else None

    def port_of_side(self, side: int) -> int:
        port = self.bound_port_of_side(side)
        assert port is not None
        return port

    def stalled(self) -> tuple[Slot, int] | None:
        """The slot whose sum leaves next, if it waits for children, and since when."""
        if self.incarnation is None:
            return None
        cursor = self.incarnation.up if self.tree.parent else self.incarnation.down
        slot = self.slot_at(cursor)
        return None if slot is None or slot.sum is not None else (slot, max(slot.begun_ns, cursor.since_ns))

    def oldest_incomplete(self) -> Slot | None:
        """The slot whose results leave next, if anybody's packet has come for it."""
        return self.slot_at(self.incarnation.down) if self.incarnation else None

    def slot_at(self, cursor: Cursor) -> Slot | None:
        slot = self.slots.get(self.place_of(cursor.msg, cursor.k))
        return slot if slot and slot.tag == cursor.msg and not slot.released else None

    def port_of(self, station: bytes) -> int | None:
        """The port of a living incarnation's member, otherwise that of the station's last frame."""
        if self.incarnation and station in self.incarnation.stations:
            return self.incarnation.stations[station]
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
            return [p for p in range(len(self.case.stations)) if p != ingress], False
        return [port] if port != ingress else [], True

    def drop(self, index: int, reason: str) -> None:
        self.fate[index] = "drop." + reason

    def enters_elsewhere(self, roce: Roce, port: int) -> bool:
        """§3, Ports: RoCE between two neighbours, in either direction, that enters by another port than its source's."""
        return self.between_neighbours(roce) and self.bound_port(roce.src) not in (None, port)

    def between_neighbours(self, roce: Roce) -> bool:
        return (roce.src, roce.dst) in self.neighbours or (roce.dst, roce.src) in self.neighbours

    def bound_port(self, member: str) -> int | None:
        return self.bound_port_of_side(self.tree.side_of(self.tree.members.index(member)))

    def bound_port_of_side(self, side: int) -> int | None:
        """The port from the configuration, or from its hello for the incarnation."""
        fixed = self.tree.fixed_port(side)
        if fixed is not None or self.incarnation is None:
            return fixed
        return self.incarnation.ports[side]

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
        line = self.line(self.neighbours[roce.src, roce.dst])
        refusal = self.refusal(ina, roce, line)
        if refusal:
            return self.drop(index, refusal)
        if ina.collective != HELLO:
            return self.data_start(index, roce, ina, line)
        if line.kind is Kind.ENTERING:
            return self.result_of_hello(index, roce, ina, line)
        self.hellos_heard += 1
        self.hello(Waiting(index, roce, ina, port, self.now, self.now, line.number, self.hellos_heard))

    def repeated_start(self, roce: Roce, ina: Ina) -> str | None:
        """§9, R4: of a rank's packet below s only the session is looked at. The reason for which it is dropped."""
        now, entry = self.incarnation, self.connection(roce)
        if now is None or entry is None or not self.is_swallowed(roce, entry):
            return None
        line = self.line(entry.line)
        if self.tree.is_switch(line.sender) and (refusal := self.wrong_flags(ina, line)):
            return refusal
        if line.kind is Kind.ENTERING and is_hello(roce, ina) and run_of(ina) != (now.epoch, now.nonce):
            return None
        if ina.session != self.session_from(line):
            if not is_hello(roce, ina) or line.kind is Kind.ENTERING:
                return "wrong_session"
            if (ina.epoch, ina.session) != (now.epoch, now.nonce):
                return None
        entry.seen_ns = self.now
        self.rules.repeat(line, roce.psn)
        return "repeat_swallowed"

    def session_from(self, line: Line) -> int:
        """That messages on the line have when they come."""
        assert self.incarnation
        return self.incarnation.parents_session if line.kind is Kind.ENTERING else self.incarnation.session

    def is_swallowed(self, roce: Roce, entry: Connection) -> bool:
        return (entry.state is State.LIVE and serial(roce.psn, entry.the_flow.s, 24) < 0
                and self.rules.may_answer(entry.line))

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
            held = any(not self.has_left(slot, entry.line) and entry.line in slot.packets for slot in self.slots.values())
            if held or self.now - entry.seen_ns <= AGEING_NS:
                entry.seen_ns = self.now
                return self.interleave(index, roce, port, entry)
        self.note(roce, State.PLAIN)
        self.forward(index, roce.frame, port)

    def stranger(self, ina: Ina, roce: Roce) -> str | None:
        """Why a header is foreign (§3, Belonging)."""
        ips = self.case.members
        if ina.version not in VERSIONS:
            return "unknown_version"
        if ina.ring != self.case.ring:
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
        self.foreign[why] += 1
        if ina.flags & PARTIAL:
            if entry is None or entry.state not in (State.LIVE, State.DEAD):
                self.note(roce, State.BARRED)
            return self.drop(index, "partial_of_unknown_ring")
        state = self.after_foreign_header(entry, roce, ina)
        if entry and entry.state is State.DEAD and is_hello(roce, ina):
            return self.drop(index, "dead_connection")
        if entry and entry.state not in (State.LIVE, State.DEAD) or is_hello(roce, ina) and entry is None:
            self.note(roce, state)
        if state is State.BARRED or entry and entry.state is State.DEAD:
            return self.drop(index, "unannounced")
        if entry and entry.state is State.LIVE:
            return self.interleave(index, roce, port, entry)
        self.forward(index, roce.frame, port)

    def after_foreign_header(self, entry: Connection | None, roce: Roce, ina: Ina) -> State:
        """After a hello that passed, a ring's messages pass once another switch has answered that host's hello. The
        hello alone opens nothing: a host that goes back to its hello repeats the hello too."""
        if is_hello(roce, ina):
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

    def stopped_between_strangers(self, roce: Roce) -> str | None:
        """The same rule for addresses between which no ring has data: there, all that is not stopped passes."""
        entry, ina = self.connection(roce), roce.ina()
        if not roce.starts_message or not roce.icrc_is_right():
            return None if entry is None or entry.state is State.FOREIGN else "unannounced"
        if ina is None:
            self.strangers.pop(self.at_port(roce), None)
            return None
        if ina.flags & PARTIAL:
            self.note(roce, State.BARRED)
            return "partial_of_unknown_ring"
        state = self.after_foreign_header(entry, roce, ina)
        self.note(roce, state)
        return "unannounced" if state is State.BARRED else None

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
            self.rules.repeat(self.line(entry.line), roce.psn)
            return self.drop(index, "repeat_swallowed")
        for message in entry.known.values():
            k = serial(roce.psn, message.psn, 24)
            if 0 <= k < message.count:
                if not roce.icrc_is_right():
                    return self.drop(index, "bad_icrc")
                if not self.fits(roce, message, k):
                    return self.drop(index, "length_mismatch")
                return self.into_slot(Packet(index, roce, entry.line, message, k))
        if entry.floor is not None and serial(roce.psn, entry.floor, 24) < 0:
            return self.drop(index, "stale_repeat")
        if not roce.icrc_is_right():
            return self.drop(index, "bad_icrc")
        entry.the_flow.heard(roce.psn, self.now)
        if 0 <= serial(roce.psn, entry.the_flow.e, 24) < 2 * self.case.window * self.case.packets_per_message:
            entry.the_flow.reach(plus(roce.psn, 1))  # its sender has come so far
        self.rules.note_gap(self.line(entry.line), roce.psn)
        return self.drop(index, "unknown_message")

    # -- the header of a member (§2)

    def message_of(self, ina: Ina, psn: int) -> Message:
        return Message(ina, psn, -(-(INA_LEN + ina.msg_len) // self.case.mtu))

    def refusal(self, ina: Ina, roce: Roce, line: Line) -> str | None:
        """The reason why no state of the switch makes the header acceptable."""
        if flags := self.wrong_flags(ina, line):
            return flags
        if ina.collective not in (ALL_REDUCE, HELLO, BROADCAST, BARRIER):
            return "unsupported_collective"
        if not self.has_operation(ina):
            return "unsupported_pair"
        climbs = ina.collective == HELLO and ina.flags & PARTIAL
        if not climbs and (ina.root if ina.collective != BROADCAST else ina.root >= self.case.world):
            return "bad_root"
        if ina.collective == HELLO and (wrong := self.wrong_hello(ina, roce, line)):
            return wrong
        if ina.collective == BARRIER and ina.msg_len:
            return "barrier_data"
        if INA_LEN + ina.msg_len > self.case.max_message_bytes:
            return "message_too_long"
        if ina.msg_len % ELEMENT_BYTES[ina.dtype]:
            return "partial_element"
        return None if self.fits(roce, self.message_of(ina, roce.psn), 0) else "length_mismatch"

    @staticmethod
    def has_operation(ina: Ina) -> bool:
        """Of the users' own operators only all-reduces are made."""
        if ina.dtype == AS_OPERATOR:
            return ina.collective == ALL_REDUCE and ina.op >= FIRST_NUMBER
        return ina.dtype < TYPES and (ina.collective not in (ALL_REDUCE, HELLO) or is_reducible(ina.op, ina.dtype))

    def wrong_flags(self, ina: Ina, line: Line) -> str | None:
        """By kind of child, or from the parent."""
        if line.kind is Kind.ENTERING:
            if ina.flags & (RESULT | PARTIAL) != RESULT:
                return "raw_from_parent"
        elif ina.flags & RESULT:
            return "result_flag"
        elif bool(ina.flags & PARTIAL) != self.tree.is_switch(line.sender):
            return "partial_flag" if ina.flags & PARTIAL else "raw_from_switch"
        return "reserved_bits" if ina.flags & ~(RESULT | PARTIAL) else None

    def wrong_hello(self, ina: Ina, roce: Roce, line: Line) -> str | None:
        is_ranks = not ina.flags
        nonce = run_of(ina)[1]
        has_table = may_be_table(ina.version, ina.msg_len) and is_table(table_of(roce), may_lack=not is_ranks)
        if not has_table or is_ranks and ina.msg:
            return "bad_hello"
        if not nonce:
            return "bad_nonce"
        if ina.ack_timeout > 31:
            return "bad_ack_timeout"
        if self.tree.has_switches and not told_qp(ina):
            return "queue_pair_untold"
        if ina.flags & PARTIAL and ina.msg != digest_of(self.case):
            return "ring_differs"
        if ina.flags & PARTIAL and ina.root != self.tree.children[line.sender].lo:
            return "range_differs"
        return None

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
                    self.take_out(hello, "hello_overtaken")

    def take_out(self, hello: Waiting, reason: str) -> None:
        """Its set is no longer complete, and climbs no more."""
        self.waiting[hello.line].remove(hello)
        self.climbs.pop(hello.run, None)
        self.drop(hello.index, reason)

    def hello(self, hello: Waiting) -> None:
        ina, now = hello.ina, self.incarnation
        if now and hello.run == (now.epoch, now.nonce):
            return self.current_hello(hello, now)
        if now and ina.epoch < now.epoch:
            return self.drop(hello.index, "old_epoch")
        if ina.session in self.retired[-RETIRED_NONCES:]:
            return self.drop(hello.index, "retired_nonce")
        waiting = self.waiting[hello.line]
        for other in waiting:
            if other.run == hello.run:
                same = (other.roce.connection, other.roce.psn) == (hello.roce.connection, hello.roce.psn)
                if same:
                    other.heard = hello.heard
                return self.drop(hello.index, "repeat_held" if same else "hello_conflict")
        disagreement = self.disagreement_with_set(hello.roce, ina, hello.run)
        if disagreement:
            return self.drop(hello.index, disagreement)
        waiting.append(hello)
        self.fate[hello.index] = "held"
        if len(waiting) > WAITING_HELLOS:
            by_port = Counter(other.port for other in waiting)
            displaced = max(waiting[:-1], key=lambda other: by_port[other.port])  # the oldest of that port
            self.take_out(displaced, "hello_displaced")
        if complete := self.complete_set(hello.run):
            if self.tree.parent:
                self.climb(complete)
            else:
                self.begin(complete, None)

    def disagreement_with_set(self, roce: Roce, ina: Ina, run: Run) -> str | None:
        """Of a hello, or of its result, with those that wait."""
        own = said_in_hello(ina)
        for other in self.set_of(run):
            if disagreement := disagreement_of(said_in_hello(other.ina), own):
                return disagreement
            if not are_alike(other.table, table_of(roce)):
                return "operator_tables_differ"
        return None

    def set_of(self, run: Run) -> list[Waiting]:
        """The hellos that wait for a run, by child."""
        return [w for waiting in self.waiting for w in waiting if w.run == run]

    def complete_set(self, run: Run) -> list[Waiting] | None:
        hellos = self.set_of(run)
        return hellos if len(hellos) == len(self.tree.children) else None

    # -- climbing hellos

    def climb(self, hellos: list[Waiting]) -> None:
        last = hellos[-1]
        climb = self.climbs[last.run] = Climb(self.climbing_frame(last), last, self.now)
        self.send_climb(climb)

    def climbing_frame(self, last: Waiting) -> bytes:
        return framed(last.roce, self.climbing_header(last.ina), self.table_of_set(last.run))

    def table_of_set(self, run: Run) -> bytes:
        """What is left of the operators at this switch (§12.2)."""
        return left_of([hello.table for hello in self.set_of(run)], self.case.operators)

    def climbing_header(self, ina: Ina) -> Ina:
        return ina._replace(flags=PARTIAL, root=self.tree.lo, msg=digest_of(self.case))

    def send_climb(self, climb: Climb) -> None:
        climb.last_ns = self.now
        self.say(climb.frame, "climb", climb.hello.ina.rank, self.port_of_side(PARENT), 0, 0)

    def newest_climb(self) -> Climb | None:
        """Of the set whose hello, or a repeat of it, came last."""
        newest = max(self.climbs, key=lambda run: max(hello.heard for hello in self.set_of(run)), default=None)
        return None if newest is None else self.climbs[newest]

    def current_hello(self, hello: Waiting, now: Incarnation) -> None:
        roce = hello.roce
        entry = self.connection(roce)
        if entry is None or entry is not now.connections[hello.line]:
            return self.drop(hello.index, "hello_elsewhere")
        entry.seen_ns = self.now
        self.enter(Packet(hello.index, roce, hello.line, message_zero(hello.ina, roce.psn), 0), entry)

    def result_of_hello(self, index: int, roce: Roce, ina: Ina, line: Line) -> None:
        """From the parent: it begins what has climbed."""
        now, run = self.incarnation, run_of(ina)
        packet = Packet(index, roce, line.number, message_zero(ina, roce.psn), 0)
        if now and run == (now.epoch, now.nonce):
            entry = self.connection(roce)
            if entry is None or entry is not now.connections[line.number]:
                return self.drop(index, "hello_elsewhere")
            if ina.session != now.parents_session:
                return self.drop(index, "wrong_session")
            entry.seen_ns = self.now
            return self.enter(packet, entry)
        hellos = self.complete_set(run)
        if hellos is None:
            return self.drop(index, "total_without_set")
        disagreement = self.disagreement_with_set(roce, ina, run)
        if disagreement:
            return self.drop(index, disagreement)
        if left_of([table_of(roce), self.table_of_set(run)], self.case.operators) != table_of(roce):
            return self.drop(index, "operator_tables_differ")  # it names what has not gone up
        self.begin(hellos, packet)

    # -- the beginning

    def begin(self, hellos: list[Waiting], result: Packet | None) -> None:
        """`hellos` are by child. `result`: the parent's, by which a switch that has one begins."""
        self.rules.take_leave()
        self.end_incarnation()
        table = table_of(result.roce) if result else self.table_of_set(hellos[0].run)
        stays = self.runs_that_stay(hellos[0].run)
        for waiting in self.waiting:
            for other in waiting:
                if other not in hellos and other.run not in stays:
                    self.drop(other.index, "hello_given_up")
            waiting[:] = [other for other in waiting if other.run in stays]
        self.climbs = {run: climb for run, climb in self.climbs.items() if run in stays}
        packets = [Packet(h.index, h.roce, h.line, message_zero(h.ina, h.roce.psn), 0) for h in hellos]
        arrived = packets + [result] * (result is not None)
        connections = [self.admitted(packet) for packet in arrived]
        self.connections |= {packet.roce.connection: c for packet, c in zip(arrived, connections)}
        self.strangers = {key: c for key, c in self.strangers.items() if key[0] not in self.connections}
        session, self.begun = self.case.first_session + self.begun, self.begun + 1
        parents_session = the_ina(result.roce).session if result else 0
        stations = {h.roce.frame[6:12]: h.port for h in reversed(hellos) if not self.tree.is_switch(h.line)}
        self.incarnation = Incarnation(*hellos[0].run, session, parents_session, connections, [h.port for h in hellos],
                                       stations, by_number(table, self.case.operators), self.now, Cursor(), Cursor())
        for packet in arrived:
            self.into_slot(packet)

    def runs_that_stay(self, begun: Run) -> list[Run]:
        """Sets that have climbed and may have begun above: a host whose hello was acknowledged there says it no more."""
        newest = self.newest_climb()
        return [run for run, climb in self.climbs.items() if run != begun and (
            run[0] > begun[0] or run[0] == begun[0] and climb is newest)]

    def admitted(self, packet: Packet) -> Connection:
        ina, roce = the_ina(packet.roce), packet.roce
        qp = told_qp(ina)
        flow = Flow(roce, qp, ina.ack_timeout, Voice(turned_around(roce, qp)), self.now)
        return Connection(State.LIVE, self.now, packet.line, ina.ack_timeout, 0, {0: packet.message}, flow=flow)

    def end_incarnation(self) -> None:
        if self.incarnation is None:
            return
        for slot in self.slots.values():
            for packet in slot.packets.values():
                if not self.has_left(slot, packet.line):
                    self.drop(packet.index, "incarnation_flush")
        self.slots.clear()
        for connection in self.incarnation.connections:
            connection.state = State.DEAD
        self.retired.append(self.incarnation.nonce)

    # -- history (§3)

    def data_start(self, index: int, roce: Roce, ina: Ina, line: Line) -> None:
        now, entry = self.incarnation, self.connection(roce)
        if now is None:
            return self.drop(index, "no_connection")
        if ina.epoch != now.epoch:
            return self.drop(index, "wrong_epoch")
        if ina.session != self.session_from(line):
            return self.drop(index, "wrong_session")
        if entry is None or entry is not now.connections[line.number]:
            return self.drop(index, "no_connection")
        entry.seen_ns = self.now
        if ina.dtype == AS_OPERATOR and ina.op not in now.operators:
            return self.drop(index, "operator_not_granted")
        self.enter(Packet(index, roce, line.number, self.message_of(ina, roce.psn), 0), entry)

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
        msg, line = packet.message.ina.msg, self.line(packet.line)
        where = self.place_of(msg, packet.k)
        terms = self.terms(packet)
        slot = self.slots.get(where)
        age = serial(msg, slot.tag, 32) if slot else 1  # how much newer the packet is than the slot
        if age < 0:
            return self.drop(packet.index, "stale_repeat")
        if age > 0:
            if slot and not slot.released:
                return self.drop(packet.index, "window_violation")
            if line.kind is Kind.ENTERING:
                return self.drop(packet.index, "total_early")
            slot = self.slots[where] = Slot(msg, terms, self.now)
        assert slot is not None
        disagreement = disagreement_of(slot.terms, terms)
        if disagreement:
            return self.drop(packet.index, disagreement)
        if self.has_left(slot, packet.line):
            self.fate[packet.index] = "cached-repeat"
            return self.emit(packet, slot, packet.index, "cached-result")
        if line.kind is Kind.ENTERING and not slot.has_climbed:
            return self.drop(packet.index, "total_early")
        self.take(packet, slot, line)

    def take(self, packet: Packet, slot: Slot, line: Line) -> None:
        assert self.incarnation
        flow = self.incarnation.connections[packet.line].the_flow
        flow.heard(packet.roce.psn, self.now)
        if packet.line in slot.packets:
            self.drop(packet.index, "repeat_held")  # the first copy stays
        else:
            slot.packets[packet.line] = packet
            self.fate[packet.index] = "held"
            self.incarnation.news_ns = self.now
            flow.took(packet.roce.psn)
        self.rules.note_gap(line, packet.roce.psn)
        if line.kind is Kind.ENTERING:
            if slot.result is None:
                slot.result = packet.data
                self.release_results(packet.index)
        elif slot.sum is None and all(child in slot.packets for child in range(len(self.tree.children))):
            self.complete(slot, packet.index)

    def complete(self, slot: Slot, last: int) -> None:
        """All children's packets have come."""
        parts = [slot.packets[child].data for child in range(len(self.tree.children))]
        slot.sum = self.sum_of(slot.packets[0].message.ina, parts)
        self.completed += 1
        if self.tree.parent:
            return self.release_sums(last)
        slot.result = slot.sum
        self.release_results(last)

    def sum_of(self, ina: Ina, parts: list[bytes]) -> bytes:
        assert self.incarnation
        if ina.collective == HELLO:
            return left_of(parts, self.case.operators)
        if ina.dtype == AS_OPERATOR:
            return fold_by(self.incarnation.operators[ina.op], parts)
        return result_of(ina, parts, self.tree.children)

    def has_left(self, slot: Slot, line: int) -> bool:
        """Whether the slot's packet has left on the line."""
        return slot.has_climbed if self.line(line).kind is Kind.OUTGOING else slot.released

    def release_sums(self, last: int) -> None:
        """Partial sums leave in the order of message and packet. That of the hellos has climbed before."""
        assert self.incarnation
        cursor, line = self.incarnation.up, len(self.tree.children) - 1
        while (slot := self.slot_at(cursor)) and slot.sum is not None:
            own = slot.packets[line]
            cursor.advance(own.message.count, self.now)
            slot.has_climbed = True
            self.fate[own.index] = "aggregated"
            if own.message.ina.collective == HELLO:
                self.incarnation.connections[line].the_flow.left(own.roce.psn, self.now)
            else:
                following = self.slot_at(cursor)
                self.leave(own, slot, last, asks=self.has_gap() and not (following and following.sum is not None))

    def has_gap(self) -> bool:
        assert self.incarnation
        return any(c.the_flow.lacks_packets for c in self.incarnation.connections)

    def release_results(self, last: int) -> None:
        """§9, R1: results leave in the order of message and packet."""
        while slot := self.ready():
            assert self.incarnation
            self.incarnation.down.advance(slot.packets[0].message.count, self.now)
            gap = self.has_gap()
            slot.released = True
            for line in self.result_lines():
                own = slot.packets[line.number]
                self.fate[own.index] = "aggregated"
                self.leave(own, slot, last, asks=gap and self.ready() is None)

    def result_lines(self) -> list[Line]:
        """In the order of the children that get the results, the first one's from the parent; on the root, that send."""
        lines = [line for line in self.tree.lines if line.kind is not Kind.OUTGOING]
        return sorted(lines, key=lambda line: line.receiver) if self.tree.parent else lines

    def ready(self) -> Slot | None:
        """The slot whose results leave next, if they can."""
        assert self.incarnation
        slot = self.slot_at(self.incarnation.down)
        return slot if slot and slot.result is not None else None

    def leave(self, own: Packet, slot: Slot, last: int, asks: bool) -> None:
        """A result or partial sum leaves for the first time. `asks`: for an acknowledgement, even if its sender did not."""
        assert self.incarnation
        roce, flow = own.roce, self.incarnation.connections[own.line].the_flow
        frame, at = roce.frame, roce.bth_at + 8
        if asks:
            frame = frame[:at] + bytes([frame[at] | 0x80]) + frame[at + 1:]
        self.emit(own._replace(roce=replace(roce, frame=frame)), slot, last,
                  "partial" if self.line(own.line).kind is Kind.OUTGOING else "result")
        flow.left(roce.psn, self.now)
        if frame[at] & 0x80 and flow.timed is None and self.line(own.line).kind is not Kind.OUTGOING:
            flow.timed = roce.psn, self.now

    def outgoing_header(self, ina: Ina, line: Line) -> Ina:
        """What the switch changes in a header, of whatever flags, when its packet leaves on the line."""
        assert self.incarnation
        is_hello = ina.collective == HELLO
        if line.kind is Kind.OUTGOING:
            return self.climbing_header(ina) if is_hello else ina._replace(flags=PARTIAL,
                                                                           session=self.incarnation.parents_session)
        said = ina._replace(flags=RESULT, session=self.incarnation.session)
        return said._replace(msg=self.incarnation.nonce, root=0) if is_hello else said

    def data_for(self, slot: Slot, line: Line) -> bytes:
        data = slot.sum if line.kind is Kind.OUTGOING else slot.result
        assert data is not None
        return data

    def emit(self, own: Packet, slot: Slot, cause: int, kind: str) -> None:
        """The packet of a line as it leaves (§5). `own` gives the headers; for a repeat it is the repeat."""
        line, roce = self.line(own.line), own.roce
        header = self.outgoing_header(the_ina(roce), line) if own.k == 0 else None
        frame = framed(roce, header, self.data_for(slot, line))
        assert len(frame) == len(roce.frame)
        contributors = tuple(slot.packets[child].index for child in range(len(self.tree.children)))
        for port in self.egress(frame, self.port_of_source[roce.frame[6:12]])[0]:
            self.sent.append(Sent(frame, cause, kind, port, line.rank, slot.tag, own.k, contributors))


def the_ina(roce: Roce) -> Ina:
    ina = roce.ina()
    assert ina is not None
    return ina


def framed(roce: Roce, header: Ina | None, data: bytes) -> bytes:
    """A packet with other data, and another INA header if it has one. The pad stays."""
    said = b"" if header is None else Ina.LAYOUT.pack(*header)
    frame = roce.frame[:roce.payload_at] + said + data + roce.frame[roce.payload_end:roce.end]
    return frame + icrc(frame, roce.ip_at, roce.bth_at, roce.end)
