# SPDX-License-Identifier: BSD-3-Clause
"""The table of expectations (expectations.yaml): what the papers say, and which values count as equal.

Reads the table. A mistake in it is rejected with a text that names the place, what was found and what is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

INSIDE, OUTSIDE, REPORTED = "inside", "outside", "reported"
EVIDENCE = {
    "text": "a number in the paper's text",
    "formula": "the paper's formula, evaluated",
    "oracle": "run by the authors' own public simulator",
    "prototype": "run by an earlier prototype of ours",
    "inference": "follows from the text, not said there",
    "bound": "a bound of our own",
}
EFFORTS = ("quick", "full")
BANDS = ("within", "exactly", "between", "factor", "at_least", "at_most", "report")
CHECK_KEYS = {"value", "what", "unit", "paper", *BANDS, "evidence", "effort", "reading", "verdict", "why"}
FIGURE_KEYS = {"id", "source", "what", "how", "evidence", "checks", "plots", "note", "not_reproducible"}
PLOT_KEYS = {"plot", "title", "x", "y", "logarithmic"}
PAPER_KEYS = {"family", "title", "about", "figures"}
TABLE_KEYS = {"papers"}
LARGEST = 1e300
EXACT = 1e-6  # relative: a program may round what is exact on paper


class Mistake(ValueError):
    """The table is wrong; the text says where and how."""


@dataclass(frozen=True)
class Band:
    """The values that count as the paper's: low to high, both included."""
    low: float
    high: float
    words: str

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Check:
    value: str  # its name in the program's output
    what: str
    unit: str
    paper: float | None
    band: Band | None  # None: reported only
    evidence: str
    effort: str
    reading: str  # which reading of the paper, if it contradicts itself
    verdict: str  # the recorded one
    why: str  # what was found out about a value outside its band, or why there is no band


@dataclass(frozen=True)
class Plot:
    plot: str  # its name in the program's output
    title: str
    x: str
    y: str
    is_logarithmic: bool


@dataclass(frozen=True)
class Figure:
    id: str
    source: str
    what: str
    how: str
    checks: tuple[Check, ...]
    plots: tuple[Plot, ...]
    note: str
    not_reproducible: str


@dataclass(frozen=True)
class Paper:
    family: str
    title: str
    about: str
    figures: tuple[Figure, ...] = field(default_factory=tuple)


def listed(names: Any) -> str:
    return ", ".join(sorted(str(name) for name in names))


def require_keys(where: str, entry: Any, allowed: set[str], wanted: tuple[str, ...]) -> None:
    if not isinstance(entry, dict):
        raise Mistake(f"{where}: found {entry!r}; wants keys and values")
    for key in entry:
        if key not in allowed:
            raise Mistake(f"{where}: found key {key!r}; allowed: {listed(allowed)}")
    for key in wanted:
        if key not in entry:
            raise Mistake(f"{where}: lacks the key {key!r}")


def listed_under(where: str, key: str, entry: dict[str, Any]) -> list[Any]:
    """Nothing if the key is missing."""
    found = entry.get(key, [])
    if not isinstance(found, list):
        raise Mistake(f"{where}: {key} is {found!r}; wants a list")
    return found


