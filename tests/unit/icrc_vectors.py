#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes frames with valid ICRCs, computed without Weir's code, to icrc_vectors.txt in this folder.

One line each: source, description, whole Ethernet frame in hex. The source is
    scapy   scapy's contrib.roce (RoCEv2 over IPv4, the only case it supports); asserted to agree with the rule below
    rule    a bitwise CRC over docs/protocol.md §6 (IBTA annexes A16 and A17), for IPv6 and RoCE v1

    icrc_vectors.py            write icrc_vectors.txt
    icrc_vectors.py --check    check that the file is up to date
"""
from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from scapy.contrib.roce import BTH  # type: ignore[import-untyped]
from scapy.layers.l2 import Ether  # type: ignore[import-untyped]

OUT = Path(__file__).resolve().with_suffix(".txt")
ROCE_V2_PORT, ROCE_V1_ETHERTYPE, GRH_NEXT_HEADER = 4791, 0x8915, 0x1B

# Opcode, bytes of extended headers after the BTH, whether it carries payload (IBTA 9.2, table of opcodes).
KINDS = {
    "rc_send_first": (0x00, 0, True), "rc_send_middle": (0x01, 0, True), "rc_send_last": (0x02, 0, True),
    "rc_send_last_imm": (0x03, 4, True), "rc_send_only": (0x04, 0, True), "rc_send_only_imm": (0x05, 4, True),
    "rc_write_first": (0x06, 16, True), "rc_write_middle": (0x07, 0, True), "rc_write_last": (0x08, 0, True),
    "rc_write_last_imm": (0x09, 4, True), "rc_write_only": (0x0A, 16, True), "rc_write_only_imm": (0x0B, 20, True),
    "rc_read_request": (0x0C, 16, False), "rc_read_resp_first": (0x0D, 4, True), "rc_read_resp_middle": (0x0E, 0, True),
    "rc_read_resp_last": (0x0F, 4, True), "rc_read_resp_only": (0x10, 4, True), "rc_ack": (0x11, 4, False),
    "rc_atomic_ack": (0x12, 12, False), "rc_compare_swap": (0x13, 28, False), "ud_send_only": (0x64, 8, True),
    "ud_send_only_imm": (0x65, 12, True), "cnp": (0x81, 16, False),
}
FULL_PACKETS = ("first", "middle")  # an MTU of payload, no pad
MTUS = (256, 256, 256, 512, 1024)


def crc32_bitwise(data: bytes) -> int:
    """Polynomial 0x04C11DB7 reflected (0xEDB88320), initial value and final xor all ones."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def icrc_by_rule(l3: bytes, l3_length: int, version: int) -> bytes:
    """§6: l3 is from the IP header or GRH (l3_length bytes) to the last pad byte; version is that of RoCE."""
    masked = bytearray(l3)
    if l3[0] >> 4 == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF  # TOS, TTL, header checksum
    else:
        masked[0] |= 0x0F  # traffic class 8 bits, flow label 20 bits: all but the version nibble
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF  # hop limit
    bth_at = l3_length
    if version == 2:
        masked[l3_length + 6:l3_length + 8] = b"\xff\xff"  # UDP checksum
        bth_at += 8
    masked[bth_at + 4] = 0xFF  # FECN, BECN, reserved
    return struct.pack("<I", crc32_bitwise(b"\xff" * 8 + bytes(masked)))


def icrc_by_scapy(frame_without_icrc: bytes) -> bytes:
    packet = Ether(frame_without_icrc + bytes(4))
    packet[BTH].icrc = None
    rebuilt = bytes(packet)
    assert rebuilt[:-4] == frame_without_icrc, "scapy rebuilt another frame"
    return rebuilt[-4:]


def ipv4_checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def transport(rng: random.Random, kind: str) -> tuple[bytes, int, int]:
    """Returns the bytes from BTH to the last pad byte, the payload length, and the pad."""
    opcode, extended, has_payload = KINDS[kind]
    if not has_payload:
        length = 0
    elif kind.endswith(FULL_PACKETS):
        length = rng.choice(MTUS)
    else:
        length = rng.choice((0, 1, 2, 3, 4, 5, rng.randint(6, 80), rng.randint(81, 300)))
    pad = -length % 4
    flags = rng.getrandbits(2) << 6 | pad << 4  # solicited, migration; header version 0
    bth = struct.pack(">BBHII", opcode, flags, rng.getrandbits(16), rng.getrandbits(32), rng.getrandbits(32))
    return bth + rng.randbytes(extended + length + pad), length, pad


