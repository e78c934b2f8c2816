# SPDX-License-Identifier: BSD-3-Clause
"""What the comparisons of rivals.py have in common: options, a case's line (README.md), and a missing package."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rounds import Parameters

PART = "rivals"


class Missing(Exception):
    """What this machine lacks for a comparison."""


@dataclass(frozen=True)
class Options:
    rounds: int
    is_quick: bool
    only: str

    def wants(self, case: Parameters) -> bool:
        return self.only in ",".join(f"{name}={value}" for name, value in case.items())


@dataclass(frozen=True)
class Pair:
    """What Weir and its rival did in one round of a case."""
    case: Parameters
    weir: float
    rival: float
    unit: str

    def line(self, round_number: int) -> str:
        weir, rival = (float(f"{value:.6g}") for value in (self.weir, self.rival))
        figures = {"weir": {"value": weir, "unit": self.unit, "of": "rival"},
                   "rival": {"value": rival, "unit": self.unit}}
        return json.dumps({"part": PART, "case": self.case, "round": round_number, "figures": figures})


def report(pairs: Iterable[Pair], round_number: int) -> None:
    for pair in pairs:
        print(pair.line(round_number), flush=True)


def tell_progress(about: str, round_number: int, options: Options) -> None:
    print(f"{PART}: {about}: round {round_number + 1} of {options.rounds}", file=sys.stderr, flush=True)


def need(program: str, package: str) -> str:
    """The program's path. Raises Missing."""
    path = shutil.which(program)
    if path is None:
        raise Missing(f"{program} is not installed (package {package})")
    return path