def number(where: str, key: str, found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= LARGEST:
        raise Mistake(f"{where}: {key} is {found!r}; wants a finite number")
    return float(found)


def text(where: str, key: str, entry: dict[str, Any], default: str | None = None) -> str:
    found = entry.get(key, default)
    if not isinstance(found, str) or (default is None and not found.strip()):
        raise Mistake(f"{where}: {key} is {found!r}; wants text")
    return found.strip()


def share(where: str, found: Any) -> float:
    """"3 %" as 0.03."""
    amount = found.removesuffix("%").strip() if isinstance(found, str) and found.endswith("%") else None
    try:
        percent = float(amount) if amount is not None else 0.0
    except ValueError:
        percent = 0.0
    if not 0 < percent < 100:
        raise Mistake(f"{where}: within is {found!r}; wants a share between 0 % and 100 %, such as '3 %'")
    return percent / 100


def relative(paper: float, below: float, above: float, words: str) -> Band:
    ends = (paper * below, paper * above)
    return Band(min(ends), max(ends), words)


def band_of(where: str, entry: dict[str, Any], paper: float | None) -> Band | None:
    kinds = [key for key in BANDS if key in entry]
    if len(kinds) != 1:
        raise Mistake(f"{where}: has the bands {listed(kinds) or 'none'}; wants exactly one of: {listed(BANDS)}")
    kind, found = kinds[0], entry[kinds[0]]
    if kind in ("within", "exactly", "factor") and paper is None:
        raise Mistake(f"{where}: {kind} wants the paper's number beside it, under the key 'paper'")
    if kind == "report":
        return None
    if kind == "within":
        part = share(where, found)
        return relative(paper, 1 - part, 1 + part, f"± {100 * part:g} %")
    if kind == "exactly":
        if found is not True:
            raise Mistake(f"{where}: exactly is {found!r}; wants true")
        return Band(paper - EXACT * abs(paper), paper + EXACT * abs(paper), "exact")
    if kind == "factor":
        factor = number(where, kind, found)
        if factor <= 1:
            raise Mistake(f"{where}: factor is {found!r}; wants a number above 1")
        return relative(paper, 1 / factor, factor, f"factor {factor:g}")
    if kind == "between":
        if not isinstance(found, list) or len(found) != 2:
            raise Mistake(f"{where}: between is {found!r}; wants [low, high]")
        low, high = (number(where, kind, end) for end in found)
        if low >= high:
            raise Mistake(f"{where}: between is {found!r}; wants the lower end first")
        return Band(low, high, f"{low:g} to {high:g}")
    bound = number(where, kind, found)
    return Band(bound, math.inf, f"≥ {bound:g}") if kind == "at_least" else Band(-math.inf, bound, f"≤ {bound:g}")


def choice(where: str, key: str, found: Any, allowed: Any) -> str:
    if not isinstance(found, str) or found not in allowed:
        raise Mistake(f"{where}: {key} is {found!r}; allowed: {listed(allowed)}")
    return str(found)


def check_of(where: str, entry: Any, figure: dict[str, Any]) -> Check:
    """A check without its own 'evidence' has its figure's."""
    require_keys(where, entry, CHECK_KEYS, ("value", "what"))
    name = text(where, "value", entry)
    where = f"{where}, value {name!r}"
    paper = number(where, "paper", entry["paper"]) if "paper" in entry else None
    band = band_of(where, entry, paper)
    verdict = choice(where, "verdict", entry.get("verdict", INSIDE if band else REPORTED),
                     (INSIDE, OUTSIDE) if band else (REPORTED,))
    why = text(where, "why", entry, default="") if band else text(where, "report", entry)
    if verdict == OUTSIDE and not why:
        raise Mistake(f"{where}: is recorded as outside its band without saying, under the key 'why', what was "
                      "found out")
    if verdict == INSIDE and why:
        raise Mistake(f"{where}: 'why' explains a value outside its band, and this one is recorded as inside")
    return Check(name, text(where, "what", entry), text(where, "unit", entry, default=""), paper, band,
                 choice(where, "evidence", entry.get("evidence", figure.get("evidence")), EVIDENCE),
                 choice(where, "effort", entry.get("effort", "quick"), EFFORTS),
                 text(where, "reading", entry, default=""), verdict, why)


def plot_of(where: str, entry: Any) -> Plot:
    require_keys(where, entry, PLOT_KEYS, ("plot", "title", "x", "y"))
    is_logarithmic = entry.get("logarithmic", False)
    if not isinstance(is_logarithmic, bool):
        raise Mistake(f"{where}: logarithmic is {is_logarithmic!r}; wants true or false")
    return Plot(*(text(where, key, entry) for key in ("plot", "title", "x", "y")), is_logarithmic)


def figure_of(family: str, entry: Any) -> Figure:
    require_keys(f"a figure of {family}", entry, FIGURE_KEYS, ("id", "source", "what"))
    where = text(f"a figure of {family}", "id", entry)
    if not where.startswith(family):
        raise Mistake(f"{where}: stands among the figures of {family}, and wants an id that starts so")
    reason = text(where, "not_reproducible", entry, default="")
    checks = tuple(check_of(where, one, entry) for one in listed_under(where, "checks", entry))
    if bool(reason) == bool(checks):
        raise Mistake(f"{where}: wants either checks or the reason why it is not reproducible")
    names = [check.value + check.reading for check in checks]
    for name in names:
        if names.count(name) > 1:
            raise Mistake(f"{where}: checks {name!r} twice; two readings of one value want different 'reading's")
    return Figure(where, text(where, "source", entry), text(where, "what", entry),
                  text(where, "how", entry, default=""), checks,
                  tuple(plot_of(f"{where}, a plot", one) for one in listed_under(where, "plots", entry)),
                  text(where, "note", entry, default=""), reason)


def paper_of(entry: Any) -> Paper:
    require_keys("a paper", entry, PAPER_KEYS, ("family", "title", "about", "figures"))
    family = text("a paper", "family", entry)
    return Paper(family, text(family, "title", entry), text(family, "about", entry),
                 tuple(figure_of(family, one) for one in listed_under(family, "figures", entry)))


def parse(content: str) -> list[Paper]:
    """The table's papers. Raises Mistake."""
    try:
        table = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the last two from numbers and dates
        raise Mistake(f"not YAML: {error}") from error
    require_keys("the table", table, TABLE_KEYS, ("papers",))
    papers = [paper_of(entry) for entry in listed_under("the table", "papers", table)]
    ids = [figure.id for paper in papers for figure in paper.figures]
    for one in ids:
        if ids.count(one) > 1:
            raise Mistake(f"{one}: stands in the table twice")
    return papers


def load(path: Path) -> list[Paper]:
    """Raises Mistake with the file's name."""
    try:
        return parse(path.read_text())
    except Mistake as mistake:
        raise Mistake(f"{path.name}: {mistake}") from mistake
