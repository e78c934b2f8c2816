# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a capture file, and the check that a switch forwarded them unchanged (docs/protocol.md, I2 and I7)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ETHERTYPE_IPV4 = b"\x08\x00"
ETHERTYPE_ARP = b"\x08\x06"


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


@dataclass(frozen=True)
class Captured:
    seconds: float  # of the wall clock
    frame: bytes


def read_frames(file: Path) -> list[bytes]:
    """All whole frames of a file that tcpdump wrote on this machine."""
    return [captured.frame for captured in read_capture(file)]


def read_capture(file: Path) -> list[Captured]:
    """The same, with their times."""
    data = file.read_bytes()
    magic, snapped = struct.unpack_from("=I", data)[0], 0
    if magic not in (0xA1B2C3D4, 0xA1B23C4D):
        raise ValueError(f"{file}: not a capture file of this machine's byte order (magic {magic:#x})")
    unit = 1e-6 if magic == 0xA1B2C3D4 else 1e-9
    frames: list[Captured] = []
    offset = 24
    while offset + 16 <= len(data):
        seconds, fraction, captured, length = struct.unpack_from("=IIII", data, offset)
        snapped += captured != length
        frames.append(Captured(seconds + fraction * unit, data[offset + 16:offset + 16 + captured]))
        offset += 16 + captured
    if snapped:
        raise ValueError(f"{file}: {snapped} frames were not captured whole")
    return frames


def is_ours(frame: bytes) -> bool:
    """IPv4 and ARP: the scenarios' frames. The kernel's IPv6 frames come at any time, also while captures start or end."""
    return frame[12:14] in (ETHERTYPE_IPV4, ETHERTYPE_ARP)


def is_flooded(frame: bytes) -> bool:
    return bool(frame[0] & 1)


def is_rocev2(frame: bytes) -> bool:
    return frame[12:14] == ETHERTYPE_IPV4 and frame[23:24] == b"\x11" and frame[36:38] == struct.pack(">H", 4791)


def is_answer(frame: bytes) -> bool:
    """READ response, ACK, atomic ACK (IBTA §9.2.1) or CNP (annex A17.9.3): between ring neighbours these are of the ring's
    class of traffic and may overtake requests (docs/protocol.md, I12), whose PSNs are another direction's."""
    return is_rocev2(frame) and len(frame) > 42 and (0x0D <= frame[42] <= 0x12 or frame[42] == 0x81)


def in_classes(frames: Sequence[bytes]) -> tuple[list[bytes], ...]:
    """The classes of frames that must keep their order: answers, other RoCE, and the rest, which does not wait for a worker's
    turn (docs/architecture.md, "Fair shares of a worker")."""
    answers = [frame for frame in frames if is_answer(frame)]
    requests = [frame for frame in frames if is_rocev2(frame) and not is_answer(frame)]
    return answers, requests, [frame for frame in frames if not is_rocev2(frame)]


def differences(came: Sequence[Sequence[bytes]], left: Sequence[Sequence[bytes]], macs: Sequence[str]) -> list[str]:
    """What a learning switch that knows all of `macs` did wrong, in words. `came[i]` and `left[i]`: port i's frames."""
    stations = [mac_bytes(mac) for mac in macs]
    wrong: list[str] = []
    for egress, frames in enumerate(left):
        for frame in frames:
            if is_ours(frame) and frame[6:12] == stations[egress]:
                wrong.append(f"a frame of {macs[egress]} came back out of its own port: {frame[:64].hex()}")
            elif is_ours(frame) and not is_flooded(frame) and frame[:6] != stations[egress]:
                wrong.append(f"a frame for another station left through port {egress}: {frame[:64].hex()}")
        for ingress, source in enumerate(stations):
            if ingress == egress:
                continue
            expected = [frame for frame in came[ingress]
                        if is_ours(frame) and (is_flooded(frame) or frame[:6] == stations[egress])]
            actual = [frame for frame in frames if is_ours(frame) and frame[6:12] == source]
            wrong += [f"port {ingress} to port {egress}: {_first_difference(came_so, left_so)}"
                      for came_so, left_so in zip(in_classes(expected), in_classes(actual)) if came_so != left_so]
    return wrong


def _first_difference(expected: Sequence[bytes], actual: Sequence[bytes]) -> str:
    counts = f"{len(expected)} frames came, {len(actual)} left"
    for number, (came, left) in enumerate(zip(expected, actual)):
        if came != left:
            return f"{counts}; frame {number} came as {came.hex()} and left as {left.hex()}"
    return counts
