# SPDX-License-Identifier: BSD-3-Clause
"""What the shipped operators must give, by numpy alone: the formats from their definitions (OCP MX 1.0, OCP FP8), and the
folds as loops over ranks. Nothing of Weir's own is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

F32, U32 = np.float32, np.uint32


def narrow(exponent_bits: int, mantissa_bits: int, bias: int, specials: str = "") -> np.ndarray:
    """Value by code. `specials`: "e4m3" has NaN as all ones, "ieee" infinity and NaN in the last binade."""
    values = []
    for code in range(1 << (1 + exponent_bits + mantissa_bits)):
        exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        fraction = code & ((1 << mantissa_bits) - 1)
        value = (fraction if exponent == 0 else fraction + (1 << mantissa_bits)) * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
        if specials == "e4m3" and exponent == 15 and fraction == 7:
            value = np.nan
        if specials == "ieee" and exponent == (1 << exponent_bits) - 1:
            value = np.nan if fraction else np.inf
        values.append(-value if code >> (exponent_bits + mantissa_bits) else value)
    return np.array(values)


def nearest(table: np.ndarray, values: np.ndarray, nan: int, infinite: int | None) -> np.ndarray:
    """The code of the nearest number, ties to the even code; past the largest, that one. Signs stay."""
    half = len(table) // 2
    positive = table[:half][np.isfinite(table[:half])]
    magnitude = np.minimum(np.abs(np.nan_to_num(values.astype(np.float64), nan=0, posinf=1e300, neginf=-1e300)), positive[-1])
    above = np.searchsorted(positive, magnitude)
    below = np.maximum(above - 1, 0)
    to_above, to_below = positive[above] - magnitude, magnitude - positive[below]
    code = np.where((to_above < to_below) | ((to_above == to_below) & (above % 2 == 0)), above, below)
    code = np.where(positive[above] == magnitude, above, code)
    if infinite is not None:
        code = np.where(np.isinf(values), infinite, code)
    code = code + np.where(np.signbit(values), half, 0)
    is_nan = np.isnan(values) | (np.isinf(values) & (infinite == nan))
    return np.where(is_nan, nan, code).astype(np.uint8)


@dataclass(frozen=True)
class Codes:
    table: np.ndarray
    bits: int
    largest_exponent: int  # of the largest number
    nan: int
    infinite: int | None  # None: the largest number stands for it

    def encode(self, values: np.ndarray) -> np.ndarray:
        return nearest(self.table, values, self.nan, self.infinite)


class Int8Codes(Codes):
    def encode(self, values: np.ndarray) -> np.ndarray:
        units = np.clip(np.rint(np.nan_to_num(values.astype(np.float64) * 64, nan=0, posinf=1e9, neginf=-1e9)), -127, 127)
        return units.astype(np.int8).view(np.uint8)


E4M3 = Codes(narrow(4, 3, 7, "e4m3"), 8, 8, 0x7f, 0x7f)
E5M2 = Codes(narrow(5, 2, 15, "ieee"), 8, 15, 0x7e, 0x7c)
E2M3 = Codes(narrow(2, 3, 1), 6, 2, 0, None)
E3M2 = Codes(narrow(3, 2, 3), 6, 4, 0, None)
E2M1 = Codes(narrow(2, 1, 1), 4, 2, 0, None)
INT8 = Int8Codes(np.arange(256, dtype=np.uint8).view(np.int8) / 64.0, 8, 0, 0, None)
E8M0 = np.array([2.0 ** (code - 127) for code in range(255)] + [np.nan])


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Codes from bytes; the first is in the lowest bits."""
    if bits == 8:
        return data
    stream = np.unpackbits(data, bitorder="little").reshape(-1, bits)
    return (stream * (1 << np.arange(bits))).sum(1).astype(np.uint8)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    if bits == 8:
        return codes.astype(np.uint8)
    stream = (codes.astype(np.uint8)[:, None] >> np.arange(bits)) & 1
    return np.packbits(stream.ravel().astype(np.uint8), bitorder="little")


