# SPDX-License-Identifier: BSD-3-Clause
"""Ordinary traffic between hosts: pings, and a file over TCP."""
from __future__ import annotations

import hashlib
import os
import random
import socket
import struct
import threading
import time

from hosts import model
from netns import Namespace
from weir import Failed, expect

FILE_BYTES = 20_000_000
TIMEOUT_S = 20.0
ECHO_REQUEST, ECHO_REPLY = 8, 0


def ping(namespace: Namespace, address: str, data_bytes: int = 56, seconds: float = TIMEOUT_S) -> None:
    """Pings until one is answered with the same bytes. The first may be lost while an interface comes up."""
    data = random.Random(address).randbytes(data_bytes)
    body = struct.pack(">HH", os.getpid() & 0xFFFF, 1) + data
    checksum = model.internet_checksum(struct.pack(">BBH", ECHO_REQUEST, 0, 0) + body)
    request = struct.pack(">BBH", ECHO_REQUEST, 0, checksum) + body
    with namespace.entered():
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with raw:
        raw.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: no fragments
        raw.settimeout(0.2)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                raw.sendto(request, (address, 0))
                while True:
                    packet = raw.recv(65535)
                    message = packet[(packet[0] & 15) * 4:]
                    if message[0] == ECHO_REPLY and message[4:] == body:
                        return
            except (TimeoutError, OSError):
                time.sleep(0.05)
    raise Failed(f"no answer to a ping of {data_bytes} bytes to {address} in {seconds:.0f} s")


def move_file(sender: Namespace, receiver: Namespace, address: str, size: int = FILE_BYTES) -> None:
    """`size` random bytes by TCP from one to the other, which listens on `address`."""
    data = os.urandom(size)
    with receiver.entered():
        listener = socket.create_server((address, 0))
    with sender.entered():
        outgoing = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listener, outgoing:
        listener.settimeout(TIMEOUT_S)
        outgoing.settimeout(TIMEOUT_S)
        outgoing.connect(listener.getsockname())
        incoming, _ = listener.accept()
        with incoming:
            incoming.settimeout(TIMEOUT_S)
            thread = threading.Thread(target=_send, args=(outgoing, data), daemon=True)
            thread.start()
            received = _receive(incoming)
            thread.join()
    expect(len(received) == size, f"{len(received)} of {size} bytes of the file came")
    expect(hashlib.sha256(received).digest() == hashlib.sha256(data).digest(), "the file came with other bytes")


def _send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        connection.close()  # the receiver reports what came


def _receive(connection: socket.socket) -> bytes:
    received = bytearray()
    try:
        while chunk := connection.recv(1 << 20):
            received += chunk
    except TimeoutError:
        pass  # the caller reports how much is missing
    return bytes(received)
