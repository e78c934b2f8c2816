# SPDX-License-Identifier: BSD-3-Clause
"""The output of the measuring programs (README.md), grouped by case over rounds: medians and quartiles."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Parameters = dict[str, Any]  # text or whole numbers, in the order in which tables show them


@dataclass(frozen=True)
class Summary:
    """The median and quartiles of a figure over the rounds."""
    median: float
    low: float
    high: float

    @staticmethod
    def of(values: list[float]) -> Summary:
        if len(values) == 1:
            return Summary(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Summary(median, low, high)


@dataclass
class Figure:
    unit: str
    baseline: str | None  # the figure that is its bound or baseline
    values: list[float] = field(default_factory=list)

    def summary(self) -> Summary:
        return Summary.of(self.values)


@dataclass
class Measured:
    """All rounds of one case."""
    case: Parameters
    figures: dict[str, Figure] = field(default_factory=dict)

    def add(self, figures: dict[str, dict[str, Any]]) -> None:
        for name, given in figures.items():
            figure = self.figures.setdefault(name, Figure(given["unit"], given.get("of")))
            if figure.unit != given["unit"]:
                raise ValueError(f"figure {name!r} of {self.case} is in {figure.unit} and in {given['unit']}")
            figure.values.append(given["value"])

    def ratio(self, name: str) -> Summary | None:
        """A figure over its baseline, taken round by round."""
        figure = self.figures[name]
        if figure.baseline is None:
            return None
        baseline = self.figures[figure.baseline].values
        return Summary.of([value / base if base else 0.0 for value, base in zip(figure.values, baseline, strict=True)])

    def baselines(self) -> set[str]:
        return {figure.baseline for figure in self.figures.values() if figure.baseline is not None}

    def matches(self, where: Parameters) -> bool:
        return all(self.case.get(name) == value for name, value in where.items())

    def as_json(self) -> dict[str, Any]:
        figures = {}
        for name, figure in self.figures.items():
            entry = {"unit": figure.unit, **vars(figure.summary()), "rounds": figure.values}
            ratio = self.ratio(name)
            if ratio is not None:
                entry |= {"of": figure.baseline, "ratio": vars(ratio)}
            figures[name] = entry
        return {"case": self.case, "figures": figures}


def group(lines: Iterable[str], part: str) -> list[Measured]:
    """The cases of one part, in the order in which they came. ValueError for a line that README.md does not allow."""
    cases: dict[str, Measured] = {}
    for line in lines:
        given = json.loads(line)
        if given["part"] == part:
            key = json.dumps(given["case"])
            cases.setdefault(key, Measured(given["case"])).add(given["figures"])
    return list(cases.values())


def parameter_names(cases: Iterable[Measured]) -> list[str]:
    return list(dict.fromkeys(name for measured in cases for name in measured.case))


def values_of(cases: Iterable[Measured], name: str) -> list[Any]:
    """The values of a parameter: numbers sorted, text in the order in which it came."""
    values = list(dict.fromkeys(measured.case[name] for measured in cases if name in measured.case))
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def varying_parameters(cases: list[Measured]) -> Iterator[str]:
    for name in parameter_names(cases):
        if len(values_of(cases, name)) > 1 or any(name not in measured.case for measured in cases):
            yield name
