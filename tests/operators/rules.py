# SPDX-License-Identifier: BSD-3-Clause
"""What must hold of every operator (docs/operators.md), as properties on random bytes: no judge knows what an operator means."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

PACKET = 1024
BITS = {"f32": 32, "f64": 64, "i8": 8, "i16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "f8e4m3": 8, "f8e5m2": 8, "mxint8": 8, "f6e2m3": 6,
        "f6e3m2": 6, "f4e2m1": 4, "e8m0": 8}
FLOATS = {"f32": (np.uint32, 0x7f800000, 0x7fc00000), "f64": (np.uint64, 0x7ff0000000000000, 0x7ff8000000000000)}
NARROW = {"f8e4m3": lambda code: ((code & 0x7f) == 0x7f) & (code != 0x7f), "f8e5m2": lambda code: ((code & 0x7f) > 0x7c) & (code != 0x7e)}

Fold = Callable[[list[np.ndarray]], np.ndarray]


class Layout:
    """Of a packet, as the text's line `read` says: rows of `parts` bytes, one row behind the other where they are blocks."""

    def __init__(self, text: str) -> None:
        line = re.search(r"^read (.*)", text, re.MULTILINE)[1]
        block = re.match(r"block (\d+) of (\w+), scale (\w+)", line)
        self.fields = [block[2], block[3]] if block else [field.split()[0] for field in line.split(",")]
        self.is_block = block is not None
        sizes = [int(block[1]) * BITS[block[2]] // 8, BITS[block[3]] // 8] if block else [sum(BITS[field] // 8 for field in self.fields)]
        self.flags = 8 if "flag" in text else 0
        self.units = (PACKET - self.flags) // sum(sizes)
        ends = np.cumsum([self.units * size for size in sizes])
        self.areas = [(end - self.units * size, size) for end, size in zip(ends, sizes, strict=True)]
        values = re.search(r"^identity (.*)", text, re.MULTILINE)[1].split()
        self.identity = [int(value, 0) for value in values[1::2]]

    def rows(self, packet: np.ndarray, area: int) -> np.ndarray:
        begin, size = self.areas[area]
        return packet[begin:begin + self.units * size].reshape(self.units, size)

    def reordered(self, packet: np.ndarray, order: np.ndarray) -> np.ndarray:
        packet = packet.copy()
        for area in range(len(self.areas)):
            self.rows(packet, area)[:] = self.rows(packet, area)[order]
        return packet

    def identities(self) -> np.ndarray:
        packet = np.zeros(PACKET, np.uint8)
        if self.is_block:
            bits = np.tile(np.unpackbits(np.array([self.identity[0]], np.uint8), bitorder="little")[:BITS[self.fields[0]]],
                           self.areas[0][1] * 8 // BITS[self.fields[0]])
            self.rows(packet, 0)[:] = np.packbits(bits, bitorder="little")
            self.rows(packet, 1)[:] = self.identity[1]
        else:
            unit = b"".join(value.to_bytes(BITS[field] // 8, "little") for field, value in zip(self.fields, self.identity, strict=True))
            self.rows(packet, 0)[:] = np.frombuffer(unit, np.uint8)
        return packet


def other_nans(layout: Layout, result: np.ndarray) -> int:
    """NaNs in a result that are not the canonical one."""
    if layout.is_block:
        is_other = NARROW.get(layout.fields[0])
        return int(is_other(layout.rows(result, 0)).sum()) if is_other else 0
    found, offset = 0, 0
    for field in layout.fields:
        if field in FLOATS:
            kind, infinity, nan = FLOATS[field]
            bits = layout.rows(result, 0)[:, offset:offset + BITS[field] // 8].copy().view(kind)
            magnitude = bits & kind(2**(BITS[field] - 1) - 1)
            found += int(((magnitude > kind(infinity)) & (bits != kind(nan))).sum())
        offset += BITS[field] // 8
    return found


def broken(text_file: Path, fold: Fold) -> list[str]:
    """Which rules the operator breaks."""
    layout = Layout(re.sub(r"#.*", "", text_file.read_text()))
    dice = np.random.default_rng(4)
    wrong = []
    for _ in range(3):
        inputs = [dice.integers(0, 256, PACKET).astype(np.uint8) for _ in range(3)]
        for packet in inputs:
            packet[layout.units * sum(size for _, size in layout.areas):] = 0
        result, alone = fold(inputs), fold(inputs[:1])
        order = dice.permutation(layout.units)
        if (layout.reordered(result, order) != fold([layout.reordered(packet, order) for packet in inputs])).any():
            wrong.append("a position's result depends on its place, or on others")
        if (fold([result]) != result).any():
            wrong.append("finish of a finished value is another one")
        if other_nans(layout, result) or other_nans(layout, alone):
            wrong.append("a NaN is not the canonical one")
        if layout.identity:
            rest = layout.identities()
            if (fold([rest, inputs[0]]) != alone).any() or (fold([inputs[0], rest]) != alone).any():
                wrong.append("the identity changes a value")
    return wrong
