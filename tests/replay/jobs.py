# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that start, end and break the rules: tables of frames, each with its outcome by docs/protocol.md.

The outcomes are written by hand. expect.py --check compares the model with them, and run.py the switch with the
model. Frames are made from the hellos of a soft-RoCE capture (their Ethernet, IP, UDP and RETH headers), with headers,
PSNs and data of our own. Ranks 0 to 2 are behind ports p0 to p2, MTU is 256, N is 4.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Callable, Iterator, NamedTuple

from roce import (ALL_REDUCE, BARRIER, BROADCAST, HELLO, MAGIC, PARTIAL, RC_COMPARE_SWAP, RC_DATA, RC_FETCH_ADD,
                  RC_READ, RESULT, SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE, VERSION, VERSION_WITH_TABLE, Ina,
                  Roce, flipped, icrc, internet_checksum, parse_roce, resigned)

WORLD, MTU, WINDOW, RING = 3, 256, 4, 7
STRANGER = bytes.fromhex("5254000000fe")  # a station behind p3
WRITE_FIRST, WRITE_LAST, WRITE_ONLY, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0x06, 0x08, 0x0A, 0x01, 0x02, 0x04
ACKNOWLEDGE = 0x11
EXTENSION = {RC_READ: 16, RC_COMPARE_SWAP: 28, RC_FETCH_ADD: 28, SEND_LAST_INVALIDATE: 4, SEND_ONLY_INVALIDATE: 4,
             ACKNOWLEDGE: 4}  # bytes after the BTH (IBTA 9.2), in addition to RC_DATA
SECOND = 10**9
AGEING = 600 * SECOND  # connections.aging_s


class Said(NamedTuple):
    """A frame that the switch makes itself."""

    kind: str  # one of switch_model.OWN_KINDS
    rank: int  # of the sender on whose connection, or to whom
    place: int  # its PSN, counted from the hello's
    after_ns: int | None = None  # by a timer, so long after the step before; None: because of the step's frame


class Step(NamedTuple):
    """A frame, its outcome, the time since the step before, and what the switch says in that time and then."""

    frame: bytes
    fate: str
    after_ns: int = 1000
    says: tuple[Said, ...] = ()


Steps = Iterator[Step]
Hellos = list[Roce]  # as captured, by rank


def rebuilt(hello: Roce, opcode: int, qp: int, psn: int, payload: bytes, message_bytes: int) -> bytes:
    """A packet between the addresses of a captured hello, which is an RDMA WRITE ONLY. No pad."""
    assert len(payload) % 4 == 0
    length = RC_DATA[opcode][1] if opcode in RC_DATA else EXTENSION[opcode]
    reth = hello.frame[hello.bth_at + 12:hello.bth_at + 24] + struct.pack(">I", message_bytes)
    extension = (reth + bytes(12))[:length]
    bth = bytearray(hello.frame[hello.bth_at:hello.bth_at + 12])
    asks = opcode in RC_DATA and ("LAST" in RC_DATA[opcode][0] or "ONLY" in RC_DATA[opcode][0])
    bth[0], bth[1], bth[8] = opcode, bth[1] & 0xCF, 0x80 if asks else 0
    bth[5:8], bth[9:12] = qp.to_bytes(3, "big"), psn.to_bytes(3, "big")
    udp_bytes = 8 + len(bth) + len(extension) + len(payload) + 4
    ip = bytearray(hello.frame[14:34])
    ip[2:4], ip[10:12] = (20 + udp_bytes).to_bytes(2, "big"), b"\0\0"
    ip[10:12] = internet_checksum(bytes(ip)).to_bytes(2, "big")
    udp = hello.frame[34:38] + udp_bytes.to_bytes(2, "big") + b"\0\0"
    frame = hello.frame[:14] + bytes(ip) + udp + bytes(bth) + extension + payload
    return frame + icrc(frame, 14, 42, len(frame))


def from_stranger(frame: bytes) -> bytes:
    """The same from a station behind p3; an ICRC does not cover the Ethernet header."""
    return frame[:6] + STRANGER + frame[12:]


