# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of packets' data (docs/protocol.md §2), element by element in plain Python."""
from __future__ import annotations

import math
import operator
import struct
from functools import reduce
from typing import Any, Callable, NamedTuple

F32, I32, F16, BF16, F64, I8, U8, I16, U16, U32, I64, U64, E4M3, E5M2 = range(14)  # numbers of §2
SUM, MIN, MAX, PRODUCT, AND, OR, XOR = range(7)
TYPES, OPERATIONS = 14, 7
BITWISE, FLOATS = (AND, OR, XOR), (F32, F16, BF16, F64, E4M3, E5M2)
INTEGERS = {I8: "b", U8: "B", I16: "h", U16: "H", I32: "i", U32: "I", I64: "q", U64: "Q"}
AS_OPERATOR = 255  # §12
ELEMENT_BYTES = {F32: 4, F64: 8, F16: 2, BF16: 2, E4M3: 1, E5M2: 1, AS_OPERATOR: 8} | {
    dtype: struct.calcsize(letter) for dtype, letter in INTEGERS.items()}


def is_reducible(op: int, dtype: int) -> bool:
    return op < OPERATIONS and dtype < TYPES and not (op in BITWISE and dtype in FLOATS)


def fold(op: int, dtype: int, parts: list[bytes]) -> bytes:
    """The left fold in the order given. Narrow floats are folded in f32 and rounded once, at the end."""
    columns = zip(*(decoded(dtype, part) for part in parts), strict=True)
    if dtype in INTEGERS:
        return encoded_integers(dtype, [reduce(INTEGER_OPERATIONS[op], column) for column in columns])
    exact = FLOAT_OPERATIONS[op]
    step = exact if dtype == F64 else lambda a, b: to_f32(exact(a, b))
    return encoded_floats(dtype, [reduce(step, column) for column in columns])


# -- floats


def to_f32(value: float) -> float:
    """Rounds a double. A sum or product of two f32 is rounded twice so, which does no harm: a double has 53 bits of
    precision, at least 2*24+2, so the result is that of one correctly rounded f32 operation (Figueroa 1995)."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def least(a: float, b: float) -> float:
    """NaN if any is; of equal values the first."""
    return math.nan if math.isnan(a) or math.isnan(b) else b if b < a else a


def greatest(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else b if b > a else a


FLOAT_OPERATIONS: dict[int, Callable[[float, float], float]] = {SUM: add, PRODUCT: multiply, MIN: least, MAX: greatest}


class Narrow(NamedTuple):
    """A format of at most 16 bits."""

    fraction_bits: int
    lowest_exponent: int  # of a normal number
    largest: float
    past_largest: float  # what a value becomes that rounds past it

    def rounded(self, value: float) -> float:
        """To nearest, ties to even. Exact until then: a power of two divides a double without an error."""
        if value == 0 or not math.isfinite(value):
            return value if self.past_largest == math.inf else value if value == 0 else math.nan
        exponent = max(math.frexp(value)[1] - 1, self.lowest_exponent)
        unit = math.ldexp(1.0, exponent - self.fraction_bits)
        result = math.copysign(round(abs(value) / unit) * unit, value)
        return math.copysign(self.past_largest, value) if abs(result) > self.largest else result


NARROW = {F16: Narrow(10, -14, 65504.0, math.inf), BF16: Narrow(7, -126, math.ldexp(255.0, 120), math.inf),
          E5M2: Narrow(2, -14, 57344.0, math.inf), E4M3: Narrow(3, -6, 448.0, math.nan)}
CANONICAL_NAN = {F32: 0x7FC00000, F64: 0x7FF8000000000000, F16: 0x7E00, BF16: 0x7FC0, E5M2: 0x7E, E4M3: 0x7F}


def e4m3_value(code: int) -> float:
    exponent, fraction = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.nan
    size = math.ldexp(fraction + 8, exponent - 10) if exponent else math.ldexp(fraction, -9)
    return -size if code & 0x80 else size


E4M3_VALUES = [e4m3_value(code) for code in range(256)]
E4M3_CODES = {(value, math.copysign(1, value)): code for code, value in enumerate(E4M3_VALUES)}


def decoded(dtype: int, data: bytes) -> list[Any]:
    count = len(data) // ELEMENT_BYTES[dtype]
    if dtype == E4M3:
        return [E4M3_VALUES[code] for code in data]
    if dtype == E5M2:  # the upper half of an f16
        return list(struct.unpack(f"<{count}e", b"".join(bytes((0, code)) for code in data)))
    if dtype == BF16:  # the upper half of an f32
        halves = (data[at:at + 2] for at in range(0, 2 * count, 2))
        return list(struct.unpack(f"<{count}f", b"".join(b"\0\0" + half for half in halves)))
    return list(struct.unpack(f"<{count}{letter_of(dtype)}", data))


def letter_of(dtype: int) -> str:
    return INTEGERS.get(dtype) or {F32: "f", F64: "d", F16: "e"}[dtype]


def encoded_floats(dtype: int, values: list[float]) -> bytes:
    return b"".join(encoded_float(dtype, value) for value in values)


def encoded_float(dtype: int, value: float) -> bytes:
    if dtype in NARROW:
        value = NARROW[dtype].rounded(value)
    if math.isnan(value):
        return CANONICAL_NAN[dtype].to_bytes(ELEMENT_BYTES[dtype], "little")
    if dtype == E4M3:
        return bytes([E4M3_CODES[value, math.copysign(1, value)]])
    if dtype in (E5M2, BF16):
        return struct.pack("<e" if dtype == E5M2 else "<f", value)[-ELEMENT_BYTES[dtype]:]
    return struct.pack("<" + letter_of(dtype), value)


# -- integers

INTEGER_OPERATIONS: dict[int, Callable[[int, int], int]] = {
    SUM: operator.add, PRODUCT: operator.mul, MIN: min, MAX: max, AND: operator.and_, OR: operator.or_, XOR: operator.xor}


def encoded_integers(dtype: int, values: list[int]) -> bytes:
    """Integers wrap."""
    size = ELEMENT_BYTES[dtype]
    return b"".join((value % (1 << 8 * size)).to_bytes(size, "little") for value in values)
