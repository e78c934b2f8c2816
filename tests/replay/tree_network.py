# SPDX-License-Identifier: BSD-3-Clause
"""A tree of model switches with model hosts, in memory: what arrives at each switch is a capture for weir-replay.

Hosts are those of docs/protocol.md §7, with go-back-N. Links take a microsecond, and lose, damage or repeat what the
network's rules name.
"""
from __future__ import annotations

import heapq
import random
import struct
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Callable, Iterator, NamedTuple, Sequence

from fold import BF16, E4M3, E5M2, ELEMENT_BYTES, F16, F32, F64
from operators import table
from recovery_model import (ACKNOWLEDGE, ACK, NAK, RNR, SEQUENCE_ERROR, UNLIMITED_CREDITS, ack_timeout_ns, follows, plus,
                            rebuilt, rnr_wait_ns, syndrome_of)
from roce import (ALL_REDUCE, BARRIER, HELLO, INA_LEN, MAGIC, RC_DATA, VERSION, VERSION_WITH_TABLE, Ina, Roce, Stamped,
                  describe, flipped, parse_roce, serial)
from switch_model import Sent, Switch, the_ina
from tree import Child, Parent

LINK_NS, SPACE_NS = 1000, 100  # a frame's way, and the time between a host's frames
LATE_NS = 30_000  # a switch may be so late when its timers run out, also several times in a row
STRANGER = bytes.fromhex("5254000000fe")
SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM, SEND_ONLY_IMM, SEND_ONLY = 0x00, 0x01, 0x03, 0x05, 0x04
FIRST_SESSION = 0x5E550100  # of the root; that of the n-th switch is so many times 0x100 larger
RING, EPOCH, NONCE = 7, 5, 0xA11CE


class Node(NamedTuple):
    """A switch and what is below it: switches, and numbers of ranks."""

    name: str
    below: tuple["Node | int", ...]


