# SPDX-License-Identifier: BSD-3-Clause
"""One connection's losses and waits: what the model of the switch keeps of it, and the frames that a switch makes
itself (docs/protocol.md §9 and §10; § means that page). Times are in ns."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from roce import HELLO, Ina, Roce, icrc, internet_checksum, serial

PATIENCE_NS = 600 * 10**9  # of a ring, unless configured
TIMER_FLOOR_NS = 60_000
FIRST_TIMER_NS = 1_000_000  # before a round trip is measured
GRANULARITY_NS = 8_000
OWN_RNR_WAIT_NS = 15_000_000
LONGEST_PAUSE_NS = 100_000_000
RESENDS_WITHOUT_PROGRESS = 5
MOST_DOUBLINGS = 16
TRIES = 7  # of a requester
SHARE_OF_PROGRESS = 8
LONGEST_ANSWER_PAUSE_NS = 15_000_000
SWITCH_PAUSE_NS = 30_000
RESENDS_AT_ONE_TIME, RESENDS_IN_A_TURN = 256, 8
RESEND_PAUSE_NS = 1_000
TELL_PAUSE_NS = 1_000_000
UNTOLD_CLIMB_NS = 100_000_000  # between climbs, where no ACK timeout was told
LEAST_ACK_TIMEOUT = 12  # 1 .. 11 count as this (§2a)

ACKNOWLEDGE = 0x11  # opcode
ACK, RNR, NAK = 0, 1, 3  # bits 6-5 of an AETH's syndrome (IBTA 9.7.5.2)
SEQUENCE_ERROR = NAK << 5
ENDED = NAK << 5 | 2  # remote access error: §2a, "Told"
UNLIMITED_CREDITS = 31
OWN_RNR_CODE = 1
# Milliseconds by timer code (IBTA table 45).
RNR_WAIT = (655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56,
            3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52)


def rnr_wait_ns(syndrome: int) -> int:
    return round(RNR_WAIT[syndrome & 31] * 10**6)


def ack_timeout_ns(exponent: int) -> int:
    return 4096 << max(exponent, LEAST_ACK_TIMEOUT)


def follows(psn: int, other: int) -> bool:
    return serial(psn, other, 24) > 0


def plus(psn: int, count: int) -> int:
    return (psn + count) % (1 << 24)


# -- frames of the switch


def rebuilt(model: Roce, opcode: int, psn: int, extension: bytes, payload: bytes, flags: int = 0,
            asks: bool = False) -> bytes:
    """A frame with another's Ethernet, IP and UDP headers, queue pair and partition. Its BTH has no congestion marks;
    `flags` are SE (0x80) at most."""
    pad = -len(payload) % 4
    bth = bytearray(model.frame[model.bth_at:model.bth_at + 12])
    bth[0], bth[1], bth[4], bth[8] = opcode, bth[1] & 0x4F | flags | pad << 4, 0, 0x80 if asks else 0
    bth[9:12] = psn.to_bytes(3, "big")
    body = bytes(bth) + extension + payload + bytes(pad)
    udp_at = model.bth_at - 8
    ip = bytearray(model.frame[model.ip_at:udp_at])
    ip[2:4], ip[10:12] = (len(ip) + 8 + len(body) + 4).to_bytes(2, "big"), b"\0\0"
    ip[10:12] = internet_checksum(bytes(ip)).to_bytes(2, "big")
    udp = model.frame[udp_at:udp_at + 4] + (8 + len(body) + 4).to_bytes(2, "big") + b"\0\0"
    frame = model.frame[:model.ip_at] + bytes(ip) + udp + body
    return frame + icrc(frame, model.ip_at, model.bth_at, len(frame))


def resent(hello: Roce, own: Roce, header: Ina | None, data: bytes, asks: bool) -> bytes:
    """A cached result or partial sum: headers as in the connection's hello, RETH and immediate as the sender's packet
    `own` had them. `header` is the INA header when the packet has one."""
    payload = data if header is None else Ina.LAYOUT.pack(*header) + data
    extension = own.frame[own.bth_at + 12:own.payload_at]
    ends = "LAST" in own.kind or "ONLY" in own.kind
    solicited = own.frame[own.bth_at + 1] & 0x80 if ends else 0
    return rebuilt(hello, own.opcode, own.psn, extension, payload, solicited, asks)


def remembered_header(hello: Ina, ina: Ina) -> Ina:
    """The header of a message of which a switch has kept what differs from its connection's hello."""
    if ina.collective == HELLO:
        return hello
    return hello._replace(op=ina.op, dtype=ina.dtype, msg=ina.msg, msg_len=ina.msg_len, collective=ina.collective,
                          ack_timeout=0, root=ina.root, qp=0)