@dataclass(frozen=True)
class Run:
    """The frames of the hosts of one run of a job. Each message except a barrier has two packets: FIRST and LAST."""

    hellos: Hellos
    epoch: int
    nonce: int
    session: int = 1
    qp: int = 0x12  # the receiver's
    own_qp: int = 0  # told in the hello; 0: the switch does nothing about losses
    psn: int = 0x001000  # of rank 0's hello; rank r's is 0x1000 * r higher
    ring: int = RING
    table: bytes = b""  # of operators, in the hellos (§12)

    @property
    def world(self) -> int:
        return len(self.hellos)

    def header(self, rank: int, /, **said: int) -> Ina:
        usual = Ina(MAGIC, VERSION_WITH_TABLE if self.table else VERSION, op=0, dtype=1, flags=0, ring=self.ring, rank=rank, world=self.world, msg=0,
                    msg_len=0, epoch=self.epoch, session=self.session, collective=ALL_REDUCE, ack_timeout=0, root=0,
                    qp=0)
        return usual._replace(**said)

    def packet(self, rank: int, opcode: int, place: int, payload: bytes = b"", message_bytes: int = 0) -> bytes:
        """`place` counts PSNs from the hello's."""
        psn = (self.psn + 0x1000 * rank + place) % (1 << 24)
        return rebuilt(self.hellos[rank], opcode, self.qp, psn, payload, message_bytes or len(payload))

    def hello(self, rank: int, /, **said: int) -> bytes:
        usual = {"collective": HELLO, "session": self.nonce, "qp": self.own_qp, "msg_len": len(self.table)}
        ina = self.header(rank, **(usual | said))
        return self.packet(rank, WRITE_ONLY, 0, Ina.LAYOUT.pack(*ina) + self.table)

    def first(self, rank: int, msg: int, /, **said: int) -> bytes:
        ina = self.header(rank, **({"msg": msg, "msg_len": MTU} | said))
        payload = Ina.LAYOUT.pack(*ina) + self.data(rank, msg)[:MTU - 40]
        return self.packet(rank, WRITE_FIRST, 2 * msg - 1, payload, 40 + MTU)

    def last(self, rank: int, msg: int) -> bytes:
        return self.packet(rank, WRITE_LAST, 2 * msg, self.data(rank, msg)[MTU - 40:])

    def only(self, rank: int, msg: int, /, **said: int) -> bytes:
        """A message of a header alone."""
        ina = self.header(rank, **({"msg": msg} | said))
        return self.packet(rank, WRITE_ONLY, 2 * msg - 1, Ina.LAYOUT.pack(*ina))

    @staticmethod
    def data(rank: int, msg: int) -> bytes:
        return struct.pack("<64i", *((-1)**i * (1_000_000_007 * (rank + 1) + 65_537 * msg + i) % 2**31
                                     for i in range(64)))

    def plain(self, rank: int, opcode: int, place: int) -> bytes:
        """A plain packet."""
        return self.packet(rank, opcode, place, bytes(range(64)))


def begun(run: Run) -> Steps:
    """All hellos, in rank order."""
    for rank in range(run.world):
        yield Step(run.hello(rank), "aggregated")


def whole(run: Run, msg: int, **said: int) -> Steps:
    """A message of all ranks."""
    for rank in range(run.world):
        yield Step(run.first(rank, msg, **said), "aggregated")
        yield Step(run.last(rank, msg), "aggregated")


# ---------------------------------------------------------------------------------------- incarnations


def equal_epoch_restart(hellos: Hellos) -> Steps:
    """A job killed in message 2 and started again with the same epoch: on new queue pairs, then on the old ones."""
    old = Run(hellos, epoch=5, nonce=0xA)
    new = replace(old, nonce=0xB, session=2, qp=0x40, psn=0x500000)
    again = replace(old, nonce=0xC, session=3, psn=0x700000)  # queue pair numbers of the first run
    yield from begun(old)
    yield from whole(old, 1)
    yield Step(old.first(0, 2), "drop.incarnation_flush")
    yield Step(old.first(1, 2), "drop.incarnation_flush")
    yield Step(old.last(1, 2), "drop.incarnation_flush")
    yield Step(new.hello(0), "aggregated")
    yield Step(new.hello(2), "aggregated")
    yield Step(old.last(2, 1), "cached-repeat")  # one rank of the new run is missing: the old one lives
    yield Step(old.first(0, 2), "drop.repeat_held")
    yield Step(new.first(1, 1), "drop.wrong_session")
    yield Step(new.hello(1), "aggregated")
    yield Step(old.first(0, 2), "drop.wrong_session")
    yield Step(old.last(2, 1), "drop.dead_connection")
    yield Step(old.hello(0), "drop.retired_nonce")
    yield Step(old.first(0, 2, session=2), "drop.no_connection")
    yield from whole(new, 1)
    yield from begun(again)
    yield Step(new.last(1, 1), "drop.dead_connection")
    yield Step(again.last(1, 1), "drop.unknown_message")
    yield from whole(again, 1)