@dataclass(frozen=True)
class Message:
    """What all ranks say of a message. `elements` of each rank."""

    elements: int
    dtype: int = F32
    op: int = 0
    collective: int = ALL_REDUCE
    root: int = 0
    by: str = field(default="", repr=False)  # the operator that `op` is the number of

    @property
    def bytes(self) -> int:
        return 0 if self.collective == BARRIER else self.elements * ELEMENT_BYTES[self.dtype]

    def data(self, rank: int, number: int) -> bytes:
        """Some numbers, no NaN among them; for an operator of the users' own, anything."""
        rng = random.Random(f"{rank} {number} {self}")
        if self.dtype in (F32, F64):
            values = [rng.uniform(-1, 1) * 2.0 ** rng.randrange(-9, 9) for _ in range(self.elements)]
            return struct.pack(f"<{self.elements}{'f' if self.dtype == F32 else 'd'}", *values)[:self.bytes]
        largest = {F16: 0x5BFF, BF16: 0x42FF, E4M3: 0x67, E5M2: 0x5F}.get(self.dtype)
        size = ELEMENT_BYTES[self.dtype]
        codes = [rng.getrandbits(8 * size) for _ in range(self.bytes // size)]
        if largest is not None:
            sign = 1 << (8 * size - 1)
            codes = [code & sign | (code % sign) % (largest + 1) for code in codes]
        return b"".join(code.to_bytes(size, "little") for code in codes)


@dataclass(frozen=True)
class Ring:
    """A ring, its tree, and the switches' settings."""

    tree: Node
    mtu: int = 256
    window: int = 4
    max_message_bytes: int = 1024
    is_tied: bool = True  # the configuration ties ranks to their ports
    ack_timeout: int = 14
    ring: int = RING
    numbers: tuple[tuple[int, str], ...] = ()  # of operators, as the hosts' hellos have them
    loaded: tuple[tuple[str, tuple[str, ...]], ...] = ()  # operators, by switch

    @property
    def world(self) -> int:
        return ranks_below(self.tree)

    @property
    def table(self) -> bytes:
        return table(dict(self.numbers))

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(f"10.77.0.{rank + 1}" for rank in range(self.world))

    def packets(self, size: int) -> int:
        return -(-(INA_LEN + size) // self.mtu)


def ranks_below(node: Node | int) -> int:
    return node if isinstance(node, int) else sum(map(ranks_below, node.below))


def station(rank: int) -> bytes:
    return bytes.fromhex("525400000000")[:5] + bytes([rank + 1])


@dataclass(frozen=True)
class Place:
    """One switch's configuration. Port i is that of child i, then comes the parent's, then a stranger's."""

    name: str
    of: Ring
    children: tuple[Child, ...]
    parent: Parent | None
    first_session: int

    @property
    def ring(self) -> int:
        return self.of.ring

    @property
    def operators(self) -> tuple[str, ...]:
        return dict(self.of.loaded).get(self.name, ())

    @property
    def mtu(self) -> int:
        return self.of.mtu

    @property
    def window(self) -> int:
        return self.of.window

    @property
    def members(self) -> tuple[str, ...]:
        return self.of.members

    @property
    def world(self) -> int:
        return self.of.world

    @property
    def max_message_bytes(self) -> int:
        return self.of.max_message_bytes

    @property
    def packets_per_message(self) -> int:
        return -(-self.max_message_bytes // self.mtu)

    @property
    def stations(self) -> list[tuple[str, ...]]:
        ports: list[list[str]] = [[] for _ in range(len(self.children) + bool(self.parent))]
        for rank in range(self.world):
            below = [number for number, child in enumerate(self.children) if child.covers(rank)]
            ports[below[0] if below else -1].append(station(rank).hex(":"))
        return [*map(tuple, ports), (STRANGER.hex(":"),)]


def places(ring: Ring) -> list[Place]:
    """All switches, the root first."""
    found: list[Place] = []

    def visit(node: Node, lo: int, parent: Parent | None) -> None:
        children: list[Child] = []
        at = lo
        for below in node.below:
            for count, name in [(1, "")] * below if isinstance(below, int) else [(ranks_below(below), below.name)]:
                port = len(children) if name or ring.is_tied else None
                children.append(Child(at, at + count - 1, port, name))
                at += count
        own = Parent(parent.switch, len(children)) if parent else None
        found.append(Place(node.name, ring, tuple(children), own, FIRST_SESSION + 0x100 * len(found)))
        for child, below in zip(children, switches_in(node)):
            if below is not None:
                visit(below, child.lo, Parent(node.name, 0))

    visit(ring.tree, 0, None)
    return found


def switches_in(node: Node) -> Iterator[Node | None]:
    """One item for each child."""
    for below in node.below:
        yield from [None] * below if isinstance(below, int) else [below]


def links_of(ring: Ring) -> Iterator[tuple[str, str]]:
    """Each switch with each that is below it."""
    for place in places(ring):
        yield from ((place.name, child.switch or f"h{child.lo}") for child in place.children)


# -- hosts


def first_psn(rank: int, run: int = 0) -> int:
    """Of a rank's hello in a network's run, counted from 0. That of rank 0 soon wraps."""
    return (0xFFFFF8 + 0x1000 * rank + 0x100000 * run) % (1 << 24)


@dataclass
class Outgoing:
    """A packet of a host's own."""

    opcode: int
    header: Ina | None
    data: bytes


class Host:
    """A rank: a requester to its successor, a responder to its predecessor."""

    def __init__(self, network: "Network", rank: int, run: int) -> None:
        """`run`: which of the network's runs, counted from 0."""
        self.network, self.ring, self.rank, self.run = network, network.ring, rank, run
        psn, self.nonce = first_psn(rank, run), NONCE + run
        self.successor, self.predecessor = (rank + 1) % self.ring.world, (rank - 1) % self.ring.world
        self.first_psn = psn
        self.una = self.next = psn
        self.packets: dict[int, Outgoing] = {}
        self.starts: dict[int, int] = {}  # PSN of the FIRST of each message
        self.end = psn  # behind the last packet that may be sent
        self.messages: list[Message] = []
        self.session = 0
        self.timer = 0  # its number: a later one makes it void
        self.waits_for_buffer = False
        self.retries = 0
        self.repeats = 0  # packets
        self.free_ns = 0  # when its link is
        # responder
        self.expected = first_psn(self.predecessor, run)
        self.asked = False
        self.got: list[bytes] = []
        self.part = b""
        self.came: Ina | None = None
        self.sequence = 0
        self.missing_buffers = 0  # packets that find none

    def requester(self, rank: int) -> int:
        """A rank's queue pair to its successor."""
        return 0x100 + 0x1000 * self.run + rank

    def responder(self, rank: int) -> int:
        """A rank's queue pair from its predecessor."""
        return 0x200 + 0x1000 * self.run + rank

    def template(self, to: int, qp: int) -> Roce:
        """An empty packet to another host."""
        ip = bytearray(bytes.fromhex("4500002c000040004011000000000000") + bytes(4))
        ip[12:16], ip[16:20] = (bytes(map(int, self.ring.members[r].split("."))) for r in (self.rank, to))
        udp = (0xC000 + self.rank).to_bytes(2, "big") + bytes.fromhex("12b700180000")
        bth = bytes.fromhex("0440ffff00") + qp.to_bytes(3, "big") + bytes(4)
        frame = station(to) + station(self.rank) + b"\x08\x00" + bytes(ip) + udp + bth + bytes(4)
        roce = parse_roce(frame)
        assert roce
        return roce

    def to_successor(self) -> Roce:
        return self.template(self.successor, self.responder(self.successor))

    def header(self, /, **said: int) -> Ina:
        usual = Ina(MAGIC, VERSION_WITH_TABLE if self.ring.table else VERSION, op=0, dtype=0, flags=0, ring=self.ring.ring, rank=self.rank, world=self.ring.world,
                    msg=0, msg_len=0, epoch=EPOCH, session=self.session, collective=ALL_REDUCE, ack_timeout=0, root=0, qp=0)
        return usual._replace(**said)

    def hello_header(self) -> Ina:
        return self.header(session=self.nonce, collective=HELLO, msg_len=len(self.ring.table),
                           ack_timeout=self.ring.ack_timeout, qp=self.requester(self.rank))

    def say_hello(self) -> None:
        self.put([Outgoing(SEND_ONLY_IMM, self.hello_header(), self.ring.table)])

    def frame(self, psn: int) -> bytes:
        packet = self.packets[psn]
        payload = packet.data if packet.header is None else Ina.LAYOUT.pack(*packet.header) + packet.data
        ends = packet.opcode in (SEND_LAST_IMM, SEND_ONLY_IMM)
        immediate = psn.to_bytes(4, "big") if ends else b""
        return rebuilt(self.to_successor(), packet.opcode, psn, immediate, payload, 0, asks=ends)

    def put(self, packets: list[Outgoing]) -> None:
        self.starts[len(self.starts)] = self.end
        for packet in packets:
            self.packets[self.end] = packet
            self.end = plus(self.end, 1)
        self.pump()

    def post(self) -> None:
        """Sends the next messages for which the window has room (§7)."""
        while len(self.starts) <= len(self.messages) and self.session and len(self.starts) - len(self.got) < self.ring.window:
            number = len(self.starts)
            self.put(list(self.packets_of(number, self.messages[number - 1])))

    def packets_of(self, number: int, message: Message) -> Iterator[Outgoing]:
        header = self.header(op=message.op, dtype=message.dtype, msg=number, msg_len=message.bytes,
                             collective=message.collective, root=message.root)
        room, data = self.ring.mtu - INA_LEN, message.data(self.rank, number)
        parts = [data[:room]] + [data[at:at + self.ring.mtu] for at in range(room, len(data), self.ring.mtu)]
        for k, part in enumerate(parts):
            last = k == len(parts) - 1
            opcode = (SEND_ONLY_IMM if last else SEND_FIRST) if k == 0 else SEND_LAST_IMM if last else SEND_MIDDLE
            yield Outgoing(opcode, None if k else header, part)

    @property
    def is_alive(self) -> bool:
        return self.network.hosts[self.rank] is self

    def pump(self) -> None:
        if self.waits_for_buffer or not self.is_alive:
            return
        while self.next != self.end:
            self.send(self.frame(self.next))
            self.repeats += follows(self.network.furthest[self.rank], self.next)
            self.next = plus(self.next, 1)
            if follows(self.next, self.network.furthest[self.rank]):
                self.network.furthest[self.rank] = self.next
        self.arm()

    def send(self, frame: bytes) -> None:
        """In order, one after the other."""
        self.free_ns = max(self.free_ns, self.network.now) + SPACE_NS
        self.network.carry((f"h{self.rank}", self.network.leaf_of[self.rank]), frame, self.free_ns)

    def arm(self) -> None:
        self.timer += 1
        number = self.timer
        if self.una != self.next:
            after = ack_timeout_ns(self.ring.ack_timeout) + 1_000_000 * self.rank
            self.network.at(self.network.now + after, lambda: self.timeout(number))

    def timeout(self, number: int) -> None:
        if number != self.timer or self.una == self.next or not self.is_alive:
            return
        self.retries += 1
        assert self.retries < 100, f"rank {self.rank} gives up"
        self.go_back()

    def go_back(self) -> None:
        self.next = self.una
        self.pump()

    @property
    def is_done(self) -> bool:
        return self.una == self.end and len(self.got) == len(self.starts) == len(self.messages) + 1

    # -- what arrives

    def receive(self, roce: Roce) -> None:
        if not roce.icrc_is_right():
            return
        if roce.opcode == ACKNOWLEDGE and roce.qp == self.requester(self.rank):
            self.hear(roce)
        elif roce.opcode in RC_DATA and roce.qp == self.responder(self.rank):
            self.take(roce)

    def hear(self, answer: Roce) -> None:
        syndrome = syndrome_of(answer)
        assert syndrome is not None
        upto = plus(answer.psn, 1) if syndrome >> 5 == ACK else answer.psn
        assert not follows(upto, self.network.furthest[self.rank]), f"rank {self.rank}: acknowledged above what it has sent"
        if follows(self.una, upto):
            return
        if follows(upto, self.una):
            self.una = upto
            self.next = upto if follows(upto, self.next) else self.next
        self.arm()
        if syndrome >> 5 == RNR:
            self.wait_for_buffer(rnr_wait_ns(syndrome))
        elif syndrome >> 5 == NAK and not self.waits_for_buffer:
            self.go_back()

    def wait_for_buffer(self, ns: int) -> None:
        if self.waits_for_buffer:
            return
        self.waits_for_buffer = True
        self.network.at(self.network.now + ns, self.end_wait)

    def end_wait(self) -> None:
        self.waits_for_buffer = False
        self.go_back()

    def take(self, roce: Roce) -> None:
        if roce.psn != self.expected:
            if follows(self.expected, roce.psn):
                self.answer(ACK << 5 | UNLIMITED_CREDITS, plus(self.expected, -1))
            elif not self.asked:
                self.asked = True
                self.answer(SEQUENCE_ERROR, self.expected)
            return
        if self.missing_buffers:
            self.missing_buffers -= 1
            return self.answer(RNR << 5 | 14, self.expected)
        self.expected, self.asked = plus(self.expected, 1), False
        if roce.starts_message:
            self.came, self.part = the_ina(roce), roce.payload[INA_LEN:]
        else:
            self.part += roce.payload
        if "LAST" in roce.kind or "ONLY" in roce.kind:
            self.complete()
        if roce.frame[roce.bth_at + 8] & 0x80:
            self.answer(ACK << 5 | UNLIMITED_CREDITS, roce.psn)
        self.post()

    def complete(self) -> None:
        assert self.came
        self.sequence += 1
        number = len(self.got)
        self.network.check_message(self, number, self.came, self.part)
        if number == 0:
            self.session = self.came.session
        self.got.append(self.part)

    def answer(self, syndrome: int, psn: int) -> None:
        model = self.template(self.predecessor, self.requester(self.predecessor))
        extension = bytes([syndrome]) + self.sequence.to_bytes(3, "big")
        self.send(rebuilt(model, ACKNOWLEDGE, psn, extension, b""))


# -- links


class Rule(NamedTuple):
    """What a link does to the frames that `picks` chooses: to those of them with these numbers, counted from 0."""

    link: tuple[str, str]  # from, to: a switch, or h and a rank
    picks: Callable[[Roce], bool]
    numbers: tuple[int, ...]
    does: str = "lose"  # damage, repeat


class Wrong(AssertionError):
    """What the tree does and may not do."""


@dataclass
class Member:
    """A switch of the network, with all that came to it."""

    place: Place
    switch: Switch = field(init=False)
    came: list[Stamped] = field(default_factory=list)
    reported: int = 0  # of what the switch sent
    next_ns: int | None = None
    not_before: int = 0  # nothing comes until then

    def __post_init__(self) -> None:
        self.switch = Switch(self.place)


class Network:
    """Runs until nothing is on its way and all hosts are done. An observer sees all that leaves a switch."""

    def __init__(self, ring: Ring, rules: list[Rule] | None = None, seed: int = 0) -> None:
        self.ring = ring
        self.rules = rules or []
        self.matches: Counter[int] = Counter()
        self.random = random.Random(seed)
        self.noise: Callable[[tuple[str, str], bytes], str] = lambda link, frame: ""
        self.former: list[Member] = []  # switches that were restarted
        self.members = {place.name: Member(place) for place in places(ring)}
        self.root = next(iter(self.members))
        self.now = 0
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.scheduled = self.number = 0  # of the newest event, and of the one that happens
        self.on_the_way = 0
        self.all_hosts: list[list[Host]] = []  # by run
        self.hosts: list[Host] = []  # of the newest one
        self.furthest: list[int] = []
        self.start_run()
        self.leaf_of = {rank: name for name, member in self.members.items() for child in member.place.children
                        if not child.switch for rank in (child.lo,)}
        self.frames_on: Counter[tuple[str, str]] = Counter()  # data packets, by link
        self.observer: Callable[[Member, Sent], None] = lambda member, sent: None
        self.checks: list[Callable[[], None]] = []
        self.says_data: Callable[[Host, int, Ina, bytes], None] = lambda host, number, ina, data: None

    # -- events

    def at(self, ns: int, act: Callable[[], None]) -> None:
        self.scheduled += 1
        heapq.heappush(self.queue, (ns, self.scheduled, act))

    def again_at(self, ns: int, number: int, act: Callable[[], None]) -> None:
        """Something postponed, which keeps its place among others."""
        heapq.heappush(self.queue, (ns, number, act))

    def run(self, limit_ns: int = 60 * 10**9) -> None:
        """Until all hosts are done."""
        self.run_until(self.is_quiet, limit_ns)

    def wait(self, ns: int) -> None:
        end = self.now + ns
        self.at(end, lambda: None)
        self.run_until(lambda: self.now >= end)

    def run_until(self, is_over: Callable[[], bool], limit_ns: int = 60 * 10**9) -> None:
        end = self.now + limit_ns
        while not is_over():
            timer = min(((m.next_ns, name) for name, m in self.members.items() if m.next_ns is not None), default=None)
            head = self.queue[0][0] if self.queue else None
            if timer is None and head is None:
                raise Wrong(f"nothing will happen any more: {self.state()}")
            if head is None or timer is not None and timer[0] <= head:
                assert timer is not None
                self.now = max(self.now, timer[0])
                member = self.members[timer[1]]
                member.switch.rules.advance(timer[0])
                self.settle(member)
            else:
                self.now, self.number, act = heapq.heappop(self.queue)
                act()
            if self.now > end:
                raise Wrong(f"no end after {limit_ns} ns: {self.state()}")

    def is_quiet(self) -> bool:
        return self.on_the_way == 0 and all(host.is_done for host in self.hosts)

    def state(self) -> str:
        return "; ".join(f"rank {h.rank} got {len(h.got)} sent {len(h.starts)} una {serial(h.una, h.first_psn, 24)}"
                         for h in self.hosts)

    def sender_to(self, qp: int, rank: int) -> Host:
        """The rank's host in the run to which the successor's queue pair belongs."""
        return self.all_hosts[qp >> 12][rank]

    # -- frames

    def carry(self, link: tuple[str, str], frame: bytes, ns: int) -> None:
        roce = parse_roce(frame)
        fate = self.noise(link, frame)
        for number, rule in enumerate(self.rules):
            if roce and rule.link == link and rule.picks(roce):
                if self.matches[number] in rule.numbers:
                    fate = rule.does
                self.matches[number] += 1
        if roce and roce.opcode in RC_DATA:
            self.frames_on[link] += 1
        if fate == "lose":
            return
        if fate == "damage" and roce and roce.icrc_is_right():  # a second damage might mend it
            frame = flipped(frame, roce.end - 1 if roce.opcode not in RC_DATA else roce.payload_at)
        for copy in range(2 if fate == "repeat" else 1):
            self.on_the_way += 1
            self.at(ns + LINK_NS + copy, lambda: self.arrive(link[1], frame))

    def arrive(self, end: str, frame: bytes) -> None:
        if end not in self.members:
            self.on_the_way -= 1
            roce = parse_roce(frame)
            assert roce
            return self.hosts[int(end[1:])].receive(roce)
        member = self.members[end]
        ns = self.quiet_time(member)
        if ns > self.now:
            return self.again_at(ns, self.number, lambda: self.arrive(end, frame))
        self.on_the_way -= 1
        self.give(member, frame)

    def quiet_time(self, member: Member) -> int:
        """Not right behind a time at which the switch's timers run out: it may look late."""
        ns = max(self.now, member.not_before)
        looked = member.switch.rules.looked_ns
        if looked > ns - LATE_NS and looked > 0:
            ns = member.not_before = looked + LATE_NS
        return ns

    def give(self, member: Member, frame: bytes) -> None:
        index = len(member.came)
        member.came.append(Stamped(self.now, frame))
        member.switch.receive(index, frame, self.now)
        self.settle(member)

    def inject(self, name: str, frame: bytes, fate: str) -> None:
        """A frame that nobody in the network has sent, and what becomes of it."""
        member, self.on_the_way = self.members[name], self.on_the_way + 1
        self.at(self.now + LINK_NS, lambda: self.arrive(name, frame))
        self.run_until(lambda: any(came.frame is frame for came in member.came[-8:]))
        got = member.switch.fate[max(i for i, came in enumerate(member.came) if came.frame is frame)]
        if got != fate:
            raise Wrong(f"{name} should treat the frame as {fate}, not {got}: {describe(frame)}")

    def settle(self, member: Member) -> None:
        """What the switch has sent goes on its way."""
        switch = member.switch
        while member.reported < len(switch.sent):
            sent = switch.sent[member.reported]
            member.reported += 1
            self.observer(member, sent)
            if far := self.far_end(member, sent.port):
                self.carry((member.place.name, far), sent.frame, self.now)
        member.next_ns = switch.rules.next_ns()
        for check in self.checks:
            check()

    def far_end(self, member: Member, port: int) -> str | None:
        """Who is at a switch's port; None: the stranger."""
        place = member.place
        if port < len(place.children):
            child = place.children[port]
            return child.switch or f"h{child.lo}"
        return place.parent.switch if place.parent and port == place.parent.port else None

    # -- what hosts see

    def check_message(self, host: Host, number: int, ina: Ina, data: bytes) -> None:
        if ina.flags != 1 or ina.epoch != EPOCH or (ina.msg != number if number else ina.msg != self.nonce):
            raise Wrong(f"rank {host.rank} refuses the header of message {number}: {ina}")
        if number and ina.session != host.session:
            raise Wrong(f"rank {host.rank} has the session {host.session}, message {number} {ina.session}")
        self.says_data(host, number, ina, data)

    # -- what jobs do

    def restart(self, name: str) -> None:
        """A switch that has forgotten everything. Its sessions are others."""
        place = self.members[name].place
        self.former.append(self.members[name])
        self.members[name] = Member(replace(place, first_session=place.first_session + 0x10000))

    def start_run(self) -> None:
        """Other processes, which know nothing of those before them."""
        self.hosts = [Host(self, rank, len(self.all_hosts)) for rank in range(self.ring.world)]
        self.all_hosts.append(self.hosts)
        self.nonce = self.hosts[0].nonce
        self.furthest = [host.first_psn for host in self.hosts]

    def say_hello(self, ranks: Sequence[int] | None = None) -> None:
        for rank in range(self.ring.world) if ranks is None else ranks:
            self.hosts[rank].say_hello()

    def post(self, messages: list[Message], ranks: Sequence[int] | None = None) -> None:
        chosen = [self.hosts[rank] for rank in (range(self.ring.world) if ranks is None else ranks)]
        for host in chosen:
            host.messages = host.messages + messages
        for host in chosen:
            host.post()
