# SPDX-License-Identifier: BSD-3-Clause
"""Wrong texts, and what is said of them: the likeliest mistakes, and texts that break a rule of docs/operators.md."""

from __future__ import annotations

GOOD = """weir-operator 1
name sum
read f32 v
lanes f32
identity v 0x80000000
start acc = v
fold acc = acc + v
finish out = acc
"""

BLOCKS = """weir-operator 1
name sum
read block 32 of f8e4m3, scale e8m0
lanes f32
identity none
start acc = x * s
fold acc = acc + x * s
finish scale = pow2(max(floor_log2(block_max(finite_abs(acc))) - 8, -127))
  out = round(acc)
"""


def edited(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


# What it is, the text, and a pattern of what is said.
MISTAKES: tuple[tuple[str, str, str], ...] = (
    ("a name that nobody has given", edited(GOOD, "acc + v", "acc + w"), r'text.weir:7: found "w"; allowed: v, acc'),
    ("a part is missing", edited(GOOD, "fold acc = acc + v\n", ""), r'text.weir:7: found "finish"; allowed: fold'),
    ("the first line is missing", edited(GOOD, "weir-operator 1\n", ""), r'text.weir:1: found "name"; allowed: weir-operator'),
    ("a type that does not exist", edited(GOOD, "read f32", "read float"), r'text.weir:3: found "float"; allowed: f32, f64'),
    ("integers and floats mixed", edited(edited(GOOD, "f32 v", "f32 v, u32 n"), "acc + v", "acc + n").replace("v 0x80000000", "none"),
     r"text.weir:7: found f32 \+ u32; allowed: two of one type"),
    ("a narrow result without rounding", edited(BLOCKS, "round(acc)", "acc"), r"text.weir:9: found f32 for f8e4m3; allowed: round"),
    ("a narrow integer without clipping", GOOD.replace("f32", "i8").replace("lanes i8", "lanes i16").replace("0x80000000", "0"),
     r"text.weir:8: found i16 for i8; allowed: clip\(…\) or wrap\(…\)"),
    ("a division in the fold", edited(GOOD, "acc + v", "acc / v"), r"text.weir:7: found / in fold; allowed: / in finish alone"),
    ("an output left out", edited(GOOD, "out = acc", "x = acc"), r"found no value for out\.v; allowed: one for each of out"),
    ("a condition as a number", edited(GOOD, "acc + v", "acc > v"), r"text.weir:7: found a condition for acc; allowed: select"),
    ("a bracket left open", edited(GOOD, "acc + v", "max(acc, v"), r"text.weir:7: found the end of the line; allowed: an operator or \)"),
    ("a function that does not exist", edited(GOOD, "acc + v", "tanh(acc)"), r"text.weir:7: found tanh\(…\); allowed: abs"),
    ("a loop", edited(GOOD, "acc + v", "acc + v while 1"), r'text.weir:7: found "while"; allowed: an operator, or the end'),
    ("a character from elsewhere", edited(GOOD, "acc + v", "acc \u00d7 v"), r"text.weir:7: found byte 0xc3; allowed: names"),
    ("an identity with too many bits", edited(GOOD, "0x80000000", "0x180000000"), r"text.weir:5: found \"0x180000000\"; allowed: the bits"),
    ("a block of another size", edited(BLOCKS, "block 32", "block 33"), r'text.weir:3: found "33"; allowed: 8, 16, 32, 64, 128'),
    ("a text that is too long", GOOD + "#" * 4096, r"text.weir:1: found a text of \d+ bytes; allowed: 4096"),
    ("too many steps", edited(GOOD, "acc + v\n", "acc + v\n" + "  acc = acc + v\n" * 64), r"text.weir:\d+: found more than 64 steps in fold"),
    ("too many names", edited(GOOD, "acc = v\n", "acc = v\n" + "".join(f"  a{i} = v\n" for i in range(9))), r"found a name more, a7; allowed: 8"),
    ("an empty text", "", r"text.weir:1: found the end of the text; allowed: weir-operator"),
)

# Texts that are programs, and break a rule: the trial finds it.
RULES: tuple[tuple[str, str, str], ...] = (
    ("finish of a finished value", edited(GOOD, "out = acc", "out = acc * 0.5"), r"the trial: finish of a finished value"),
    ("the identity", edited(GOOD, "v 0x80000000", "v 0x3f800000"), r"the trial: the identity joined to a value"),
    ("an identity of all values but -0", edited(GOOD, "v 0x80000000", "v 0"), r"the trial: the identity joined to a value"),
    ("the identity from the right", edited(edited(GOOD, "acc + v", "v"), "v 0x80000000", "v 0"), r"the trial: the identity joined"),
)