def queue_pair_used_again(hellos: Hellos) -> Steps:
    """A restarted rank has its predecessor's queue pair number, and lower PSNs. Late packets of the dead process make
    the switch give up the waiting hello; the living one repeats it."""
    old = Run(hellos, epoch=5, nonce=0xA, psn=0x500000)
    new = replace(old, nonce=0xB, session=2, psn=0x001000)
    yield from begun(old)
    yield from whole(old, 1)
    yield Step(new.hello(0), "drop.hello_overtaken")
    yield Step(old.first(0, 2), "drop.incarnation_flush")
    yield Step(new.hello(1), "aggregated")
    yield Step(old.first(1, 2, epoch=4), "drop.wrong_epoch")
    yield Step(new.hello(2), "drop.hello_overtaken")
    yield Step(old.hello(2), "cached-repeat")
    yield Step(new.hello(0), "aggregated")
    yield Step(new.hello(2), "aggregated")
    yield Step(old.last(0, 2), "drop.unknown_message")
    yield from whole(new, 1)


def late_hello_of_a_dead_run(hellos: Hellos) -> Steps:
    """It completes the dead run's incarnation. The living ranks' hellos are given up; they repeat them and go on."""
    dead = Run(hellos, epoch=5, nonce=0xA)
    living = replace(dead, nonce=0xB, session=2, qp=0x40, psn=0x500000)
    yield Step(dead.hello(0), "aggregated")
    yield Step(dead.hello(1), "aggregated")
    yield Step(living.hello(0), "drop.hello_given_up")
    yield Step(living.hello(2), "drop.hello_given_up")
    yield Step(dead.hello(2), "aggregated")
    yield Step(living.hello(1), "aggregated")
    yield Step(living.hello(1), "drop.repeat_held")
    yield Step(dead.hello(2), "cached-repeat")
    yield Step(living.first(0, 1, session=1), "drop.no_connection")
    yield Step(living.hello(2), "aggregated")
    yield Step(living.hello(0), "aggregated")
    yield Step(dead.hello(2), "drop.retired_nonce")
    yield from whole(living, 1)


def epochs(hellos: Hellos) -> Steps:
    """Only a complete set of hellos changes a ring, however large the epoch is."""
    old = Run(hellos, epoch=5, nonce=0xA)
    new = replace(old, epoch=6, nonce=0xB, session=2, qp=0x40, psn=0x500000)
    huge = replace(old, epoch=0xFFFFFFFF, nonce=0xF, qp=0x66, psn=0x600000)
    yield Step(huge.first(0, 1), "drop.no_connection")
    yield Step(old.first(0, 1), "drop.no_connection")
    yield from begun(old)
    yield Step(replace(old, epoch=4, nonce=0x9, qp=0x41).hello(0), "drop.old_epoch")
    yield Step(huge.first(0, 1), "drop.wrong_epoch")
    yield Step(old.first(0, 1, epoch=0xFFFFFFFF), "drop.wrong_epoch")
    yield Step(old.first(0, 1, epoch=4), "drop.wrong_epoch")
    yield Step(huge.hello(0), "drop.hello_given_up")
    yield from whole(old, 1)
    yield Step(new.hello(1), "aggregated")
    yield Step(new.hello(0), "aggregated")
    yield from whole(old, 2)
    yield Step(new.hello(2), "aggregated")
    yield Step(old.first(0, 3), "drop.wrong_epoch")
    yield Step(old.last(0, 2), "drop.dead_connection")
    yield Step(old.hello(0), "drop.old_epoch")
    yield from whole(new, 1)
    same_nonce = replace(new, epoch=7, session=3, qp=0x50, psn=0x800000)  # another run, because of its epoch
    yield from begun(same_nonce)
    yield from whole(same_nonce, 1)


def retired_nonces(hellos: Hellos) -> Steps:
    """The last sixteen are known; a hello with any of them is dropped."""
    runs = [Run(hellos, epoch=5, nonce=0xA0 + i, session=i + 1, psn=0x10000 * (i + 1)) for i in range(18)]
    for run in runs[:17]:
        yield from begun(run)
    for run in runs[:16]:
        yield Step(run.hello(0), "drop.retired_nonce")
    yield Step(runs[16].hello(0), "cached-repeat")
    yield from begun(runs[17])
    yield Step(runs[1].hello(0), "drop.retired_nonce")
    yield Step(runs[0].hello(0), "held")


