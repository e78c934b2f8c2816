#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What weir-replay must send for each capture, worked out without any of Weir's own code.

A slow, obvious second reading of docs/protocol.md (§ numbers below are that page's) for the captures in
tests/replay/captures. It shares nothing with the switch, and its ICRC is held against scapy's.

    expect.py --write                         write rings/*.yaml and expected/*.txt
    expect.py --check                         those files are what the model says; results carry scapy's ICRC
    expect.py --check-captures                every ICRC in the captures is the one scapy computes
    expect.py --trace CASE                    the fate of every input frame
    expect.py --pcap CASE FILE.pcap           the expected frames as a capture
    expect.py --verify OUT.pcap --expected expected/CASE.txt      exit 1 and explain the first difference
"""
from __future__ import annotations

import argparse
import hashlib
import struct
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, NamedTuple

HERE = Path(__file__).resolve().parent
SESSION = 1  # weir-replay's session unless told; the hosts in the captures were told 1


# ---------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One replay: a capture, and the switch's configuration. Port i is named p<i>."""

    name: str
    capture: str
    mtu: int
    max_message_bytes: int  # 40-byte header included
    window: int  # N
    members: tuple[str, ...]  # IPv4, in rank order
    port_macs: tuple[str, ...]  # one station per port
    member_ports: bool  # configuration names each member's port (§3, "ingress port is that member's")
    note: str

    @property
    def world(self) -> int:
        return len(self.members)

    @property
    def packets_per_message(self) -> int:
        """L (§2)."""
        return -(-self.max_message_bytes // self.mtu)


def ring_case(name: str, hosts: int, mtu: int, max_bytes: int, note: str, window: int = 32, capture: str = "",
              member_ports: bool = False, more_macs: tuple[str, ...] = ()) -> Case:
    members = tuple(f"10.77.0.{r + 1}" for r in range(hosts))
    macs = tuple(f"52:54:00:00:00:{r + 1:02x}" for r in range(hosts)) + more_macs
    return Case(name, (capture or name) + ".pcap", mtu, max_bytes, window, members, macs, member_ports, note)


CASES = {c.name: c for c in (
    ring_case("ring4-f32-mtu1024-psnwrap", 4, 1024, 16384, "4 ranks, f32, PSN wrapping 2^24", member_ports=True),
    ring_case("ring3-i32-mtu256-noimm", 3, 256, 4096, "3 ranks, i32, plain WRITE"),
    ring_case("ring4-f32-mtu1024-loss2pct", 4, 1024, 16384, "4 ranks, f32, 2 % of frames lost at the senders"),
    ring_case("roce-mix", 2, 1024, 16384,
              "two hosts that are ring neighbours, nothing to aggregate; the third MAC is the bridge the capture was "
              "taken on", more_macs=("b2:8f:94:f3:2b:bb",)),
    ring_case("ring4-f32-mtu1024-psnwrap-window4", 4, 1024, 16384,
              "the first capture with the window its hosts had: each slot is used three times over",
              window=4, capture="ring4-f32-mtu1024-psnwrap"),
    ring_case("ring4-f32-mtu1024-loss2pct-window4", 4, 1024, 16384,
              "a window that, with no switch to hold them back, its hosts did not keep: broken windows, stale repeats",
              window=4, capture="ring4-f32-mtu1024-loss2pct"),
    ring_case("ring3-i32-mtu256-restart", 3, 256, 4096,
              "derived: a switch started after the hellos, which knows no connection and must not guess"),
    ring_case("ring3-i32-mtu256-hurt", 3, 256, 4096,
              "derived: damaged, foreign-session and conflicting copies beside the good packets", member_ports=True),
)}


def ring_yaml(case: Case) -> str:
    """The configuration weir-replay reads (design/interface.md)."""
    ports = "".join(f'  - {{ name: p{i}, device: "net_null{i}", macs: ["{m}"] }}\n' for i, m in
                    enumerate(case.port_macs))
    members = "".join(f"      - {{ ip: {ip}{f', port: p{r}' if case.member_ports else ''} }}\n"
                      for r, ip in enumerate(case.members))
    return ("# SPDX-License-Identifier: BSD-3-Clause\n"
            f"# {case.capture}: {case.note}.\n"
            "# Written by tests/replay/expect.py --write; edit its CASES instead.\n"
            'eal:\n  options: ["--no-huge", "-m", "512", "--no-pci", "--no-shconf"]\n'
            f"ports:\n{ports}"
            "lcores:\n  - { id: 0, roles: [control, rx, worker, tx] }\n"
            "l2: { aging_s: 300 }\n"
            f"rings:\n  - id: 7\n    window: {case.window}\n    max_message_bytes: {case.max_message_bytes}\n"
            f"    mtu: {case.mtu}\n    members:\n{members}")


# ------------------------------------------------------------------------------------------- captures


def read_pcap(path: Path) -> list[bytes]:
    """Frames of a classic pcap file, either byte order, micro- or nanoseconds."""
    data = path.read_bytes()
    if len(data) < 24:
        sys.exit(f"{path}: {len(data)} bytes are no pcap file; its header alone is 24")
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
             b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if order is None:
        sys.exit(f"{path}: magic {data[:4].hex()} is not that of a classic pcap file")
    frames, at = [], 24
    while at < len(data):
        if at + 16 > len(data):
            sys.exit(f"{path}: cut off in the header of frame {len(frames)}")
        captured, original = struct.unpack_from(order + "II", data, at + 8)
        at += 16
        if captured != original or at + captured > len(data):
            sys.exit(f"{path}: frame {len(frames)} is cut: {captured} of {original} bytes")
        frames.append(data[at:at + captured])
        at += captured
    return frames


def pcap_bytes(frames: list[bytes]) -> bytes:
    """Classic little-endian pcap, link type Ethernet, the frame's index as its microseconds."""
    records = (struct.pack("<IIII", 0, i, len(f), len(f)) + f for i, f in enumerate(frames))
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records)


# ----------------------------------------------------------------------------------------------- wire

# RC opcodes that §3 aggregates: name, bytes of RETH and immediate after the BTH (IBTA 9.2 table of opcodes).
RC_DATA = {
    0x00: ("SEND_FIRST", 0), 0x01: ("SEND_MIDDLE", 0), 0x02: ("SEND_LAST", 0), 0x03: ("SEND_LAST_IMM", 4),
    0x04: ("SEND_ONLY", 0), 0x05: ("SEND_ONLY_IMM", 4),
    0x06: ("WRITE_FIRST", 16), 0x07: ("WRITE_MIDDLE", 0), 0x08: ("WRITE_LAST", 0), 0x09: ("WRITE_LAST_IMM", 4),
    0x0A: ("WRITE_ONLY", 16), 0x0B: ("WRITE_ONLY_IMM", 20),
}
INA_LEN = 40


class Ina(NamedTuple):
    """The INA header (§2)."""

    magic: int
    version: int
    op: int
    dtype: int
    flags: int
    ring: int
    rank: int
    world: int
    msg: int
    msg_len: int
    epoch: int
    session: int
    collective: int
    reserved0: int
    root: int
    reserved1: int

    LAYOUT = struct.Struct(">IBBBBIHHIIIIBBHI")  # type: ignore[misc]


assert Ina.LAYOUT.size == INA_LEN
MAGIC = 0x57454952
HELLO = 1


@dataclass(frozen=True)
class Roce:
    """A RoCEv2 frame over IPv4 whose lengths agree; offsets are into `frame`."""

    frame: bytes
    src: str
    dst: str
    qp: int
    opcode: int
    psn: int
    ip_at: int
    bth_at: int
    payload_at: int  # meaningful for RC_DATA alone
    payload_end: int  # pad excluded
    end: int  # first byte of the ICRC

    @property
    def kind(self) -> str:
        return RC_DATA[self.opcode][0] if self.opcode in RC_DATA else f"op{self.opcode:02x}"

    @property
    def starts_message(self) -> bool:
        return "FIRST" in self.kind or "ONLY" in self.kind

    @property
    def payload(self) -> bytes:
        return self.frame[self.payload_at:self.payload_end]

    @property
    def connection(self) -> tuple[str, str, int]:
        return self.src, self.dst, self.qp

    def ina(self) -> Ina | None:
        """The INA header, where the payload starts with one."""
        if not self.starts_message or len(self.payload) < INA_LEN:
            return None
        header = Ina(*Ina.LAYOUT.unpack_from(self.payload))
        return header if header.magic == MAGIC else None

    def icrc_is_right(self) -> bool:
        return self.frame[self.end:self.end + 4] == icrc(self.frame, self.ip_at, self.bth_at, self.end)


def parse_roce(frame: bytes) -> Roce | None:
    """None for everything that is not an unfragmented RoCEv2/IPv4 frame with lengths that agree.

    No capture holds RoCE over IPv6, RoCE v1 or a VLAN tag; icrc_vectors.py covers those."""
    if frame[12:14] != b"\x08\x00" or len(frame) < 34 or frame[14] >> 4 != 4:
        return None
    ip_at, ip_len = 14, (frame[14] & 15) * 4
    total, fragment = struct.unpack_from(">H2xH", frame, ip_at + 2)
    udp_at = ip_at + ip_len
    bth_at = udp_at + 8
    if frame[ip_at + 9] != 17 or fragment & 0x3FFF or ip_at + total > len(frame) or total < ip_len + 8 + 12 + 4:
        return None
    dport, udp_len = struct.unpack_from(">HH", frame, udp_at + 2)
    if dport != 4791 or udp_len != total - ip_len:
        return None
    opcode, pad = frame[bth_at], frame[bth_at + 1] >> 4 & 3
    end = ip_at + total - 4
    payload_at = bth_at + 12 + (RC_DATA[opcode][1] if opcode in RC_DATA else 0)
    if payload_at + pad > end:
        return None
    return Roce(frame, dotted(frame[ip_at + 12:ip_at + 16]), dotted(frame[ip_at + 16:ip_at + 20]),
                int.from_bytes(frame[bth_at + 5:bth_at + 8], "big"), opcode,
                int.from_bytes(frame[bth_at + 9:bth_at + 12], "big"), ip_at, bth_at, payload_at, end - pad, end)


def dotted(address: bytes) -> str:
    return ".".join(map(str, address))


def mac_text(mac: bytes) -> str:
    return mac.hex(":")


def icrc(frame: bytes, ip_at: int, bth_at: int, end: int) -> bytes:
    """§6 for IPv4: zlib's CRC-32 is the polynomial, reflection, initial value and final xor that §6 names."""
    covered = bytearray(b"\xff" * 8 + frame[ip_at:end])
    ip, udp, bth = 8, 8 + bth_at - 8 - ip_at, 8 + bth_at - ip_at
    for masked in (ip + 1, ip + 8, ip + 10, ip + 11, udp + 6, udp + 7, bth + 4):  # TOS, TTL, checksums, FECN byte
        covered[masked] = 0xFF
    return struct.pack("<I", zlib.crc32(covered))


def scapy_icrc(frame: bytes) -> bytes:
    """The same by scapy's contrib.roce, which rebuilds the packet from its fields."""
    from scapy.contrib.roce import BTH  # type: ignore[import-untyped]
    from scapy.layers.l2 import Ether  # type: ignore[import-untyped]

    packet = Ether(frame)
    packet[BTH].icrc = None
    rebuilt = bytes(packet)
    if rebuilt[:-4] != frame[:-4]:
        raise AssertionError(f"scapy rebuilds another frame: {rebuilt.hex()} from {frame.hex()}")
    return rebuilt[-4:]


# ------------------------------------------------------------------------------------------ reduction


def sum_f32(parts: list[bytes]) -> bytes:
    """Left fold in the order given (§2), rounded to f32 at each step.

    Python adds the two f32 as doubles and struct rounds that to f32. Rounding twice is innocuous here: a double has
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


REDUCERS = {(0, 0): sum_f32, (0, 1): sum_i32}  # (op, dtype) of §2 that the captures use


# --------------------------------------------------------------------------------------------- switch


def serial(a: int, b: int, bits: int) -> int:
    """a - b in serial arithmetic: the signed distance modulo 2^bits (PSN: 24, msg_id: 32)."""
    half = 1 << (bits - 1)
    return ((a - b + half) % (1 << bits)) - half


@dataclass
class Message:
    """A message whose FIRST was seen: what its later packets cannot say for themselves."""

    ina: Ina
    psn: int  # of the FIRST packet
    count: int  # packets

    def agreement(self) -> tuple[int, ...]:
        """What all ranks must agree on (§2)."""
        return self.ina.op, self.ina.dtype, self.ina.msg_len, self.ina.collective, self.ina.root


@dataclass
class Connection:
    """Message history of a ring's connection (§3)."""

    rank: int
    newest: int  # M
    known: dict[int, Message] = field(default_factory=dict)  # messages M-2N+1 .. M, holes left out
    floor: int | None = None  # None until a message has left: then nothing is "before" it


class Packet(NamedTuple):
    """A packet on its way into a slot."""

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
    packets: dict[int, Packet] = field(default_factory=dict)  # by rank; stays for the explanation of differences
    result: bytes | None = None


@dataclass(frozen=True)
class Sent:
    """One frame that leaves."""

    frame: bytes
    cause: int  # index of the input frame
    kind: str  # forward, flood, stale-forward, result, cached-result
    port: int
    rank: int | None = None
    msg: int | None = None
    k: int | None = None
    contributors: tuple[int, ...] = ()  # input frames summed, in rank order


class Switch:
    """docs/protocol.md for one ring, one frame at a time."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.port_of_source = {bytes.fromhex(m.replace(":", "")): i for i, m in enumerate(case.port_macs)}
        self.fdb: dict[bytes, int] = {}
        self.connections: dict[tuple[str, str, int], Connection | None] = {}  # None: classified as plain
        self.slots: dict[int, Slot] = {}
        self.epoch: int | None = None
        self.sent: list[Sent] = []
        self.fate: dict[int, str] = {}  # exactly one for each input frame (I6)

    # -- the plain switch

    def receive(self, index: int, frame: bytes) -> None:
        port = self.port_of_source[frame[6:12]]
        if not frame[6] & 1:
            self.fdb[frame[6:12]] = port  # from every frame, also those dropped below
        if frame[:5] == b"\x01\x80\xc2\x00\x00" and frame[5] <= 0x0F:  # IEEE 802.1D 7.12.6
            self.fate[index] = "drop.link_local"
            return
        roce = parse_roce(frame)
        if roce and roce.opcode in RC_DATA and (roce.src, roce.dst) in self.neighbours():
            self.classify(index, roce, port)
        else:
            self.forward(index, frame, port)

    def egress(self, frame: bytes, ingress: int) -> list[int]:
        if frame[0] & 1 or frame[:6] not in self.fdb:
            return [p for p in range(len(self.case.port_macs)) if p != ingress]
        return [p for p in [self.fdb[frame[:6]]] if p != ingress]

    def forward(self, index: int, frame: bytes, port: int, kind: str = "forward") -> None:
        """As it came, by destination MAC; flooded when that is a group or unknown."""
        ports = self.egress(frame, port)
        if kind == "forward" and (frame[0] & 1 or frame[:6] not in self.fdb):
            kind = "flood"
        self.fate[index] = kind if ports else "drop.same_port"
        for p in ports:
            self.sent.append(Sent(frame, index, kind, p))

    def neighbours(self) -> dict[tuple[str, str], int]:
        """<source, destination> of each member and its successor: the rank (§1)."""
        ips = self.case.members
        return {(ips[r], ips[(r + 1) % len(ips)]): r for r in range(len(ips))}

    # -- classification (§3)

    def classify(self, index: int, roce: Roce, port: int) -> None:
        if roce.starts_message:
            self.first_or_only(index, roce, port)
        else:
            self.middle_or_last(index, roce, port)

    def first_or_only(self, index: int, roce: Roce, port: int) -> None:
        """Order of the checks: ICRC, INA header, member, shape, epoch, connection, session, history, slot.

        The ICRC comes first: a ring's FIRST whose magic was hit by noise must not turn its connection plain."""
        if not roce.icrc_is_right():
            return self.drop(index, "bad_icrc")
        ina = roce.ina()
        if ina is None or not self.belongs(ina, roce, port):
            self.connections[roce.connection] = None
            return self.forward(index, roce.frame, port)
        message = Message(ina, roce.psn, -(-(INA_LEN + ina.msg_len) // self.case.mtu))
        if not self.well_formed(roce, message, 0) or message.count > self.case.packets_per_message:
            return self.drop(index, "malformed")
        if self.epoch is not None and serial(ina.epoch, self.epoch, 32) < 0:
            return self.drop(index, "old_epoch")
        if self.epoch is None or serial(ina.epoch, self.epoch, 32) > 0:
            self.flush(ina.epoch)
        connection = self.connections.get(roce.connection)
        if ina.collective == HELLO:
            if connection is None:
                connection = self.connections[roce.connection] = Connection(ina.rank, ina.msg)
        elif connection is None:
            return self.drop(index, "no_connection")
        elif ina.session != SESSION:
            return self.drop(index, "wrong_session")
        self.enter(Packet(index, roce, ina.rank, message, 0), connection, port)

    def belongs(self, ina: Ina, roce: Roce, port: int) -> bool:
        return (ina.ring == 7 and ina.version == 1 and ina.world == self.case.world
                and self.neighbours().get((roce.src, roce.dst)) == ina.rank
                and (port == ina.rank or not self.case.member_ports))

    def well_formed(self, roce: Roce, message: Message, k: int) -> bool:
        """The opcode fits the packet's place, and its payload is an MTU, or in the last packet the rest (§2)."""
        ina, last = message.ina, k == message.count - 1
        place = "ONLY" if message.count == 1 else "FIRST" if k == 0 else "LAST" if last else "MIDDLE"
        rest = INA_LEN + ina.msg_len - (message.count - 1) * self.case.mtu
        hello = (ina.msg, ina.msg_len, ina.session, message.count) == (0, 0, 0, 1)
        return (place in roce.kind and len(roce.payload) == (rest if last else self.case.mtu)
                and (ina.op, ina.dtype) in REDUCERS and ina.flags == 0
                and (hello if ina.collective == HELLO else ina.collective == 0 and ina.msg != 0))

    def flush(self, epoch: int) -> None:
        """§4, Epochs."""
        for slot in self.slots.values():
            for packet in slot.packets.values():
                if slot.result is None:
                    self.fate[packet.index] = "drop.epoch_flush"
        self.slots.clear()
        self.connections = {key: c for key, c in self.connections.items() if c is None}
        self.epoch = epoch

    def enter(self, packet: Packet, connection: Connection, port: int) -> None:
        """The history's table (§3), its rows for FIRST and ONLY."""
        window, msg = self.case.window, packet.message.ina.msg
        ahead = serial(msg, connection.newest, 32)
        if ahead <= -2 * window:
            return self.forward(packet.index, packet.roce.frame, port, "stale-forward")
        if ahead > window:
            return self.drop(packet.index, "window_exceeded")
        if msg in connection.known and connection.known[msg].psn != packet.message.psn:
            return self.drop(packet.index, "history_conflict")
        connection.known.setdefault(msg, packet.message)
        if ahead > 0:
            connection.newest = msg  # even where the slot then refuses the packet
            for old in sorted(connection.known, key=lambda m: serial(m, msg, 32)):
                if serial(old, msg, 32) <= -2 * window:
                    gone = connection.known.pop(old)  # a hole that leaves has no PSN and moves no floor
                    connection.floor = (gone.psn + gone.count) % (1 << 24)
        self.into_slot(packet, port)

    def middle_or_last(self, index: int, roce: Roce, port: int) -> None:
        """The history's table (§3), its rows for the other packets, and "never guess"."""
        if roce.connection not in self.connections:
            return self.drop(index, "unclassified")
        connection = self.connections[roce.connection]
        if connection is None:
            return self.forward(index, roce.frame, port)
        for message in connection.known.values():
            k = serial(roce.psn, message.psn, 24)
            if 0 <= k < message.count:
                if not roce.icrc_is_right():
                    return self.drop(index, "bad_icrc")
                if not self.well_formed(roce, message, k):
                    return self.drop(index, "malformed")
                return self.into_slot(Packet(index, roce, connection.rank, message, k), port)
        if connection.floor is not None and serial(roce.psn, connection.floor, 24) < 0:
            return self.forward(index, roce.frame, port, "stale-forward")
        return self.drop(index, "unknown_message")

    def drop(self, index: int, reason: str) -> None:
        self.fate[index] = "drop." + reason

    # -- slots (§4)

    def into_slot(self, packet: Packet, port: int) -> None:
        msg = packet.message.ina.msg
        where = msg % (2 * self.case.window) * self.case.packets_per_message + packet.k
        terms = (*packet.message.agreement(), len(packet.roce.payload))
        slot = self.slots.get(where)
        age = serial(msg, slot.tag, 32) if slot else 1  # how much newer the packet is than the slot
        if age < 0:
            return self.forward(packet.index, packet.roce.frame, port, "stale-forward")
        if age > 0:
            if slot and slot.result is None:
                return self.drop(packet.index, "window_violation")
            slot = self.slots[where] = Slot(msg, terms)
        assert slot is not None
        if slot.terms != terms:
            return self.drop(packet.index, "disagreement")
        if slot.result is not None:
            self.fate[packet.index] = "cached-repeat"
            return self.emit(packet, slot, packet.index, "cached-result", port)
        if packet.rank in slot.packets:
            return self.drop(packet.index, "repeat_held")  # "keep one copy": the one already there
        slot.packets[packet.rank] = packet
        self.fate[packet.index] = "held"
        if len(slot.packets) == self.case.world:
            self.complete(slot, packet)

    def complete(self, slot: Slot, last: Packet) -> None:
        reducer = REDUCERS[slot.terms[0], slot.terms[1]]
        ranks = range(self.case.world)
        slot.result = reducer([slot.packets[r].data for r in ranks])
        for r in ranks:
            own = slot.packets[r]
            self.fate[own.index] = "aggregated"
            self.emit(own, slot, last.index, "result", self.fdb[own.roce.frame[6:12]])

    def emit(self, own: Packet, slot: Slot, cause: int, kind: str, ingress: int) -> None:
        """The result packet of a rank (§5). `own` gives the headers: of a repeat, the repeat."""
        assert slot.result is not None
        roce, header = own.roce, b""
        if own.k == 0:
            ina = own.message.ina if kind == "result" else roce.ina()
            assert ina is not None
            session = SESSION if ina.collective == HELLO else ina.session
            header = Ina.LAYOUT.pack(*ina._replace(flags=ina.flags | 1, session=session))
        pad = roce.frame[roce.payload_end:roce.end]
        frame = roce.frame[:roce.payload_at] + header + slot.result + pad
        frame += icrc(frame, roce.ip_at, roce.bth_at, roce.end) + roce.frame[roce.end + 4:]
        assert len(frame) == len(roce.frame)
        contributors = tuple(slot.packets[r].index for r in range(self.case.world))
        for port in self.egress(frame, ingress):
            self.sent.append(Sent(frame, cause, kind, port, own.rank, slot.tag, own.k, contributors))


# ------------------------------------------------------------------------------------------- counters


def run(case: Case) -> tuple[list[bytes], Switch]:
    frames = read_pcap(HERE / "captures" / case.capture)
    switch = Switch(case)
    for index, frame in enumerate(frames):
        switch.receive(index, frame)
    return frames, switch


def counters(case: Case, frames: list[bytes], switch: Switch) -> dict[str, int]:
    """Each received frame is counted once (I6), each sent frame once; both sums are asserted."""
    fates, kinds = Counter(switch.fate.values()), Counter(s.kind for s in switch.sent)
    complete = sum(slot.result is not None for slot in switch.slots.values())
    result = {
        "received": len(frames),
        "forwarded": fates["forward"],
        "flooded": fates["flood"],
        "stale_forwarded": fates["stale-forward"],
        "aggregated": fates["aggregated"],
        "cached_repeats": fates["cached-repeat"],
        "held_at_end": fates["held"],
        **{name: count for name, count in sorted(fates.items()) if name.startswith("drop.")},
        "sent": len(switch.sent),
        "sent_flood_copies": kinds["flood"],
        "sent_results": kinds["result"],
        "sent_cached_results": kinds["cached-result"],
        "slots_completed": fates["aggregated"] // case.world,
        "slots_complete_at_end": complete,
        "slots_filling_at_end": len(switch.slots) - complete,
    }
    assert len(switch.fate) == len(frames) == sum(fates.values())
    return result | reached(case, frames, switch)


def reached(case: Case, frames: list[bytes], switch: Switch) -> dict[str, int]:
    """Which (message, packet) each rank reached, by PSN alone: no history, no slots, no order of arrival.

    Every message of these captures but the hello has the same number of packets, so a packet's PSN minus its
    connection's hello's, wherever in the capture that is, names its slot. Asserted on the way: a repeat carries the
    data of the original, so whichever copy is summed, the sum is the same; and every result that leaves carries the
    sum of what the capture has from each rank at its PSN."""
    packets = [(i, roce) for i, roce in enumerate(map(parse_roce, frames))
               if roce and roce.opcode in RC_DATA and (roce.src, roce.dst) in switch.neighbours()]
    hello = {roce.connection: roce.psn for _, roce in packets
             if (ina := roce.ina()) and ina.ring == 7 and ina.collective == HELLO}
    planted = ("drop.bad_icrc", "drop.wrong_session", "drop.history_conflict")  # by hurt() alone: no copies of anything
    taken = ("held", "aggregated", "cached-repeat", "drop.repeat_held")
    present: dict[int, set[int]] = {}
    accepted: dict[int, set[int]] = {}
    data: dict[tuple[int, int], bytes] = {}
    for index, roce in packets:
        if roce.connection not in hello or switch.fate[index] in planted:
            continue
        rank, place = switch.neighbours()[roce.src, roce.dst], serial(roce.psn, hello[roce.connection], 24)
        assert data.setdefault((rank, place), roce.payload) == roce.payload, f"frame {index}: a repeat changed its data"
        present.setdefault(place, set()).add(rank)
        if switch.fate[index] in taken:
            accepted.setdefault(place, set()).add(rank)
    for sent in switch.sent:
        roce = parse_roce(sent.frame)
        if roce and sent.kind in ("result", "cached-result"):
            place = serial(roce.psn, hello[roce.connection], 24)
            header = INA_LEN if roce.ina() else 0
            dtype = int(case.capture.startswith("ring3-i32"))
            parts = [data[rank, place][header:] for rank in range(case.world)]
            assert roce.payload[header:] == REDUCERS[0, dtype](parts), line_of(0, sent)
    full = [sum(len(ranks) == case.world for ranks in places.values()) for places in (present, accepted)]
    return {"slots_in_capture_from_all_ranks": full[0], "slots_reached_by_all_ranks": full[1]}


# ---------------------------------------------------------------------------------- derived captures


def restart(frames: list[bytes]) -> Iterator[bytes]:
    """All but the three hellos and the ACKs between them."""
    yield from frames[5:]


def hurt(frames: list[bytes]) -> Iterator[bytes]:
    """Every good packet stays, in its order, so every slot must still complete with the right sum."""
    for number, frame in enumerate(frames):
        roce = parse_roce(frame)
        assert roce
        if roce.opcode in RC_DATA and number % 7 == 0:
            yield flipped(frame, roce.payload_at + number % len(roce.payload))
        if (ina := roce.ina() if roce.opcode in RC_DATA else None) and ina.collective != HELLO:
            yield flipped(frame, roce.payload_at)  # the magic
            yield resigned(frame, roce.payload_at + 28, (SESSION + 1).to_bytes(4, "big"))
            yield frame
            other_psn = (roce.psn + 5) % (1 << 24)
            yield resigned(frame, roce.bth_at + 9, other_psn.to_bytes(3, "big"))  # of a message known by now
        else:
            yield frame


def flipped(frame: bytes, at: int) -> bytes:
    """One bit of noise; the ICRC stays that of the good frame."""
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1:]


def resigned(frame: bytes, at: int, new: bytes) -> bytes:
    """Other bytes under a right ICRC."""
    roce = parse_roce(frame)
    assert roce
    frame = frame[:at] + new + frame[at + len(new):]
    return frame[:roce.end] + icrc(frame, roce.ip_at, roce.bth_at, roce.end)


DERIVED = {"ring3-i32-mtu256-restart.pcap": restart, "ring3-i32-mtu256-hurt.pcap": hurt}  # of ring3-i32-mtu256-noimm


# --------------------------------------------------------------------------------- expectation files


def digest(frame: bytes) -> str:
    return hashlib.sha256(frame).hexdigest()


def line_of(index: int, sent: Sent) -> str:
    place = " ".join("-" if v is None else str(v) for v in (sent.rank, sent.msg, sent.k))
    return f"{index} {sent.cause} {sent.kind} p{sent.port} {place} {len(sent.frame)} {digest(sent.frame)}"


def expectation(case: Case) -> tuple[str, Switch]:
    frames, switch = run(case)
    counts = counters(case, frames, switch)
    if case.window == 32:  # then no slot is ever reclaimed, and none of those all ranks reached may be missing
        assert counts["slots_reached_by_all_ranks"] == counts["slots_completed"], counts
    text = [f"# {case.name}: what leaves, in order, when rings/{case.name}.yaml meets captures/{case.capture}",
            "# Written by tests/replay/expect.py --write. Frame lines: index, input frame that caused it, kind, egress",
            "# port, rank, message, packet, length, SHA-256 of the whole frame. Counter lines at the end.",
            f"case {case.name}"]
    text += [line_of(i, sent) for i, sent in enumerate(switch.sent)]
    if case.window == 32:
        text += [f"# All ranks reached {counts['slots_reached_by_all_ranks']} slots, and as many were completed."]
    text += [f"counter {name} {value}" for name, value in counts.items()]
    return "\n".join(text) + "\n", switch


def derived_files() -> Iterator[tuple[str, Path, bytes]]:
    source = read_pcap(HERE / "captures" / "ring3-i32-mtu256-noimm.pcap")
    for name, derive in DERIVED.items():
        yield name, HERE / "captures" / name, pcap_bytes(list(derive(source)))


def files_of(case: Case) -> Iterator[tuple[Path, str, Switch]]:
    text, switch = expectation(case)
    yield HERE / "rings" / f"{case.name}.yaml", ring_yaml(case), switch
    yield HERE / "expected" / f"{case.name}.txt", text, switch


def write() -> int:
    for name, path, data in derived_files():
        path.write_bytes(data)
        print(f"captures/{name}: {len(data)} bytes")
    for case in CASES.values():
        for path, text, _ in files_of(case):
            path.write_text(text)
            print(f"{path.relative_to(HERE)}: {len(text)} bytes")
    return 0


def check() -> int:
    """The files are current, and of the ICRCs the model wrote scapy confirms each 50th and each kind of header."""
    bad = 0
    for name, path, data in derived_files():
        if not path.exists() or path.read_bytes() != data:
            print(f"{path}: not what this script derives; expect.py --write")
            bad += 1
    for case in CASES.values():
        switch = None
        for path, text, switch in files_of(case):
            if not path.exists() or path.read_text() != text:
                print(f"{path}: not what the model says; look at the difference, then expect.py --write")
                bad += 1
        assert switch is not None
        seen: set[tuple[str, int]] = set()
        checked = 0
        results = (s for s in switch.sent if s.kind in ("result", "cached-result"))
        for number, sent in enumerate(results):
            header = sent.kind, sent.frame[42]
            if number % 50 == 0 or header not in seen:
                seen.add(header)
                checked += 1
                if scapy_icrc(sent.frame) != sent.frame[-4:]:
                    print(f"{case.name}: scapy has another ICRC for {line_of(number, sent)}")
                    bad += 1
        print(f"{case.name}: {len(switch.sent)} frames expected; scapy confirms {checked} of the results' ICRCs")
    return bool(bad)


def check_captures() -> int:
    bad = 0
    for capture in sorted({case.capture for case in CASES.values()} - set(DERIVED)):
        frames = [(i, f) for i, f in enumerate(read_pcap(HERE / "captures" / capture)) if parse_roce(f)]
        for index, frame in frames:
            roce = parse_roce(frame)
            right = scapy_icrc(frame)
            if roce is None or right != frame[-4:] or not roce.icrc_is_right():
                print(f"{capture} frame {index}: ICRC {frame[-4:].hex()}, scapy says {right.hex()}")
                bad += 1
        print(f"{capture}: {len(frames)} RoCE frames, {'all ICRCs right' if not bad else f'{bad} wrong so far'}")
    return bool(bad)


# ----------------------------------------------------------------------------------------- comparison


def describe(frame: bytes) -> str:
    """One line a person can compare."""
    text = f"{len(frame)} bytes, {mac_text(frame[6:12])} > {mac_text(frame[:6])}, type {frame[12:14].hex()}"
    roce = parse_roce(frame)
    if roce is None:
        return text
    icrc_text = "right" if roce.icrc_is_right() else "WRONG"
    text += (f", {roce.src} > {roce.dst}, QP {roce.qp:#x}, {roce.kind}, PSN {roce.psn:#08x}, "
             f"{len(roce.payload)} payload, ICRC {icrc_text}")
    ina = roce.ina() if roce.opcode in RC_DATA else None
    if ina is None:
        return text
    return text + "\n            INA " + ", ".join(f"{name} {value}" for name, value in ina._asdict().items())


def hex_rows(want: bytes, got: bytes) -> str:
    """Both frames side by side, three rows of 16 bytes before and after the first byte that differs."""
    first = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    start = max(0, first // 16 - 3) * 16
    rows = [f"  first difference at byte {first} ({field_at(want, first)})", f"  {'':6}{'expected':<49}got"]
    for at in range(start, min(max(len(want), len(got)), start + 7 * 16), 16):
        a, b = want[at:at + 16], got[at:at + 16]
        rows.append(f"{' ' if a == b else '>'} {at:04x}: {a.hex(' '):<47}  {b.hex(' ')}")
    return "\n".join(rows)


def field_at(frame: bytes, at: int) -> str:
    """The part of the expected frame that byte `at` lies in."""
    roce = parse_roce(frame)
    parts = [(14, "Ethernet")]
    if roce:
        data_at = roce.payload_at + (INA_LEN if roce.opcode in RC_DATA and roce.ina() else 0)
        parts += [(roce.bth_at - 8, "IP"), (roce.bth_at, "UDP"), (roce.bth_at + 12, "BTH"),
                  (roce.payload_at, "RETH and immediate"), (data_at, "INA header"),
                  (roce.payload_end, f"data, element of 4 bytes {(at - data_at) // 4}"), (roce.end, "pad"),
                  (roce.end + 4, "ICRC")]
    return next((name for end, name in parts if at < end), "payload" if at < len(frame) else "past the end")


def verify(out: Path, expected: Path) -> int:
    lines = [line for line in expected.read_text().splitlines() if line and not line.startswith(("#", "counter "))]
    case = CASES.get(lines[0].removeprefix("case ")) if lines else None
    if case is None:
        sys.exit(f"{expected}: its first line that is no comment should name a case: case {' | '.join(CASES)}")
    wanted, got = lines[1:], read_pcap(out)
    for number, (line, frame) in enumerate(zip(wanted, got)):
        _, _, _, _, _, _, _, length, sha = line.split()
        if len(frame) != int(length) or digest(frame) != sha:
            explain(case, number, line, frame, got)
            return 1
    if len(got) != len(wanted):
        print(f"{out}: {len(got)} frames, expected {len(wanted)}; all those in both are equal")
        if len(got) < len(wanted):
            print(f"  first one missing: {wanted[len(got)]}")
        else:
            print(f"  first one too many: {describe(got[len(wanted)])}")
        return 1
    print(f"{out}: {len(got)} frames, each as {expected.name} has it")
    return 0


def explain(case: Case, number: int, line: str, frame: bytes, got: list[bytes]) -> None:
    _, switch = run(case)
    want = switch.sent[number]
    print(f"frame {number} differs from: {line}")
    if line_of(number, want) != line:
        print("  (the model now says something else than this file: run expect.py --check first)")
    print(f"  expected: {describe(want.frame)}\n  got:      {describe(frame)}")
    print(f"  cause: input frame {want.cause}, fate {switch.fate[want.cause]}")
    if want.contributors:
        print(f"  slot: message {want.msg}, packet {want.k}; to rank {want.rank}'s successor; summed input frames "
              f"{', '.join(f'rank {r}: {i}' for r, i in enumerate(want.contributors))}")
    later = [i for i, f in enumerate(got) if f == want.frame]
    if later:
        print(f"  the expected frame is in the output, at {later[:4]}: order, or something before it too many or few")
    elsewhere = [i for i, s in enumerate(switch.sent) if s.frame == frame]
    if elsewhere:
        print(f"  the frame got is expected at {elsewhere[:4]}")
    print(hex_rows(want.frame, frame))


def trace(name: str) -> int:
    if name not in CASES:
        sys.exit(f"no case {name}; there are {', '.join(CASES)}")
    frames, switch = run(CASES[name])
    for index, frame in enumerate(frames):
        out = [i for i, s in enumerate(switch.sent) if s.cause == index]
        print(f"{index} {switch.fate[index]}{f' -> out {out[0]}..{out[-1]}' if out else ''}: {describe(frame)}")
    return 0


def write_pcap(name: str, path: Path) -> int:
    """The expected frames as a capture, for wireshark and for trying --verify."""
    if name not in CASES:
        sys.exit(f"no case {name}; there are {', '.join(CASES)}")
    _, switch = run(CASES[name])
    path.write_bytes(pcap_bytes([sent.frame for sent in switch.sent]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    action.add_argument("--check-captures", action="store_true")
    action.add_argument("--trace", metavar="CASE")
    action.add_argument("--verify", type=Path, metavar="OUT.pcap")
    action.add_argument("--pcap", nargs=2, metavar=("CASE", "FILE"))
    parser.add_argument("--expected", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.write:
        return write()
    if given.check:
        return check()
    if given.check_captures:
        return check_captures()
    if given.trace:
        return trace(given.trace)
    if given.pcap:
        return write_pcap(given.pcap[0], Path(given.pcap[1]))
    if given.expected is None:
        parser.error("--verify needs --expected FILE")
    return verify(given.verify, given.expected)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: no such file")
