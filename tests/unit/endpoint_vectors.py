#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes endpoint_vectors.txt: the frames that a queue pair must send, built by scapy.

Each line is `<scenario> <hexadecimal bytes>`, in the order of sending. endpoint_test.cpp has one row for each
scenario. IPv4 frames, ICRC included, are scapy's own work (scapy.contrib.roce); it has no ICRC for IPv6, so there this
script applies the masks of IBTA annex A17.3.3 to scapy's bytes and takes zlib's CRC.

    endpoint_vectors.py > endpoint_vectors.txt
"""

import struct
import zlib

from scapy.contrib.roce import AETH, BTH, opcode
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

LOCAL = {"mac": "02:00:00:00:00:0a", 4: "192.0.2.10", 6: "2001:db8::a", "qp": 0x112233}
REMOTE = {"mac": "02:00:00:00:00:0b", 4: "192.0.2.11", 6: "2001:db8::b", "qp": 0x445566}
SOURCE_PORT = 0xC123
ADDRESS = 0x7F0102030405060
RKEY = 0xCAFE1234
IMMEDIATE = 0x0BADF00D


def pattern(count):
    return bytes((7 * i + 13) & 0xFF for i in range(count))


def icrc_over_ipv6(frame):
    """`frame` ends with four bytes to be replaced."""
    masked = bytearray(b"\xff" * 8 + frame[14:-4])
    ip = 8
    masked[ip] |= 0x0F  # traffic class and flow label
    masked[ip + 1 : ip + 4] = b"\xff\xff\xff"
    masked[ip + 7] = 0xFF  # hop limit
    masked[ip + 46 : ip + 48] = b"\xff\xff"  # UDP checksum
    masked[ip + 48 + 4] = 0xFF  # FECN, BECN
    return struct.pack("<I", zlib.crc32(bytes(masked)))


def frame(version, name, psn, rest, ack_request=0, pad=0, traffic_class=0):
    code = opcode("RC", name)[0]
    ethernet = Ether(dst=REMOTE["mac"], src=LOCAL["mac"])
    udp = UDP(sport=SOURCE_PORT, dport=4791, chksum=0)
    fields = dict(opcode=code, padcount=pad, pkey=0xFFFF, dqpn=REMOTE["qp"], ackreq=ack_request, psn=psn & 0xFFFFFF)
    if version == 4:
        ip = IP(src=LOCAL[4], dst=REMOTE[4], id=0, flags="DF", ttl=64, tos=traffic_class)
        return raw(ethernet / ip / udp / BTH(**fields) / rest)
    ip = IPv6(src=LOCAL[6], dst=REMOTE[6], hlim=64, tc=traffic_class)
    unsigned = raw(ethernet / ip / udp / BTH(icrc=0, **fields) / rest)
    return unsigned[:-4] + icrc_over_ipv6(unsigned)


def reth(length):
    return struct.pack(">QII", ADDRESS, RKEY, length)


def message(version, kind, immediate, length, mtu, psn, **more):
    """The packets of one message; AckReq on the last, which is what a window of 64 asks for."""
    data = pattern(length)
    chunks = [data[i : i + mtu] for i in range(0, length, mtu)] or [b""]
    for i, chunk in enumerate(chunks):
        first, last = i == 0, i + 1 == len(chunks)
        place = "ONLY" if first and last else "FIRST" if first else "LAST" if last else "MIDDLE"
        name = f"{kind}_{place}" + ("_WITH_IMMEDIATE" if last and immediate else "")
        rest = reth(length) if first and kind == "RDMA_WRITE" else b""
        rest += struct.pack(">I", IMMEDIATE) if last and immediate else b""
        pad = -len(chunk) % 4
        body = rest + chunk + bytes(pad)
        yield frame(version, name, psn + i, Raw(body) if body else Raw(), int(last), pad, **more)


def read(version, length, had=0, psn=0x000100):
    """The request for the bytes from `had` on, in a packet each 256."""
    rest = struct.pack(">QII", ADDRESS + had, RKEY, length - had)
    yield frame(version, "RDMA_READ_REQUEST", psn + had // 256, Raw(rest), 1)


def responses(version, length, had=0, mtu=256, psn=0x000200):
    """To the first READ. The first, the last and the only one have an AETH (IBTA table 38)."""
    data = pattern(length)
    starts = range(had, length, mtu) or [0]
    for start in starts:
        chunk, first, last = data[start : start + mtu], start == starts[0], start == starts[-1]
        place = "ONLY" if first and last else "FIRST" if first else "LAST" if last else "MIDDLE"
        aeth = raw(AETH(syndrome=0x1F, msn=1)) if place != "MIDDLE" else b""
        pad = -len(chunk) % 4
        yield frame(version, f"RDMA_READ_RESPONSE_{place}", psn + start // mtu, Raw(aeth + chunk + bytes(pad)), 0, pad)


def acknowledge(version, psn, syndrome, msn):
    yield frame(version, "ACKNOWLEDGE", psn, AETH(syndrome=syndrome, msn=msn))


WRITE, SEND = "RDMA_WRITE", "SEND"
SCENARIOS = {}
for v in (4, 6):
    SCENARIOS.update(
        {
            f"write_ipv{v}": message(v, WRITE, False, 1000, 256, 0x000100),
            f"write_immediate_ipv{v}": message(v, WRITE, True, 770, 256, 0x000100),
            f"send_ipv{v}": message(v, SEND, False, 600, 256, 0x000100),
            f"send_immediate_ipv{v}": message(v, SEND, True, 513, 256, 0x000100),
            f"write_only_ipv{v}": message(v, WRITE, False, 40, 1024, 0x000100),
            f"write_only_immediate_ipv{v}": message(v, WRITE, True, 5, 1024, 0x000100),
            f"write_empty_ipv{v}": message(v, WRITE, False, 0, 1024, 0x000100),
            f"send_only_ipv{v}": message(v, SEND, False, 1024, 1024, 0x000100),
            f"send_only_immediate_ipv{v}": message(v, SEND, True, 3, 1024, 0x000100),
            f"send_empty_ipv{v}": message(v, SEND, False, 0, 1024, 0x000100),
            f"psn_wrap_ipv{v}": message(v, WRITE, False, 1024, 256, 0xFFFFFE),
            f"mtu_4096_ipv{v}": message(v, WRITE, False, 8193, 4096, 0x000100),
            f"traffic_class_ipv{v}": message(v, SEND, False, 9, 1024, 0x000100, traffic_class=0x6A),
            f"read_ipv{v}": read(v, 1000),
            f"read_rest_ipv{v}": read(v, 1000, had=512),
            f"read_empty_ipv{v}": read(v, 0),
            f"read_wrap_ipv{v}": read(v, 1000, had=512, psn=0xFFFFFE),
            f"responses_ipv{v}": responses(v, 1001),
            f"responses_rest_ipv{v}": responses(v, 1001, had=512),
            f"responses_end_ipv{v}": responses(v, 1001, had=768),
            f"responses_only_ipv{v}": responses(v, 40),
            f"responses_empty_ipv{v}": responses(v, 0),
            f"responses_wrap_ipv{v}": responses(v, 770, psn=0xFFFFFE),
            f"nak_read_access_ipv{v}": acknowledge(v, 0x000202, 0x62, 1),
            f"ack_ipv{v}": acknowledge(v, 0x000200, 0x1F, 1),
            f"ack_wrap_ipv{v}": acknowledge(v, 0xFFFFFF, 0x1F, 1),
            f"nak_sequence_ipv{v}": acknowledge(v, 0x000200, 0x60, 0),
            f"nak_invalid_request_ipv{v}": acknowledge(v, 0x000200, 0x61, 0),
            f"nak_remote_access_ipv{v}": acknowledge(v, 0x000200, 0x62, 0),
            f"rnr_nak_ipv{v}": acknowledge(v, 0x000200, 0x20 | 14, 0),
        }
    )

for scenario, frames in SCENARIOS.items():
    for bytes_of_frame in frames:
        print(scenario, bytes_of_frame.hex())