def waiting(hellos: Hellos) -> Steps:
    """Each rank keeps its last four waiting hellos. A later packet on its connection makes the switch give one up."""
    run = Run(hellos, epoch=5, nonce=0xA)
    yield Step(run.hello(0), "drop.hello_overtaken")
    yield Step(run.hello(0), "drop.repeat_held")
    yield Step(replace(run, qp=0x13).hello(0), "drop.hello_conflict")
    yield Step(replace(run, psn=run.psn - 1).hello(0), "drop.hello_conflict")
    yield Step(run.packet(0, ACKNOWLEDGE, 1), "flood")  # a response: it is not on this connection
    yield Step(flipped(run.last(0, 1), 60), "drop.unclassified")
    yield Step(run.packet(0, SEND_LAST, -1, bytes(8)), "drop.unclassified")
    yield Step(run.first(0, 1, epoch=6), "drop.no_connection")
    yield Step(run.hello(0), "drop.repeat_held")  # it still waits
    yield Step(run.last(0, 1), "drop.unclassified")
    yield Step(run.hello(0), "drop.hello_overtaken")
    yield Step(run.first(0, 1), "drop.no_connection")
    yield Step(run.hello(0), "drop.hello_overtaken")
    yield Step(run.plain(0, SEND_ONLY, 1), "flood")
    yield Step(run.hello(0), "drop.hello_overtaken")
    yield Step(run.packet(0, RC_READ, 1), "drop.unannounced")  # the hello has ended what was plain
    yield Step(replace(run, psn=run.psn - 1).hello(0), "drop.hello_overtaken")
    yield Step(run.hello(0), "aggregated")  # a later hello counts as a later packet too
    yield Step(run.hello(1), "aggregated")
    yield Step(run.hello(2), "aggregated")
    yield from whole(run, 1)


def five_waiting(hellos: Hellos) -> Steps:
    """The fifth replaces the oldest, whatever their epochs are; other ranks' hellos stay."""
    runs = [Run(hellos, epoch=9 - i, nonce=0xA0 + i, qp=0x20 + i) for i in range(5)]
    yield Step(runs[0].hello(1), "drop.hello_given_up")
    yield Step(runs[0].hello(0), "drop.hello_displaced")
    yield Step(runs[1].hello(0), "drop.hello_given_up")
    yield Step(runs[2].hello(0), "drop.hello_given_up")
    yield Step(runs[3].hello(0), "aggregated")
    yield Step(runs[1].hello(0), "drop.repeat_held")  # it is not the newest for that
    yield Step(runs[4].hello(0), "drop.hello_given_up")
    yield Step(runs[0].hello(2), "drop.hello_given_up")  # rank 0's is missing now
    yield Step(runs[3].hello(1), "aggregated")
    yield Step(runs[3].hello(2), "aggregated")
    yield from whole(runs[3], 1)


def hello_of_the_current_incarnation(hellos: Hellos) -> Steps:
    """It is message 0 on its own connection, and dropped on any other."""
    run = Run(hellos, epoch=5, nonce=0xA)
    yield from begun(run)
    yield Step(run.hello(1), "cached-repeat")
    elsewhere = replace(run, qp=0x13)
    yield Step(elsewhere.hello(1), "drop.hello_elsewhere")
    yield Step(elsewhere.plain(1, SEND_ONLY, 0), "forward")
    yield Step(elsewhere.hello(1), "drop.hello_elsewhere")
    yield Step(replace(run, psn=run.psn + 0x100).hello(1), "drop.history_conflict")
    for msg in range(1, 2 * WINDOW):
        yield from whole(run, msg)
    yield Step(run.hello(1), "cached-repeat")
    yield from whole(run, 2 * WINDOW)
    yield Step(run.hello(1), "drop.stale_repeat")
    yield Step(run.last(1, 1), "cached-repeat")


def refused_headers(hellos: Hellos) -> Steps:
    """Headers that a member may not send. They do not disturb the job."""
    run = Run(hellos, epoch=5, nonce=0xA)
    for fate, said in (("bad_nonce", {"session": 0}), ("bad_ack_timeout", {"ack_timeout": 32}),
                       ("bad_ack_timeout", {"ack_timeout": 255}), ("bad_hello", {"msg": 1}),
                       ("result_flag", {"flags": RESULT}), ("partial_flag", {"flags": PARTIAL}),
                       ("reserved_bits", {"flags": 4}), ("reserved_bits", {"flags": 0x80}), ("bad_root", {"root": 1})):
        yield Step(run.hello(0, **said), "drop." + fate)
    yield Step(run.hello(0, ack_timeout=31), "aggregated")
    yield Step(run.hello(1, op=1), "drop.disagree_operation")
    yield Step(run.hello(1, dtype=0), "drop.disagree_type")
    yield Step(run.hello(1, ack_timeout=1), "aggregated")
    yield Step(run.hello(2), "aggregated")
    for fate, said in (("result_flag", {"flags": RESULT}), ("partial_flag", {"flags": PARTIAL}),
                       ("partial_flag", {"flags": PARTIAL | 4}), ("reserved_bits", {"flags": 4}),
                       ("unsupported_collective", {"collective": 4}), ("bad_root", {"root": 1}),
                       ("bad_root", {"collective": BROADCAST, "root": WORLD}), ("wrong_session", {"session": 2}),
                       ("wrong_session", {"session": 0xA}), ("barrier_data", {"collective": BARRIER})):
        yield Step(run.first(0, 1, **said), "drop." + fate)
    yield from whole(run, 1)


