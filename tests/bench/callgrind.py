# SPDX-License-Identifier: BSD-3-Clause
"""Reads callgrind's output (valgrind manual, "Callgrind Format Specification"): costs by function and call."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

NAMED = re.compile(r"^(fn|cfn)=\((\d+)\)(?: (.*))?$")


@dataclass
class Profile:
    """Instructions of each function itself, and of each call: those of a callee for a caller."""
    own: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def total(self) -> int:
        return sum(self.own.values())


def read(path: Path) -> Profile:
    profile = Profile()
    names: dict[str, str] = {}
    caller = callee = ""
    is_call = False
    for line in path.read_text().splitlines():
        named = NAMED.match(line)
        if named:
            kind, number, name = named.groups()
            if name is not None:
                names[number] = name
            if kind == "fn":
                caller = names[number]
            else:
                callee = names[number]
        elif line.startswith("calls="):
            is_call = True  # the next line has the call's cost
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            cost = int(line.split()[1])
            if is_call:
                profile.calls[caller, callee] += cost
            else:
                profile.own[caller] += cost
            is_call = False
    return profile
