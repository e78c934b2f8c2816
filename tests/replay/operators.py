# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the users' own (docs/protocol.md §12; § means that page): tables of hellos, and folds and digests by the
judges of tests/operators, which are numpy's."""
from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple, Sequence

import numpy as np

from fold import AS_OPERATOR
from roce import VERSION_WITH_TABLE

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests" / "operators"))  # behind this folder, which has a run.py too
from digests import digest_of  # noqa: E402
from judges import JUDGES  # noqa: E402

TEXTS = ROOT / "config" / "operators"
INSTALLED = "/etc/weir/operators"  # in configurations that are kept, which may name no checkout
FIRST_NUMBER = 128
ENTRY_BYTES, MOST_ENTRIES = 40, 4
EMPTY = bytes(ENTRY_BYTES)


class Loaded(NamedTuple):
    """An operator of a switch's configuration."""

    name: str
    tenants: tuple[str, ...] = ()  # none: it is for all


@cache
def digest(name: str) -> bytes:
    return digest_of(name, (TEXTS / f"{name}.weir").read_text())


def fold_by(name: str, parts: Sequence[bytes]) -> bytes:
    """Of one packet of each."""
    if not parts[0]:
        return b""
    with np.errstate(all="ignore"):
        return JUDGES[name]([np.frombuffer(part, np.uint8) for part in parts]).tobytes()


def fields_by(number: int) -> dict[str, int]:
    """What a header says of a message by an operator."""
    return {"op": number, "dtype": AS_OPERATOR}


# -- configurations


def operators_yaml(loaded: Sequence[Loaded]) -> str:
    return "operators:\n" + "".join(map(operator_yaml, loaded)) if loaded else ""


def operator_yaml(one: Loaded) -> str:
    tenants = f", tenants: [{', '.join(one.tenants)}]" if one.tenants else ""
    return f"  - {{ file: {INSTALLED}/{one.name}.weir{tenants} }}\n"


def with_texts(yaml: str) -> str:
    """A kept configuration for the texts of this checkout."""
    return re.sub(rf"{INSTALLED}/([\w.-]+)", rf'"{TEXTS}/\1"', yaml)  # a folder's name may have a comma


# -- tables


def entry(number: int, name_or_digest: str | bytes) -> bytes:
    is_name = isinstance(name_or_digest, str)
    return bytes([number]) + bytes(7) + (digest(name_or_digest) if is_name else name_or_digest)


def table(operators: dict[int, str | bytes]) -> bytes:
    """By number: names, or digests of what nobody has."""
    return b"".join(entry(number, operator) for number, operator in operators.items())


def entries(data: bytes) -> list[bytes]:
    return [data[at:at + ENTRY_BYTES] for at in range(0, len(data), ENTRY_BYTES)]


def may_be_table(version: int, size: int) -> bool:
    """A hello's data."""
    return size == 0 or version == VERSION_WITH_TABLE and size % ENTRY_BYTES == 0 and size <= MOST_ENTRIES * ENTRY_BYTES


def is_table(data: bytes, may_lack: bool) -> bool:
    """Only a switch says that it lacks one."""
    there = [one for one in entries(data) if one != EMPTY]
    numbers = [one[0] for one in there]
    return ((may_lack or len(there) == len(entries(data))) and len(set(numbers)) == len(numbers)
            and all(one[0] >= FIRST_NUMBER and not any(one[1:8]) for one in there))


def are_alike(one: bytes, other: bytes) -> bool:
    """But for what a switch on the way lacks."""
    return len(one) == len(other) and all(a == b or EMPTY in (a, b) for a, b in zip(entries(one), entries(other)))


def left_of(tables: Sequence[bytes], granted: Sequence[str]) -> bytes:
    """What all tables of a set have, and this switch grants."""
    digests = set(map(digest, granted))
    rows = zip(*map(entries, tables), strict=True)
    return b"".join(row[0] if len(set(row)) == 1 and row[0][8:] in digests else EMPTY for row in rows)


def by_number(data: bytes, granted: Sequence[str]) -> dict[int, str]:
    """The operators of an incarnation's table."""
    names = {digest(name): name for name in granted}
    return {one[0]: names[one[8:]] for one in entries(data) if one != EMPTY}