def collectives(hellos: Hellos) -> Steps:
    """Broadcast and barrier beside all-reduce; ranks that disagree about them."""
    run = Run(hellos, epoch=5, nonce=0xA)
    yield from begun(run)
    for rank in (2, 0, 1):
        yield Step(run.only(rank, 1, collective=BARRIER), "aggregated")
    yield Step(run.only(1, 1, collective=BARRIER), "cached-repeat")
    for root in range(WORLD):  # of f32 and "and", which cannot be reduced together: there is nothing to reduce
        yield from whole(run, 2 + root, collective=BROADCAST, root=root, op=4, dtype=0)
    yield Step(run.first(0, 5, collective=BROADCAST, root=1), "held")
    yield Step(run.first(1, 5, collective=BROADCAST, root=2), "drop.disagree_root")
    yield Step(run.first(2, 5), "drop.disagree_collective")
    yield Step(run.only(0, 6, collective=BARRIER), "held")
    yield Step(run.only(1, 6), "drop.disagree_collective")


# --------------------------------------------------------------------------------------- ports, magic


def other_port(hellos: Hellos) -> Steps:
    """Frames of a stranger behind p3 with members' addresses; the configuration ties the members to their ports."""
    old = Run(hellos, epoch=5, nonce=0xA)
    new = replace(old, nonce=0xB, session=2, qp=0x40, psn=0x500000)
    plain = replace(old, qp=0x77)
    silent = replace(old, qp=0x78)
    yield Step(silent.plain(0, SEND_ONLY, 0), "forward")  # its station has sent nothing yet, but its port is known
    yield Step(from_stranger(old.hello(0)), "drop.wrong_port")
    yield from begun(old)
    yield Step(from_stranger(old.first(0, 1)), "drop.wrong_port")
    yield from whole(old, 1)
    yield Step(from_stranger(old.last(0, 1)), "drop.wrong_port")
    yield Step(from_stranger(new.hello(0)), "drop.wrong_port")
    yield Step(from_stranger(plain.plain(0, SEND_ONLY, 0)), "drop.wrong_port")
    yield Step(plain.packet(0, SEND_LAST, 1, bytes(8)), "drop.unclassified")
    yield Step(from_stranger(old.packet(0, ACKNOWLEDGE, 0)), "drop.wrong_port")
    yield Step(from_stranger(acknowledgement(old, 1)), "drop.wrong_port")
    yield Step(acknowledgement(old, 1), "forward")
    yield Step(from_stranger(old.packet(1, RC_READ, 5)), "drop.wrong_port")
    yield Step(from_stranger(flipped(old.last(0, 1), 60)), "drop.wrong_port")
    yield Step(no_roce(hellos[0].frame), "forward")
    yield Step(from_stranger(no_roce(hellos[0].frame)), "forward")
    yield from begun(new)
    yield Step(from_stranger(old.plain(0, SEND_ONLY, 5)), "drop.wrong_port")  # an older version revived the dead connection here
    yield Step(old.last(0, 1), "drop.dead_connection")
    yield from whole(new, 1)


def port_of_the_hello(hellos: Hellos) -> Steps:
    """No port is configured: the hello's port counts for the incarnation."""
    run = Run(hellos, epoch=5, nonce=0xA)
    plain = replace(run, qp=0x77)
    yield Step(plain.plain(1, SEND_ONLY, 0), "flood")  # rank 2's station has sent nothing yet
    yield Step(from_stranger(plain.plain(1, SEND_ONLY, 1)), "flood")
    yield from begun(run)
    yield Step(from_stranger(plain.plain(1, SEND_ONLY, 2)), "drop.wrong_port")
    yield Step(from_stranger(run.first(1, 1)), "drop.wrong_port")
    yield Step(from_stranger(acknowledgement(run, 1)), "drop.wrong_port")
    yield from whole(run, 1)


def acknowledgement(run: Run, rank: int) -> bytes:
    """The successor's acknowledgement to `rank`: the other direction of the pair."""
    return rebuilt(turned_around(run.hellos[rank]), ACKNOWLEDGE, 0x11, (run.psn + 0x1000 * rank) % (1 << 24), b"", 0)