def turned_around(hello: Roce, qp: int) -> Roce:
    """The hello's addresses for a frame to its sender's queue pair."""
    f = hello.frame
    bth = f[hello.bth_at:hello.bth_at + 5] + qp.to_bytes(3, "big") + f[hello.bth_at + 8:]
    frame = (f[6:12] + f[:6] + f[12:hello.ip_at + 12] + f[hello.ip_at + 16:hello.ip_at + 20]
             + f[hello.ip_at + 12:hello.ip_at + 16] + f[hello.ip_at + 20:hello.bth_at] + bth)
    return Roce(frame, hello.dst, hello.src, qp, hello.opcode, hello.psn, hello.ip_at, hello.bth_at, hello.payload_at,
                hello.payload_end, hello.end)


def syndrome_of(answer: Roce) -> int | None:
    """Of a packet that is an ACK or NAK and nothing else."""
    if answer.opcode != ACKNOWLEDGE or answer.end != answer.bth_at + 16:
        return None
    return answer.frame[answer.bth_at + 12]


@dataclass
class Voice:
    """How the switch speaks in a receiver's name: like its newest ACK or NAK, at first like its hello turned around."""

    model: Roce
    sequence: int = 0  # MSN
    credits: int = UNLIMITED_CREDITS

    def take(self, answer: Roce, syndrome: int) -> None:
        self.model = answer
        self.sequence = int.from_bytes(answer.frame[answer.bth_at + 13:answer.bth_at + 16], "big")
        if syndrome >> 5 == ACK:
            self.credits = syndrome & 31

    def ack(self, psn: int) -> bytes:
        return self.says(ACK << 5 | self.credits, psn)

    def says(self, syndrome: int, psn: int) -> bytes:
        return rebuilt(self.model, ACKNOWLEDGE, psn, bytes([syndrome]) + self.sequence.to_bytes(3, "big"), b"")


# -- one connection


class Pass(Enum):
    """What the sender got in this pass; a pass begins with a PSN that is not above the previous one."""

    NOTHING = auto()
    ACKNOWLEDGED = auto()
    RESENT = auto()


@dataclass
class Farewell:
    """What the switch says to a rank of an incarnation that another one has ended (§2a, "Told")."""

    rank: int
    port: int  # of its hello
    acknowledged_by: int | None  # the port that acknowledgements of it come by
    since_ns: int
    told_ns: int = 0  # 0: not yet
    acknowledged_ns: int = 0


class Question(NamedTuple):
    """What the switch asked a sender last."""

    ns: int
    e: int


@dataclass
class RoundTrip:
    """RFC 6298 §2, in whole ns."""

    smoothed: int = 0
    deviation: int = 0

    def take(self, sample: int) -> None:
        if not self.smoothed:
            self.smoothed, self.deviation = sample, sample // 2
            return
        self.deviation = (3 * self.deviation + abs(sample - self.smoothed)) // 4
        self.smoothed = (7 * self.smoothed + sample) // 8

    def timer(self) -> int:
        if not self.smoothed:
            return FIRST_TIMER_NS
        return max(TIMER_FLOOR_NS, self.smoothed + max(GRANULARITY_NS, 4 * self.deviation))