def network_v4(rng: random.Random, options: int, rest: int) -> bytes:
    """An IPv4 header. Options are no-ops and an end-of-list, which scapy rebuilds unchanged."""
    head = struct.pack(">BBHHHBBH", 0x45 + options // 4, rng.getrandbits(8), 20 + options + rest, rng.getrandbits(16),
                       rng.choice((0, 0x4000)), rng.getrandbits(8), 17, 0)
    head += rng.randbytes(8) + (b"\x01" * (options - 1) + b"\x00" if options else b"")
    return head[:10] + struct.pack(">H", ipv4_checksum(head)) + head[12:]


def network_v6(rng: random.Random, next_header: int, rest: int) -> bytes:
    """An IPv6 header or GRH: the same fields."""
    fixed = struct.pack(">IHBB", 6 << 28 | rng.getrandbits(28), rest, next_header, rng.getrandbits(8))
    return fixed + rng.randbytes(32)


def frame_of(rng: random.Random, network: str, vlans: int, kind: str) -> str:
    body, length, pad = transport(rng, kind)
    version = 1 if network == "v1" else 2
    udp = b""
    if version == 2:
        udp = struct.pack(">HHHH", rng.randint(0xC000, 0xFFFF), ROCE_V2_PORT, 8 + len(body) + 4,
                          rng.choice((0, rng.randint(1, 0xFFFF))))
    rest = len(udp) + len(body) + 4  # ICRC included
    if network.startswith("ipv4"):
        ethertype, header = 0x0800, network_v4(rng, int(network.partition("opt")[2] or 0), rest)
    elif network == "ipv6":
        ethertype, header = 0x86DD, network_v6(rng, 17, rest)
    else:
        ethertype, header = ROCE_V1_ETHERTYPE, network_v6(rng, GRH_NEXT_HEADER, rest)
    tags = [struct.pack(">HH", tpid, rng.getrandbits(16)) for tpid in ((), (0x8100,), (0x88A8, 0x8100))[vlans]]
    # Locally administered unicast addresses.
    ethernet = b"\x02" + rng.randbytes(5) + b"\x02" + rng.randbytes(5) + b"".join(tags) + struct.pack(">H", ethertype)
    l3 = header + udp + body
    source, icrc = "rule", icrc_by_rule(l3, len(header), version)
    if ethertype == 0x0800:
        source, other = "scapy", icrc_by_scapy(ethernet + l3)
        assert other == icrc, f"scapy {other.hex()}, rule {icrc.hex()}: {kind} over {network}"
    description = f"{network}/vlan{vlans}/{kind}/payload{length}/pad{pad}"
    return f"{source} {description} {(ethernet + l3 + icrc).hex()}"


def lines() -> Iterator[str]:
    rng = random.Random("weir icrc vectors")
    yield "# ICRC test vectors: source description hexframe. Written by icrc_vectors.py; it says what the sources are."
    for kind in KINDS:  # each kind of header over each network, tags and options taking turns
        yield frame_of(rng, "ipv4", 0, kind)
        yield frame_of(rng, "ipv4", rng.choice((1, 2)), kind)
        yield frame_of(rng, f"ipv4opt{rng.choice((4, 8, 12, 40))}", rng.choice((0, 0, 1)), kind)
        yield frame_of(rng, "ipv6", 0, kind)
        yield frame_of(rng, "ipv6", rng.choice((1, 2)), kind)
        yield frame_of(rng, "v1", 0, kind)
        yield frame_of(rng, "v1", 1, kind)
    odd = [k for k, (_, _, payload) in KINDS.items() if payload and not k.endswith(FULL_PACKETS)]
    for network in ("ipv4", "ipv4opt4", "ipv6", "v1"):  # more of those with a pad
        for _ in range(12):
            yield frame_of(rng, network, rng.choice((0, 0, 1)), rng.choice(odd))


def main() -> int:
    text = "\n".join(lines()) + "\n"
    if "--check" in sys.argv[1:]:
        same = OUT.exists() and OUT.read_text() == text
        print(f"{OUT.name}: {'as' if same else 'NOT as'} this script would write it")
        return 0 if same else 1
    OUT.write_text(text)
    print(f"{OUT.name}: {text.count(chr(10)) - 1} frames, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