def answer_of_receiver(run: Run, rank: int, place: int, syndrome: int = 0x1F) -> bytes:
    """The successor's ACK or NAK for a packet of `rank`; `place` counts PSNs from the hello's. MSN 9."""
    psn = (run.psn + 0x1000 * rank + place) % (1 << 24)
    frame = rebuilt(turned_around(run.hellos[rank]), ACKNOWLEDGE, run.own_qp, psn, b"", 0)
    return resigned(frame, 54, bytes((syndrome, 0, 0, 9)))


def no_roce(frame: bytes) -> bytes:
    """The same addresses, another UDP port."""
    return frame[:36] + (4792).to_bytes(2, "big") + frame[38:]


def other_requests(hellos: Hellos) -> Steps:
    """Requests that cannot be part of a ring's message, on each kind of queue pair."""
    run = Run(hellos, epoch=5, nonce=0xA)
    kinds = (RC_READ, RC_COMPARE_SWAP, RC_FETCH_ADD, SEND_ONLY_INVALIDATE, SEND_LAST_INVALIDATE)
    unknown, plain = replace(run, qp=0x76), replace(run, qp=0x77)
    yield from begun(run)
    yield Step(run.first(0, 1), "aggregated")
    yield Step(plain.plain(0, SEND_ONLY, 0), "forward")
    for opcode in kinds:
        yield Step(run.plain(0, opcode, 2), "drop.unsupported_request")
        yield Step(plain.plain(0, opcode, 1), "forward")
        yield Step(unknown.plain(0, opcode, 1),
                   "drop.unclassified" if opcode == SEND_LAST_INVALIDATE else "forward")
    yield Step(unknown.packet(0, SEND_LAST, 2, bytes(8)), "drop.unclassified")  # the switch knows nothing of it
    yield Step(run.last(0, 1), "aggregated")
    for rank in (1, 2):
        yield Step(run.first(rank, 1), "aggregated")
        yield Step(run.last(rank, 1), "aggregated")
    yield from begun(replace(run, nonce=0xB, qp=0x40))
    for opcode in kinds:
        yield Step(run.plain(0, opcode, 5), "drop.dead_connection")


def unknown_ring(hellos: Hellos) -> Steps:
    """A ring that this switch does not know, after a restart with another configuration or on another switch."""
    ours = Run(hellos, epoch=5, nonce=0xA)
    theirs = replace(ours, ring=9, qp=0x30)
    unseen, mixed = replace(theirs, qp=0x31), replace(theirs, qp=0x32)
    yield from begun(ours)
    yield Step(theirs.hello(0), "forward")
    yield Step(theirs.last(0, 1), "drop.unannounced")
    yield Step(theirs.first(0, 1), "drop.unannounced")  # no answer was seen: it may be a repeat of a withdrawn ring's hello
    yield Step(theirs.last(0, 1), "drop.unannounced")
    yield Step(theirs.hello(2, flags=RESULT, session=1, msg=theirs.nonce), "forward")  # the hello left elsewhere
    yield Step(answer(theirs, 0, msg=theirs.nonce + 1), "forward")  # to another hello
    yield Step(theirs.hello(0), "forward")
    yield Step(theirs.first(0, 1), "drop.unannounced")
    yield Step(answer(theirs, 0), "forward")
    yield Step(theirs.first(0, 1), "drop.unannounced")
    yield Step(theirs.hello(0), "forward")
    yield Step(theirs.first(0, 1), "forward")
    yield Step(theirs.last(0, 1), "forward")
    yield Step(theirs.first(1, 1), "drop.unannounced")
    yield Step(theirs.hello(1, flags=RESULT), "forward")
    yield Step(theirs.first(1, 1, session=99), "drop.unannounced")
    yield Step(theirs.hello(1, flags=RESULT), "forward")
    yield Step(theirs.first(1, 1, flags=RESULT, session=99), "forward")  # a result, on its way from another switch
    yield Step(theirs.last(1, 1), "forward")
    yield Step(unseen.first(0, 1), "drop.unannounced")  # its hello passed before this switch started
    yield Step(unseen.last(0, 1), "drop.unclassified")
    yield Step(mixed.plain(0, SEND_ONLY, 0), "forward")
    yield Step(mixed.first(0, 1), "drop.unannounced")
    yield Step(mixed.last(0, 1), "drop.unannounced")
    yield Step(mixed.plain(0, RC_READ, 3), "drop.unannounced")
    yield Step(mixed.plain(0, SEND_ONLY, 3), "forward")
    yield Step(mixed.packet(0, SEND_LAST, 4, bytes(8)), "forward")
    yield Step(ours.first(0, 1, ring=9), "drop.unannounced")  # only hellos end an incarnation
    yield Step(ours.hello(0, ring=9), "forward")
    yield Step(ours.first(0, 1, ring=9), "drop.unannounced")
    yield from whole(ours, 1)
    yield Step(theirs.first(0, 2), "forward", AGEING - SECOND)
    yield Step(theirs.first(0, 3), "drop.unannounced", AGEING + SECOND)
    yield Step(theirs.last(0, 3), "drop.unclassified")
    stopped = replace(ours, nonce=0xB, qp=0x33, session=2)
    yield Step(stopped.plain(0, SEND_ONLY, -2), "forward")
    yield Step(replace(stopped, ring=9).only(0, 0), "drop.unannounced")
    yield from begun(stopped)
    yield from whole(stopped, 1)
    yield Step(ours.hello(0, ring=9), "drop.dead_connection")


