# SPDX-License-Identifier: BSD-3-Clause
"""An operator's digest (docs/protocol.md §12.5), by judges.py and hashlib alone. Nothing of Weir's own is used."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator

import numpy as np

from judges import JUDGES
from rules import BITS, PACKET, Layout

SETS, INPUTS = 16, 4
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*|0x[A-Za-z0-9_.]*|[0-9](?:(?<=[eE])[-+]|[A-Za-z0-9_.])*|<<|>>|[<>=!]=|[-+*/&|^~<>(),=]")
PHASES = ("start", "fold", "finish")


def canonical(text: str) -> str:
    return "".join(f"{said}\n" for line in text.splitlines() for said in lines_of(line))


def lines_of(line: str) -> Iterator[str]:
    """What becomes of one line of a text."""
    words = WORD.findall(line.partition("#")[0])
    if not words:
        return
    if line[0] in " \t":
        yield " " + " ".join(words)
    elif words[0] in PHASES:
        yield words[0]
        if words[1:]:
            yield " " + " ".join(words[1:])
    elif words[0] == "name":
        yield "name " + "".join(words[1:])
    else:
        yield " ".join(words).replace("weir - operator", "weir-operator")


def split_mix() -> Iterator[int]:
    """SplitMix64 from the state 1 on."""
    state, whole = 1, (1 << 64) - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & whole
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        yield z ^ z >> 31


def moderate(kind: str, below: Callable[[int], int]) -> bytes:
    """A number near 1 as a field of a packet has it: of the formats that shipped texts have."""
    small = below(256) - 128
    if kind in ("f32", "f64"):
        return struct.pack("<f" if kind == "f32" else "<d", small / 32)
    if kind == "e8m0":
        return bytes([119 + below(16)])
    value = below(200) if kind[0] == "u" else small
    return (value % (1 << BITS[kind])).to_bytes(BITS[kind] // 8, "little")


def trial(layout: Layout) -> list[np.ndarray]:
    numbers = split_mix()

    def below(count: int) -> int:
        return (next(numbers) >> 32) * count >> 32

    data = b"".join(next(numbers).to_bytes(8, "little") for _ in range(SETS * INPUTS * PACKET // 8))
    packets = [np.frombuffer(data[at:at + PACKET], np.uint8).copy() for at in range(0, len(data), PACKET)]
    kinds = layout.fields[1:] if layout.is_block else layout.fields
    for number, packet in enumerate(packets):
        if number // INPUTS % 2:
            for row in layout.rows(packet, len(layout.areas) - 1):
                row[:] = np.frombuffer(b"".join(moderate(kind, below) for kind in kinds), np.uint8)
    return packets


def digest_of(name: str, text: str) -> bytes:
    """Of the text that JUDGES[name] judges."""
    said = canonical(text)
    packets = trial(Layout(re.sub(r"#.*", "", text)))
    results = b""
    with np.errstate(all="ignore"):
        for at in range(0, len(packets), INPUTS):
            results += JUDGES[name](packets[at:at + INPUTS]).tobytes() + JUDGES[name](packets[at:at + 1]).tobytes()
    return hashlib.sha256(f"weir-operator {len(said)} {said}".encode() + results).digest()
