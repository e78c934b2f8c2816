# SPDX-License-Identifier: BSD-3-Clause
"""Captures and RoCE frames in plain Python: pcap files, headers, ICRC, the INA header. None of Weir's code is used.

expect.py --check and --check-captures compare `icrc` with scapy's.
"""
from __future__ import annotations

import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# ------------------------------------------------------------------------------------------- captures


class Stamped(NamedTuple):
    """A frame and its time."""

    ns: int
    frame: bytes


def read_pcap(path: Path) -> list[bytes]:
    """Frames of a classic pcap file, either byte order, micro- or nanoseconds."""
    return [stamped.frame for stamped in read_stamped(path)]


def read_stamped(path: Path) -> list[Stamped]:
    """Frames with times of a classic pcap file, either byte order, micro- or nanoseconds."""
    data = path.read_bytes()
    if len(data) < 24:
        sys.exit(f"{path}: {len(data)} bytes are no pcap file; its header alone is 24")
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
             b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if order is None:
        sys.exit(f"{path}: magic {data[:4].hex()} is not that of a classic pcap file")
    fraction_ns = 1 if 0x4D in (data[0], data[3]) else 1000
    frames, at = [], 24
    while at < len(data):
        if at + 16 > len(data):
            sys.exit(f"{path}: cut off in the header of frame {len(frames)}")
        seconds, fraction, captured, original = struct.unpack_from(order + "IIII", data, at)
        at += 16
        if captured != original or at + captured > len(data):
            sys.exit(f"{path}: frame {len(frames)} is cut: {captured} of {original} bytes")
        frames.append(Stamped(seconds * 10**9 + fraction * fraction_ns, data[at:at + captured]))
        at += captured
    return frames


def pcap_bytes(frames: list[bytes]) -> bytes:
    """A capture whose frames come a microsecond apart."""
    return stamped_pcap_bytes([Stamped(1000 * i, frame) for i, frame in enumerate(frames)])


def stamped_pcap_bytes(frames: list[Stamped]) -> bytes:
    """Classic little-endian pcap, link type Ethernet, nanoseconds."""
    records = (struct.pack("<IIII", ns // 10**9, ns % 10**9, len(f), len(f)) + f for ns, f in frames)
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + b"".join(records)


# ----------------------------------------------------------------------------------------------- wire

# RC opcodes that §3 aggregates: name, bytes of RETH and immediate after the BTH (IBTA 9.2 table of opcodes).
RC_DATA = {
    0x00: ("SEND_FIRST", 0), 0x01: ("SEND_MIDDLE", 0), 0x02: ("SEND_LAST", 0), 0x03: ("SEND_LAST_IMM", 4),
    0x04: ("SEND_ONLY", 0), 0x05: ("SEND_ONLY_IMM", 4),
    0x06: ("WRITE_FIRST", 16), 0x07: ("WRITE_MIDDLE", 0), 0x08: ("WRITE_LAST", 0), 0x09: ("WRITE_LAST_IMM", 4),
    0x0A: ("WRITE_ONLY", 16), 0x0B: ("WRITE_ONLY_IMM", 20),
}
# RC requests that cannot be aggregated.
RC_READ, RC_COMPARE_SWAP, RC_FETCH_ADD = 0x0C, 0x13, 0x14
SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE = 0x16, 0x17
RC_OTHER_REQUESTS = (RC_READ, RC_COMPARE_SWAP, RC_FETCH_ADD, SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE)
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
    ack_timeout: int
    root: int
    qp: int

    LAYOUT = struct.Struct(">IBBBBIHHIIIIBBHI")  # type: ignore[misc]


assert Ina.LAYOUT.size == INA_LEN
MAGIC = 0x57454952
VERSION, VERSION_WITH_TABLE = 2, 3  # 3: of a run with operators (§12)
VERSIONS = VERSION, VERSION_WITH_TABLE
RESULT, PARTIAL = 1, 2  # flags
ALL_REDUCE, HELLO, BROADCAST, BARRIER = range(4)


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
    payload_at: int  # only for RC_DATA
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
        """The INA header, if the payload starts with one."""
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


def without_trailer(frame: bytes) -> bytes:
    """A RoCE frame up to its ICRC's end: what lies behind it belongs to a link or a monitor. Other frames unchanged."""
    roce = parse_roce(frame)
    return frame[:roce.end + 4] if roce else frame


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


def internet_checksum(data: bytes) -> int:
    """RFC 1071 for an even number of bytes, whose own checksum field is 0."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def scapy_icrc(frame: bytes) -> bytes:
    """The same with scapy's contrib.roce, which rebuilds the packet from its fields."""
    from scapy.contrib.roce import BTH  # type: ignore[import-untyped]
    from scapy.layers.l2 import Ether  # type: ignore[import-untyped]

    packet = Ether(frame)
    packet[BTH].icrc = None
    rebuilt = bytes(packet)
    if rebuilt[:-4] != frame[:-4]:
        raise AssertionError(f"scapy rebuilds another frame: {rebuilt.hex()} from {frame.hex()}")
    return rebuilt[-4:]

def serial(a: int, b: int, bits: int) -> int:
    """a - b in serial arithmetic: the signed distance modulo 2^bits (PSN: 24, msg_id: 32)."""
    half = 1 << (bits - 1)
    return ((a - b + half) % (1 << bits)) - half


def flipped(frame: bytes, at: int) -> bytes:
    """One bit of noise; the ICRC stays that of the good frame."""
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1:]


def resigned(frame: bytes, at: int, new: bytes) -> bytes:
    """Other bytes with a valid ICRC."""
    roce = parse_roce(frame)
    assert roce
    frame = frame[:at] + new + frame[at + len(new):]
    return frame[:roce.end] + icrc(frame, roce.ip_at, roce.bth_at, roce.end)



# ------------------------------------------------------------------------------------------- for readers


def describe(frame: bytes) -> str:
    """One line for comparison by a person."""
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
    """The part of the expected frame that contains byte `at`."""
    roce = parse_roce(frame)
    parts = [(14, "Ethernet")]
    if roce:
        data_at = roce.payload_at + (INA_LEN if roce.opcode in RC_DATA and roce.ina() else 0)
        parts += [(roce.bth_at - 8, "IP"), (roce.bth_at, "UDP"), (roce.bth_at + 12, "BTH"),
                  (roce.payload_at, "RETH and immediate"), (data_at, "INA header"),
                  (roce.payload_end, f"data, element of 4 bytes {(at - data_at) // 4}"), (roce.end, "pad"),
                  (roce.end + 4, "ICRC")]
    return next((name for end, name in parts if at < end), "payload" if at < len(frame) else "past the end")
