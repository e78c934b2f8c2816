# SPDX-License-Identifier: BSD-3-Clause
"""Where operations, data types and collectives are listed in another language, or for people. The rows of weir/ina.hpp say what
each list has; tests/docs.py compares, and writes them anew with --write."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS = "include/weir/ina.hpp"
WIDTH = 128


def read(name: str) -> str:
    return (ROOT / name).read_text()


def rows_of(macro: str) -> list[str]:
    """The names of the operations or data types, by number."""
    body = read(ROWS).split(f"#define {macro}(X)")[1].split("\n\n")[0]
    return [named or enumerator for enumerator, named in re.findall(r'X\((\w+), +(?:"(\w+)")?', body)]


def collectives() -> list[str]:
    body = read(ROWS).split("enum class Collective")[1].split("};")[0]
    return [name.replace("_", "-") for name in re.findall(r"^  (\w+) = \d", body, re.MULTILINE)]


@dataclass
class Listing:
    """The text between the first `begin` of a file and the next `end`."""

    file: str
    begin: str
    end: str
    names: list[str]  # as the rows have them
    text: Callable[[list[str], str], str]  # of the names, and of what stands there

    def parts(self) -> tuple[str, str, str]:
        before, found = read(self.file).split(self.begin, 1)
        there, after = found.split(self.end, 1)
        return before + self.begin, there, self.end + after

    def mistakes(self) -> list[str]:
        _, there, _ = self.parts()
        due = self.text(self.names, there)
        return [] if there == due else [f"{self.file} lists {there.strip()!r}; {ROWS} has {due.strip()!r}: tests/docs.py --write"]

    def write(self) -> None:
        before, there, after = self.parts()
        (ROOT / self.file).write_text(before + self.text(self.names, there) + after)


def for_people(name: str) -> str:
    return re.sub(r"^f8(e\dm\d)$", lambda match: f"f8 {match[1].upper()}", name)


def numbered(names: list[str], _there: str) -> str:
    return ", ".join(f"{number} {for_people(name)}" for number, name in enumerate(names))


def enumerators(names: list[str], _there: str) -> str:
    return ",\n".join(f"  WEIR_{name.upper()} = {number}" for number, name in enumerate(names))


def python_items(names: list[str], _there: str) -> str:
    return ", ".join(f'"WEIR_{name.upper()}": {number}' for number, name in enumerate(names))


def lua_strings(names: list[str], _there: str) -> str:
    return "[0] = " + ", ".join(f'"{for_people(name)}"' for name in names)


def in_its_own_order(names: list[str], there: str) -> str:
    """New ones come last."""
    known = [name for name in there.split(", ") if name in names]
    return ", ".join(known + [name for name in names if name not in known])


def folded(indent: str, text: Callable[[list[str], str], str]) -> Callable[[list[str], str], str]:
    """For a list that begins behind `indent`; its lines are as long as lines may be."""
    def lines(names: list[str], there: str) -> str:
        return textwrap.fill(text(names, there), WIDTH, initial_indent=indent, subsequent_indent=indent,
                             break_long_words=False, break_on_hyphens=False).removeprefix(indent)
    return lines


def listings() -> list[Listing]:
    operations, types = rows_of("WEIR_OPERATIONS"), rows_of("WEIR_DATA_TYPES")
    header, torch, lua = "include/weir/weir.h", "lib/host/torch/weir_torch/c_api.py", "tools/wireshark/weir.lua"
    return [
        Listing(header, "enum weir_operation {\n", ",\n  WEIR_AVERAGE", operations, enumerators),
        Listing(header, "enum weir_data_type {\n", ",\n  WEIR_AS_OPERATOR", types, enumerators),
        Listing(torch, "OPERATIONS = {", ',\n              "WEIR_AVERAGE"', operations, folded(" " * 14, python_items)),
        Listing(lua, "local OPERATIONS = { ", " }", operations, lua_strings),
        Listing(lua, "local TYPES = {\n  ", ",\n}", types, folded("  ", lua_strings)),
        Listing(lua, "local COLLECTIVES = { ", " }", collectives(), lua_strings),
        Listing("app/worker/given_options.cpp", 'kTypeNames =\n    "', '"', types, in_its_own_order),
        Listing("docs/protocol.md", "| op | ", " (bitwise)", operations, numbered),
        Listing("docs/protocol.md", "| dtype | ", " |", types, numbered),
        Listing("docs/glossary.md", "| operation | ", " |", operations, lambda names, _there: ", ".join(names)),
    ]
