# SPDX-License-Identifier: BSD-3-Clause
"""Compares the program's values with the table of expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expectations import INSIDE, OUTSIDE, REPORTED, Check, Figure

Computed = dict[str, Any]  # one line of the program's output: figure, values, plots


@dataclass(frozen=True)
class Judged:
    """One value and its band."""
    check: Check
    value: float
    verdict: str

    @property
    def is_as_recorded(self) -> bool:
        return self.verdict == self.check.verdict


def verdict_on(check: Check, value: float) -> str:
    if check.band is None:
        return REPORTED
    return INSIDE if check.band.holds(value) else OUTSIDE


def judge(figure: Figure, computed: Computed, effort: str) -> list[Judged]:
    """The verdicts of this effort. A value that only the table or only the program has raises a KeyError with its
    name."""
    wanted = [check for check in figure.checks if effort == "full" or check.effort == "quick"]
    values = computed["values"]
    for check in wanted:
        if check.value not in values:
            raise KeyError(f"{figure.id}: the program does not give {check.value!r}; it gives {', '.join(values)}")
    known = {check.value for check in figure.checks}
    for name in values:
        if name not in known:
            raise KeyError(f"{figure.id}: the program gives {name!r}, of which the table of expectations says nothing")
    return [Judged(check, values[check.value], verdict_on(check, values[check.value])) for check in wanted]


def summary_of(judged: list[Judged]) -> str:
    """The worst verdict of a figure, in one word."""
    verdicts = {one.verdict for one in judged}
    return next(word for word in (OUTSIDE, INSIDE, REPORTED) if word in verdicts)