@dataclass(frozen=True)
class Blocks:
    """Blocks of `size` codes, then their scales, then zeros."""
    codes: Codes
    size: int
    scale_table: np.ndarray

    def count(self, packet: int) -> int:
        return packet // (self.size * self.codes.bits // 8 + 1)

    def read(self, packet: np.ndarray) -> np.ndarray:
        count = self.count(len(packet))
        head = count * self.size * self.codes.bits // 8
        values = self.codes.table[unpacked(packet[:head], self.codes.bits)].astype(F32).reshape(count, self.size)
        return values * self.scale_table[packet[head:head + count]].astype(F32)[:, None]

    def write(self, packet_bytes: int, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        body = np.concatenate([packed(codes.ravel(), self.codes.bits), scales.astype(np.uint8)])
        return np.concatenate([body, np.zeros(packet_bytes - len(body), np.uint8)])


def left_sum(blocks: Blocks, inputs: list[np.ndarray]) -> np.ndarray:
    total = blocks.read(inputs[0])
    for packet in inputs[1:]:
        total = (total + blocks.read(packet)).astype(F32)
    return total


def mx_sum(codes: Codes, is_nan_in_codes: bool) -> Callable:
    """OCP MX 1.0, 6.3: the scale is the largest power of two in the block, less that of the largest number."""
    blocks = Blocks(codes, 32, E8M0)

    def judge(inputs: list[np.ndarray]) -> np.ndarray:
        total = left_sum(blocks, inputs)
        finite = np.where(np.isfinite(total), np.abs(total), 0).max(1)
        _, exponent = np.frexp(np.maximum(finite, 1e-300).astype(np.float64))
        power = np.where(finite == 0, -127, np.maximum(exponent - 1 - codes.largest_exponent, -127))
        scale = np.ldexp(1.0, power).astype(F32)
        scales = power + 127
        if not is_nan_in_codes:
            has_none = ~np.isfinite(total).all(1)
            scale, scales = np.where(has_none, F32(np.nan), scale), np.where(has_none, 255, scales)
        return blocks.write(len(inputs[0]), codes.encode((total / scale[:, None]).astype(F32)), scales)

    return judge


def nvfp4_sum(inputs: list[np.ndarray]) -> np.ndarray:
    blocks = Blocks(E2M1, 16, E4M3.table)
    total = left_sum(blocks, inputs)
    with_nan = np.where(np.isnan(total).any(1), np.nan, np.abs(total).max(1))
    wanted = np.maximum(with_nan.astype(F32) / F32(6), F32(2.0 ** -6))
    scales = E4M3.encode(np.where(np.isnan(with_nan), np.nan, wanted).astype(F32))
    scale = E4M3.table[scales].astype(F32)
    return blocks.write(len(inputs[0]), E2M1.encode((total / scale[:, None]).astype(F32)), scales)


def canonical(values: np.ndarray) -> np.ndarray:
    nan = np.array(0x7fc00000, U32).view(F32) if values.dtype == F32 else np.array(0x7ff8000000000000, np.uint64).view(np.float64)
    return np.where(np.isnan(values), nan, values)


def structs(packet: np.ndarray, *fields: type) -> list[np.ndarray]:
    layout = np.dtype([(f"f{i}", np.dtype(field)) for i, field in enumerate(fields)])
    count = len(packet) // layout.itemsize
    rows = packet[:count * layout.itemsize].view(layout)
    return [rows[f"f{i}"].copy() for i in range(len(fields))]


def to_packet(packet_bytes: int, *columns: np.ndarray) -> np.ndarray:
    rows = np.zeros(len(columns[0]), np.dtype([(f"f{i}", column.dtype) for i, column in enumerate(columns)]))
    for i, column in enumerate(columns):
        rows[f"f{i}"] = column
    return np.concatenate([rows.view(np.uint8), np.zeros(packet_bytes - rows.nbytes, np.uint8)])


def location(value: type, index: type, is_better: Callable) -> Callable:
    """One element after the other, in Python's own floats and integers."""
    def judge(inputs: list[np.ndarray]) -> np.ndarray:
        columns = [structs(packet, value, index) for packet in inputs]
        best, at = columns[0]
        for values, indices in columns[1:]:
            for k, (v, i) in enumerate(zip(values.tolist(), indices.tolist())):
                b = best[k].item()
                if v != v and b == b or is_better(v, b):
                    best[k], at[k] = values[k], i
                elif v == b or v != v and b != b:
                    at[k] = min(at[k].item(), i)
        return to_packet(len(inputs[0]), canonical(best), at)

    return judge


def clipped_i8(inputs: list[np.ndarray]) -> np.ndarray:
    total = sum(packet[:-8].view(np.int8).astype(np.int64) for packet in inputs)
    flags = np.bitwise_or.reduce([packet[-8:].view(np.uint64)[0] for packet in inputs])
    flags |= np.uint64(bool(((total > 127) | (total < -128)).any()))
    return np.concatenate([np.clip(total, -128, 127).astype(np.int8).view(np.uint8), np.array([flags]).view(np.uint8)])


def valid_sum(inputs: list[np.ndarray]) -> np.ndarray:
    total, count = None, None
    for packet in inputs:
        values, counts = structs(packet, F32, U32)
        if total is None:
            total, count = np.full(len(values), -0.0, F32), np.zeros(len(values), U32)
        total = np.where(counts == 0, total, (total + values).astype(F32))
        count = np.minimum(count.astype(np.uint64) + counts, 2**32 - 1).astype(U32)
    return to_packet(len(inputs[0]), canonical(total.astype(F32)), count)


def complex_product(inputs: list[np.ndarray]) -> np.ndarray:
    re, im = structs(inputs[0], F32, F32)
    for packet in inputs[1:]:
        a, b = structs(packet, F32, F32)
        re, im = ((re * a).astype(F32) - (im * b).astype(F32)).astype(F32), ((re * b).astype(F32) + (im * a).astype(F32)).astype(F32)
    return to_packet(len(inputs[0]), canonical(re), canonical(im))


def complex_product_f64(inputs: list[np.ndarray]) -> np.ndarray:
    re, im = structs(inputs[0], np.float64, np.float64)
    for packet in inputs[1:]:
        a, b = structs(packet, np.float64, np.float64)
        re, im = re * a - im * b, re * b + im * a
    return to_packet(len(inputs[0]), canonical(re), canonical(im))


def f32_sum(inputs: list[np.ndarray]) -> np.ndarray:
    total = inputs[0].view(F32)
    for packet in inputs[1:]:
        total = (total + packet.view(F32)).astype(F32)
    return canonical(total).view(np.uint8)


JUDGES: dict[str, Callable] = {
    "mxfp8-e4m3-sum": mx_sum(E4M3, True),
    "mxfp8-e5m2-sum": mx_sum(E5M2, True),
    "mxfp6-e2m3-sum": mx_sum(E2M3, False),
    "mxfp6-e3m2-sum": mx_sum(E3M2, False),
    "mxfp4-sum": mx_sum(E2M1, False),
    "mxint8-sum": mx_sum(INT8, False),
    "nvfp4-sum": nvfp4_sum,
    "maxloc": location(F32, U32, lambda a, b: a > b),
    "minloc": location(F32, U32, lambda a, b: a < b),
    "maxloc-f64-i64": location(np.float64, np.int64, lambda a, b: a > b),
    "minloc-f64-i64": location(np.float64, np.int64, lambda a, b: a < b),
    "clipped-i8-sum": clipped_i8,
    "valid-sum": valid_sum,
    "complex-product": complex_product,
    "complex-product-f64": complex_product_f64,
    "f32-sum": f32_sum,
}