@dataclass
class Flow:
    """a, s and e of §9, and what was done about them."""

    hello: Roce
    qp: int  # the sender's own, 0: not told
    ack_timeout: int
    voice: Voice
    begun_ns: int
    a: int = field(init=False)
    s: int = field(init=False)
    e: int = field(init=False)
    behind_furthest: int = field(init=False)
    previous: int = field(init=False)
    heard_ns: int = field(init=False)
    progress_ns: int = field(init=False)
    came: set[int] = field(default_factory=set)  # PSNs not below e
    done: Pass = Pass.NOTHING
    question: Question | None = None
    went_back: bool = False  # since the question
    answers_us: bool = False  # the pass is what the question asked for
    asks: int = 0  # since a moved
    resends: int = 0  # by the timer, since a moved
    answers: int = 0  # to who wants a ... s-1 again, until a is `enough`
    enough: int = 0
    answer_due: bool = False  # who wants it came too soon
    no_buffer: bool = False  # said the receiver, since the last answer
    again_from: int | None = None  # results from here on leave again
    doublings: int = 0
    hushed_until_ns: int = 0  # an RNR wait
    held_until_ns: int = 0  # the receiver's
    kept_alive_ns: int = 0
    timed: tuple[int, int] | None = None  # PSN, since when
    round_trip: RoundTrip = field(default_factory=RoundTrip)

    def __post_init__(self) -> None:
        self.a = self.s = self.e = self.behind_furthest = self.hello.psn
        self.previous = plus(self.hello.psn, -1)
        self.heard_ns = self.progress_ns = self.begun_ns

    @property
    def lacks_packets(self) -> bool:
        return self.e != self.behind_furthest

    @property
    def outstanding(self) -> bool:
        return self.a != self.s

    @property
    def timer(self) -> int:
        return self.round_trip.timer() << self.doublings

    def heard(self, psn: int, now: int) -> None:
        self.heard_ns = now
        if not follows(psn, self.previous):
            self.done = Pass.NOTHING
            self.answers_us = self.question is not None and not self.went_back
            self.went_back = True
            self.hushed_until_ns = self.held_until_ns = 0
        self.previous = psn

    def took(self, psn: int) -> None:
        """A slot has the packet."""
        self.came.add(psn)
        self.reach(plus(psn, 1))

    def reach(self, behind: int) -> None:
        if follows(behind, self.behind_furthest):
            self.behind_furthest = behind
        while self.e in self.came:
            self.came.discard(self.e)
            self.e = plus(self.e, 1)

    def left(self, psn: int, now: int) -> None:
        if not self.outstanding:
            self.progress_ns = now
        self.s = plus(psn, 1)
        if follows(self.s, self.e):  # a sender that left out PSNs
            self.e = self.s
            self.reach(self.s)

    def acknowledged(self, upto: int, now: int) -> bool:
        """The receiver has all below `upto`. False, and nothing happens, when that is not in a … s."""
        if follows(self.a, upto) or follows(upto, self.s):
            return False
        if upto != self.a:
            self.a, self.progress_ns, self.asks, self.resends = upto, now, 0, 0
            self.answers = self.answers if follows(self.enough, upto) else 0
            self.answer_due, self.no_buffer = False, False
            if self.timed and follows(upto, self.timed[0]):
                self.round_trip.take(now - self.timed[1])
                self.timed, self.doublings = None, 0
        return True

    def may_ask_at(self) -> int:
        """One NAK for each advance of a; then RNR NAKs."""
        if self.question is None:
            return 0
        if self.asks == 1 and not self.lacks_packets:  # perhaps nothing was lost, and the sender is slow
            return self.question.ns + OWN_RNR_WAIT_NS
        if self.asks < 2:
            waits = not self.went_back and self.question.e == self.e
            return self.question.ns + self.timer if waits else 0
        return self.question.ns + min(OWN_RNR_WAIT_NS << min(self.asks - 2, 3), LONGEST_PAUSE_NS)

    def may_ask_switch_at(self) -> int:
        """At once, then after T, then twice as long; anew when a or e moves."""
        if self.question is None or not self.asks_in_a_row():
            return 0
        return self.question.ns + min(self.timer << min(self.asks_in_a_row() - 1, MOST_DOUBLINGS), LONGEST_PAUSE_NS)

    def asks_in_a_row(self) -> int:
        """Of a switch: those since a or e moved."""
        return self.asks if self.question and self.question.e == self.e else 0

    def may_answer_at(self) -> int:
        """R3: at once, then after a pause; after a requester's tries each pause is twice the last one, up to its timeout."""
        if self.answers == 0:
            return 0
        if self.answers > TRIES:
            return self.progress_ns + self.doubled_pause(self.round_trip.timer(), self.answers - TRIES)
        if self.no_buffer:
            return 0
        return self.progress_ns + self.answer_pause()

    def may_answer_switch_at(self) -> int:
        """The same for a switch: it asks at times of its own, which are further and further apart."""
        if self.answers == 0 or self.no_buffer and self.answers <= TRIES:
            return 0
        return self.progress_ns + self.doubled_pause(SWITCH_PAUSE_NS, self.answers - 1)

    def doubled_pause(self, first: int, times: int) -> int:
        return min([first << min(times, MOST_DOUBLINGS), LONGEST_ANSWER_PAUSE_NS, *self.told_timeout()])

    def answer_pause(self) -> int:
        return min([self.round_trip.timer(), *(told // 2 for told in self.told_timeout())])

    def told_timeout(self) -> list[int]:
        return [4096 << self.ack_timeout] if self.ack_timeout else []

    def answered(self) -> None:
        if self.answers == 0:
            self.enough = plus(self.a, -(-serial(self.s, self.a, 24) // SHARE_OF_PROGRESS))
        self.answers, self.no_buffer = self.answers + 1, False

    def asked(self, now: int) -> None:
        self.question, self.went_back = Question(now, self.e), False
        self.asks += 1