def answer(run: Run, rank: int, /, **fields: int) -> bytes:
    """The result of a hello, from another switch to a host. It comes by the port that the host's hello left by, here as
    if the successor were the predecessor too: the switch knows the port of each host."""
    back = replace(run, hellos=[turned_around(hello) for hello in run.hellos])
    return back.hello(rank, flags=RESULT, **{"session": run.session, "msg": run.nonce} | fields)


def version_1(hellos: Hellos) -> Steps:
    """Its headers are foreign: a hello is forwarded, other messages only after an answered hello."""
    ours = Run(hellos, epoch=5, nonce=0xA)
    old, unseen = replace(ours, qp=0x30), replace(ours, qp=0x31)
    yield from begun(ours)
    yield Step(unseen.first(1, 1, version=1), "drop.unannounced")
    yield Step(unseen.last(1, 1), "drop.unclassified")
    yield Step(old.hello(1, version=1, session=0), "forward")
    yield Step(answer(old, 1, version=1, msg=0), "forward")
    yield Step(old.first(1, 1, version=1), "forward")
    yield Step(old.last(1, 1), "forward")
    yield Step(old.first(1, 2, version=4), "forward")
    yield from whole(ours, 1)


def strangers_headers(hellos: Hellos) -> Steps:
    """Every reason for which a header is foreign, with hellos."""
    run = Run(hellos, epoch=5, nonce=0xA)
    said: tuple[dict[str, int], ...] = ({"version": 1}, {"ring": 8}, {"world": 2}, {"rank": 3}, {"rank": 1})
    yield from begun(run)
    for place, fields in enumerate(said):
        queue_pair = replace(run, qp=0x30 + place)
        yield Step(queue_pair.hello(0, **fields), "forward")
        yield Step(answer(queue_pair, 0, **fields), "forward")
        yield Step(queue_pair.first(0, 1, **fields), "forward")
    yield from whole(run, 1)


def magic_between_others(hellos: Hellos) -> Steps:
    """The rule of the magic holds between all addresses: against a ring's direction, and between strangers."""
    run = Run(hellos, epoch=5, nonce=0xA)
    yield from begun(run)
    yield Step(from_stranger(no_roce(hellos[0].frame)), "forward")  # the switch learns the stranger's port
    for others in ([turned_around(h) for h in hellos], [between_strangers(h) for h in hellos]):
        announced = replace(run, hellos=others, qp=0x50, ring=9)
        answering = replace(announced, hellos=[turned_around(h) for h in others])
        unseen = replace(announced, qp=0x51)
        yield Step(announced.last(0, 1), "forward")  # not ring neighbours: "never guess" does not apply
        yield Step(announced.hello(0), "forward")
        yield Step(announced.last(0, 1), "drop.unannounced")
        yield Step(announced.first(0, 1), "drop.unannounced")
        yield Step(announced.last(0, 1), "drop.unannounced")
        yield Step(answering.hello(0, flags=RESULT, session=1, msg=announced.nonce), "forward")
        yield Step(announced.hello(0), "forward")
        yield Step(announced.first(0, 1), "forward")
        yield Step(announced.last(0, 1), "forward")
        yield Step(unseen.plain(0, SEND_ONLY, 0), "forward")
        yield Step(unseen.first(0, 1), "drop.unannounced")
        yield Step(unseen.last(0, 1), "drop.unannounced")
        yield Step(unseen.plain(0, SEND_ONLY, 4), "forward")
        yield Step(unseen.last(0, 2), "forward")
        yield Step(announced.first(0, 2), "forward", AGEING - SECOND)
        yield Step(announced.first(0, 3), "drop.unannounced", AGEING + SECOND)
    yield from whole(run, 1)


