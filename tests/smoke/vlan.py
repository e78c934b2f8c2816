# SPDX-License-Identifier: BSD-3-Clause
"""VLAN tags at the hosts: frames with tags as bytes, and an interface behind a tag that needs no 8021q module."""
from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import threading

from netns import Namespace

SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
AUXDATA = struct.Struct("=IIIHHHH")  # linux/if_packet.h, tpacket_auxdata
TP_STATUS_VLAN_VALID = 1 << 4
ETH_P_ALL = 3
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
LONGEST = 65535


class FrameSocket:
    """Frames of an interface with their tags as on the wire."""

    def __init__(self, namespace: Namespace, interface: str) -> None:
        with namespace.entered():
            self._link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._link.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._link.bind((interface, ETH_P_ALL))

    def fileno(self) -> int:
        return self._link.fileno()

    def send(self, frame: bytes) -> None:
        self._link.send(frame)

    def receive(self) -> bytes:
        """Receives a frame. The kernel passes a tag beside the frame; this puts it back."""
        frame, beside, _, _ = self._link.recvmsg(LONGEST, 64)
        for level, kind, data in beside:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tag, protocol = AUXDATA.unpack(data[:AUXDATA.size])
                if status & TP_STATUS_VLAN_VALID:
                    frame = frame[:12] + struct.pack(">HH", protocol, tag) + frame[12:]
        return frame

    def receive_all(self, count: int, seconds: float) -> list[bytes]:
        """Up to `count` frames; stops when none comes for `seconds`."""
        frames: list[bytes] = []
        while len(frames) < count and select.select([self], [], [], seconds)[0]:
            frames.append(self.receive())
        return frames

    def close(self) -> None:
        self._link.close()


class VlanInterface:
    """An interface `tagged` whose frames pass `parent` with a tag, like those of a VLAN sub-interface.

    It uses a tap and a thread, because many small kernels have no 8021q."""

    def __init__(self, namespace: Namespace, parent: str, number: int) -> None:
        self._parent = FrameSocket(namespace, parent)
        self._tag = struct.pack(">HH", 0x8100, number)
        with namespace.entered():
            self._tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            fcntl.ioctl(self._tap, TUNSETIFF, struct.pack("16sH22x", b"tagged", IFF_TAP | IFF_NO_PI))
        self._stop, self._stopping = os.pipe()
        self._thread = threading.Thread(target=self._relay_until_end, daemon=True)
        self._thread.start()

    def _relay_until_end(self) -> None:
        with contextlib.suppress(OSError):  # the parent ends with the switch that made it
            self._relay()

    def _relay(self) -> None:
        while True:
            ready = select.select([self._tap, self._parent, self._stop], [], [])[0]
            if self._stop in ready:
                return
            if self._tap in ready:
                frame = os.read(self._tap, LONGEST)
                self._parent.send(frame[:12] + self._tag + frame[12:])
            if self._parent in ready:
                frame = self._parent.receive()
                if frame[12:16] == self._tag:
                    os.write(self._tap, frame[:12] + frame[16:])

    def close(self) -> None:
        os.write(self._stopping, b"x")
        self._thread.join()
        self._parent.close()
        for descriptor in (self._tap, self._stop, self._stopping):
            os.close(descriptor)
