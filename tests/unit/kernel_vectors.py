#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes kernel_vectors.inc: reductions of single elements, computed in exact rational arithmetic.

Source of the expected values: the formats' definitions (IEEE 754-2019 binary16/32/64, bfloat16 as the upper half of
binary32, OCP 8-bit Floating Point Specification 1.0 E4M3 and E5M2) and docs/protocol.md section 2, applied with
Python's fractions and integers, without floating-point hardware and without Weir's code.

Usage: kernel_vectors.py > kernel_vectors.inc
"""

import random
from fractions import Fraction

NAN, INF, FINITE = "nan", "inf", "finite"


class Value:
    """sign is +1 or -1; magnitude an exact Fraction when finite (so that -0 has a sign)."""

    def __init__(self, kind, sign=1, magnitude=Fraction(0)):
        self.kind, self.sign, self.magnitude = kind, sign, magnitude

    def less(self, other):
        if INF in (self.kind, other.kind):
            rank = lambda v: v.sign if v.kind == INF else 0
            return rank(self) < rank(other)
        return self.sign * self.magnitude < other.sign * other.magnitude


def floor_log2(magnitude):
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if magnitude >= Fraction(2) ** guess else guess - 1


class Format:
    def __init__(self, exponent_bits, mantissa_bits, has_infinity=True):
        self.exponent_bits, self.mantissa_bits = exponent_bits, mantissa_bits
        self.has_infinity = has_infinity
        self.bits = 1 + exponent_bits + mantissa_bits
        self.sign_bit = 1 << (self.bits - 1)
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        self.nan = self.infinity | (1 << (mantissa_bits - 1)) if has_infinity else self.sign_bit - 1

    def decode(self, code):
        sign = -1 if code & self.sign_bit else 1
        code &= self.sign_bit - 1
        if self.has_infinity and code == self.infinity:
            return Value(INF, sign)
        if (self.has_infinity and code > self.infinity) or (not self.has_infinity and code == self.nan):
            return Value(NAN)
        exponent, fraction = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        if exponent:
            fraction += 1 << self.mantissa_bits
        power = max(exponent, 1) - self.bias - self.mantissa_bits
        return Value(FINITE, sign, fraction * Fraction(2) ** power)

    def encode(self, value):
        """Rounds to nearest, ties to even. A NaN, also one from overflow, is the positive quiet one."""
        if value.kind == NAN or (value.kind == INF and not self.has_infinity):
            return self.nan
        sign = self.sign_bit if value.sign < 0 else 0
        if value.kind == INF:
            return sign | self.infinity
        lowest = 1 - self.bias
        exponent = max(lowest, floor_log2(value.magnitude)) if value.magnitude else lowest
        units = round(value.magnitude / Fraction(2) ** (exponent - self.mantissa_bits))  # half to even
        code = units + ((exponent - lowest) << self.mantissa_bits)
        if self.has_infinity:
            return sign | min(code, self.infinity)
        return self.nan if code >= self.nan else sign | code

    def round(self, value):
        return self.decode(self.encode(value))


def add(a, b):
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    if INF in (a.kind, b.kind):
        if a.kind == b.kind:
            return a if a.sign == b.sign else Value(NAN)
        return a if a.kind == INF else b
    total = a.sign * a.magnitude + b.sign * b.magnitude
    if total == 0:  # exact zero: +0 unless both are -0
        return Value(FINITE, -1 if a.sign < 0 and b.sign < 0 else 1)
    return Value(FINITE, 1 if total > 0 else -1, abs(total))


def multiply(a, b):
    sign = a.sign * b.sign
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    if INF in (a.kind, b.kind):
        zero = any(v.kind == FINITE and v.magnitude == 0 for v in (a, b))
        return Value(NAN) if zero else Value(INF, sign)
    return Value(FINITE, sign, a.magnitude * b.magnitude)


def minimum(a, b):
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    return b if b.less(a) else a


def maximum(a, b):
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    return b if a.less(b) else a


F32, F64 = Format(8, 23), Format(11, 52)
FLOATS = {  # name: (stored in, accumulated in)
    "f32": (F32, F32),
    "f64": (F64, F64),
    "f16": (Format(5, 10), F32),
    "bf16": (Format(8, 7), F32),
    "f8e4m3": (Format(4, 3, has_infinity=False), F32),
    "f8e5m2": (Format(5, 2), F32),
}
FLOAT_OPERATIONS = {"sum": add, "product": multiply, "min": minimum, "max": maximum}

INTEGERS = {f"{kind}{bits}": (kind == "i", bits) for kind in "iu" for bits in (8, 16, 32, 64)}
INTEGER_OPERATIONS = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "min": min,
    "max": max,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


def reduce_floats(name, operation, codes):
    stored, accumulated = FLOATS[name]
    result = stored.decode(codes[0])
    for code in codes[1:]:
        result = accumulated.round(FLOAT_OPERATIONS[operation](result, stored.decode(code)))
    return stored.encode(result)


def reduce_integers(name, operation, codes):
    signed, bits = INTEGERS[name]
    mask = (1 << bits) - 1
    number = lambda code: code - (1 << bits) if signed and code >> (bits - 1) else code
    result = number(codes[0])
    for code in codes[1:]:
        result = number(INTEGER_OPERATIONS[operation](result, number(code)) & mask)
    return result & mask


def special_codes(stored):
    one = stored.bias << stored.mantissa_bits
    positive = [0, 1, 2, 3, (1 << stored.mantissa_bits) - 1, 1 << stored.mantissa_bits, one, one + 1,
                stored.infinity - 1, stored.infinity, stored.infinity + 1, stored.nan, stored.sign_bit - 1,
                stored.sign_bit - 2]
    positive = sorted(set(code for code in positive if code < stored.sign_bit))
    return positive + [code | stored.sign_bit for code in positive]


def float_inputs(stored, rng):
    """Special values alone and in pairs, then random codes, some of them with similar exponents."""
    specials = special_codes(stored)
    yield from ([code] for code in specials)
    yield from ([a, b] for a in specials for b in rng.sample(specials, 3))
    for _ in range(25):
        first = rng.getrandbits(stored.bits)
        near = lambda: (first + rng.randint(-4, 4) * (1 << stored.mantissa_bits) // 2
                        + rng.randint(0, 7)) % (1 << stored.bits)
        yield [first, near(), near()]
        yield [rng.getrandbits(stored.bits) for _ in range(4)]


def integer_inputs(bits, rng):
    edges = [0, 1, 2, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1]
    yield from ([a, b] for a in edges for b in edges)
    for _ in range(12):
        yield [rng.getrandbits(bits) for _ in range(4)]


def row(name, operation, codes, expected):
    inputs = ", ".join(f"{code:#x}" for code in codes)
    return f"{{DataType::{name}, Operation::{operation}, {len(codes)}, {{{inputs}}}, {expected:#x}}},"


def main():
    rng = random.Random(0x57454952)
    print("// SPDX-License-Identifier: BSD-3-Clause")
    print("// Written by kernel_vectors.py: exact rational arithmetic. Do not edit.")
    print("// clang-format off")
    for name, (stored, _) in FLOATS.items():
        for operation in FLOAT_OPERATIONS:
            for codes in float_inputs(stored, rng):
                print(row(name, operation, codes, reduce_floats(name, operation, codes)))
    for name, (_, bits) in INTEGERS.items():
        for operation in INTEGER_OPERATIONS:
            for codes in integer_inputs(bits, rng):
                print(row(name, operation, codes, reduce_integers(name, operation, codes)))


if __name__ == "__main__":
    main()