def turned_around(hello: Roce) -> Roce:
    """With source and destination exchanged: a ring's data does not go that way."""
    frame = hello.frame
    return template(frame[6:12] + frame[:6] + frame[12:26] + frame[30:34] + frame[26:30] + frame[34:])


def between_strangers(hello: Roce) -> Roce:
    """From an address that is no member's."""
    frame = from_stranger(hello.frame)
    return template(frame[:26] + bytes((10, 77, 0, 200)) + frame[30:])


def template(frame: bytes) -> Roce:
    """Checksums do not matter: `rebuilt` computes them."""
    roce = parse_roce(frame)
    assert roce
    return roce


def ageing(hellos: Hellos) -> Steps:
    """Live connections do not age, dead ones age late, plain ones after aging_s."""
    run = Run(hellos, epoch=5, nonce=0xA)
    plain = replace(run, qp=0x77)
    below = replace(run, qp=0x78, nonce=0xB)
    yield from begun(run)
    yield Step(plain.plain(0, SEND_ONLY, 0), "forward")
    yield Step(below.plain(0, SEND_ONLY, -2), "forward")
    yield Step(below.hello(0), "held")
    yield Step(plain.packet(0, SEND_LAST, 1, bytes(8)), "forward", AGEING - SECOND)
    yield Step(below.packet(0, SEND_LAST, -1, bytes(8)), "drop.unannounced")  # a hello ends what was plain
    yield Step(plain.packet(0, SEND_LAST, 1, bytes(8)), "drop.unclassified", AGEING + SECOND)
    yield Step(below.packet(0, SEND_LAST, -1, bytes(8)), "drop.unclassified")
    yield Step(run.first(0, 1), "aggregated", 100 * AGEING)
    yield Step(run.plain(0, SEND_ONLY, 2), "drop.out_of_turn")  # no change: the connection is not silent
    yield Step(run.last(0, 1), "aggregated")
    for rank in (1, 2):
        yield Step(run.first(rank, 1), "aggregated")
        yield Step(run.last(rank, 1), "aggregated")
    yield Step(run.plain(2, SEND_ONLY, 2), "forward")
    yield Step(run.first(2, 2), "held")
    yield Step(run.first(0, 2), "held")
    yield Step(run.plain(0, SEND_ONLY, 2), "forward", AGEING + SECOND)  # silent, but a slot holds its packet
    yield Step(run.first(0, 2), "drop.repeat_held")
    yield Step(run.plain(1, SEND_ONLY, 0x200), "forward")  # silent, and nothing held: plain from now on
    yield Step(run.packet(1, SEND_LAST, 0x201, bytes(8)), "forward")
    yield Step(run.first(1, 2), "drop.no_connection")


def long_wait_for_a_rank(hellos: Hellos) -> Steps:
    """A connection whose hello waited for longer than aging_s is the ring's from the beginning of the incarnation on."""
    run = Run(hellos, epoch=5, nonce=0xA)
    yield Step(run.hello(0), "aggregated")
    yield Step(run.hello(1), "aggregated", AGEING + SECOND)
    yield Step(run.hello(2), "aggregated")
    yield Step(run.plain(0, SEND_ONLY, 3), "drop.out_of_turn")
    yield from whole(run, 1)


def dead_connections(hellos: Hellos) -> Steps:
    """They stay dead for at least an hour, or for sixteen of the ACK timeouts in their hellos."""
    old = Run(hellos, epoch=5, nonce=0xA)
    yield Step(old.hello(0, ack_timeout=31), "aggregated")  # 4.096 us * 2^31, sixteen times: 39 hours
    yield Step(old.hello(1), "aggregated")
    yield Step(old.hello(2), "aggregated")
    yield from begun(replace(old, nonce=0xB, qp=0x40))
    yield Step(old.last(1, 1), "drop.dead_connection", 3590 * SECOND)
    yield Step(old.last(0, 1), "drop.dead_connection", 35 * 3600 * SECOND)
    yield Step(old.plain(0, SEND_ONLY, 9), "forward")  # a plain message from its own port: the number is used again
    yield Step(old.packet(0, SEND_LAST, 10, bytes(8)), "forward")


Job = Callable[[Hellos], Steps]
JOBS: dict[str, Job] = {job.__name__.replace("_", "-"): job for job in (
    equal_epoch_restart, queue_pair_used_again, late_hello_of_a_dead_run, epochs, retired_nonces, waiting, five_waiting,
    hello_of_the_current_incarnation, refused_headers, collectives, other_port, port_of_the_hello, other_requests,
    unknown_ring, version_1, strangers_headers, magic_between_others, ageing, long_wait_for_a_rank, dead_connections)}
TIED_TO_PORTS = {"other-port"}  # jobs whose ring's configuration names its members' ports
