# SPDX-License-Identifier: BSD-3-Clause
"""Tables, drawings and the pages that tools/figures writes."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from expectations import EVIDENCE, INSIDE, OUTSIDE, REPORTED, Figure, Paper, Plot
from verdicts import Computed, Judged

sys.path += [str(Path(__file__).resolve().parent.parent / folder) for folder in ("bench", "support")]
from output import write_text  # noqa: E402
import plot  # noqa: E402  the line charts of tools/bench

HEADING = ["| what | paper | ours | band | rests on | verdict |", "|---|---|---|---|---|---|"]
PLANNING = "PL"  # the family of figures that no paper shows; it has a page of its own
MOST_NAMED = 6  # values in one remark
SHOWN = {INSIDE: "inside", OUTSIDE: "**outside**", REPORTED: "–"}


@dataclass
class Outcome:
    """One figure: what was computed and how it was judged; neither if it is not reproducible."""
    figure: Figure
    computed: Computed | None = None
    judged: list[Judged] | None = None


def number(value: float) -> str:
    """With four digits; whole numbers have no fraction."""
    if value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.4g}"


def cells(one: Judged) -> list[str]:
    check = one.check
    unit = f" {check.unit}" if check.unit else ""
    what = check.what + (f" (*{check.reading}*)" if check.reading else "")
    evidence = check.evidence if check.band else ""
    return [what, "" if check.paper is None else number(check.paper) + unit, number(one.value) + unit,
            check.band.words if check.band else "", evidence, SHOWN[one.verdict]]


def row(one: Judged) -> str:
    return "| " + " | ".join(cells(one)) + " |"


def plain_row(one: Judged) -> str:
    """The row of a value that no paper has."""
    what, _, ours, *_ = cells(one)
    return f"| {what} | {ours} |"


def row_of(outcome: Outcome, one: Judged) -> str:
    """The row as the figure's page has it."""
    return plain_row(one) if is_planning(outcome.figure) else row(one)


def is_planning(figure: Figure) -> bool:
    return figure.id.startswith(PLANNING)


def chart(wanted: Plot, computed: Computed) -> str:
    """The plot as SVG. Raises KeyError for one that the program does not give."""
    series = [plot.Series(name, [plot.Point(x, y, y, y) for x, y in sorted(points)])
              for name, points in computed["plots"][wanted.plot].items()]
    return plot.line_chart(wanted.title, wanted.x, wanted.y, series,
                           plot.Scale.LOGARITHMIC if wanted.is_logarithmic else plot.Scale.LINEAR)


def filled(note: str, outcome: Outcome) -> str:
    """The note with every [[value]] put in. Raises KeyError for one that the program does not give."""
    values = outcome.computed["values"] if outcome.computed else {}
    return re.sub(r"\[\[(.+?)\]\]", lambda match: number(values[match[1]]), note)


def picture_name(figure: Figure, wanted: Plot) -> str:
    return f"{figure.id}-{wanted.plot.replace(' ', '-')}.svg"


def draw_all(outcomes: list[Outcome], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        for wanted in outcome.figure.plots if outcome.computed else ():
            write_text(folder / picture_name(outcome.figure, wanted), chart(wanted, outcome.computed))


def named(one: Judged) -> str:
    return one.check.what + (f" ({one.check.reading})" if one.check.reading else "")


def remarks(judged: list[Judged]) -> list[str]:
    """Why values are outside or have no band. Values with the same reason share a remark."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in judged:
        if one.verdict != INSIDE:
            word = "Outside" if one.verdict == OUTSIDE else "No band"
            reasons.setdefault((word, one.check.why), []).append(named(one))
    lines = [f"- {word}: {'; '.join(names) if len(names) <= MOST_NAMED else f'{len(names)} values'}: {why}"
             for (word, why), names in reasons.items()]
    return [*lines, ""] if lines else []


def section(outcome: Outcome) -> list[str]:
    figure = outcome.figure
    lines = [f"## {figure.id}: {figure.source}", "", f"{figure.what}.", ""]
    if figure.not_reproducible:
        return [*lines, f"Not reproducible: {figure.not_reproducible}", ""]
    if figure.how:
        lines += [f"{figure.how}.", ""]
    if outcome.judged is None:
        return [*lines, "Not run.", ""]
    lines += [*HEADING, *map(row, outcome.judged), "", *remarks(outcome.judged)]
    lines += [filled(figure.note, outcome), ""] if figure.note else []
    for wanted in figure.plots:
        lines += [f"![{wanted.title}]({picture_name(figure, wanted)})", ""]
    return lines


def page_name(family: str) -> str:
    """In docs/figures/, beside its pictures."""
    return f"{family.lower()}.md"


def family_of(figure: Figure) -> str:
    """Its paper's two letters begin its own name."""
    return figure.id[:2]


def tally(outcomes: list[Outcome]) -> list[str]:
    """How many values of a paper are inside, outside, reported; and the figures that are not reproducible."""
    judged = [one for outcome in outcomes for one in outcome.judged or []]
    counts = [sum(one.verdict == verdict for one in judged) for verdict in (INSIDE, OUTSIDE, REPORTED)]
    left = [outcome.figure.id for outcome in outcomes if outcome.figure.not_reproducible]
    return [*map(str, counts), ", ".join(left) or "–"]


def outside_list(outcomes: list[Outcome]) -> list[str]:
    """All values outside their bands, in one place."""
    lines = ["| figure | what | paper | ours | band |", "|---|---|---|---|---|"]
    for outcome in outcomes:
        for one in outcome.judged or []:
            if one.verdict == OUTSIDE:
                lines.append(f"| {outcome.figure.id} | " + " | ".join(cells(one)[:4]) + " |")
    return lines


def of_paper(paper: Paper, outcomes: list[Outcome]) -> list[Outcome]:
    ids = {figure.id for figure in paper.figures}
    return [outcome for outcome in outcomes if outcome.figure.id in ids]


def figures_page(papers: list[Paper], outcomes: list[Outcome], command: str) -> str:
    """How the papers came out, and where each one's figures are."""
    lines = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->", "# The papers' figures, and ours", "",
             f"Made by `{command}`; every number here comes out of it. The papers' results stand in",
             "`tests/figures/expectations.yaml` and nowhere else in the programs; what the papers state about their",
             "systems (rates, sizes, times measured on their GPUs) is in `tests/figures/inputs.hpp`. Runs are deterministic:",
             "another machine gives the same numbers. `tools/figures --quick` holds the pages to what the programs compute.", "",
             "A value is **inside** or **outside** its band. What is outside stays so and is explained; nothing is tuned.",
             "Where a paper contradicts itself, each reading has a row. What the paper's number *rests on*:", "",
             *(f"- {name}: {meaning}" for name, meaning in EVIDENCE.items()), "",
             "| paper | inside | outside | without a band | not reproducible, or not done |", "|---|---|---|---|---|"]
    lines += [f"| [{paper.title}](figures/{page_name(paper.family)}) | " + " | ".join(tally(of_paper(paper, outcomes))) + " |"
              for paper in papers]
    return "\n".join(lines).rstrip() + "\n"


def paper_page(paper: Paper, outcomes: list[Outcome]) -> str:
    """One paper's figures; what is outside stands first."""
    lines = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->", f"# {paper.family}: {paper.title}", "", paper.about, "",
             "[figures.md](../figures.md) says what the columns mean, and how the page is made.", ""]
    if any(one.verdict == OUTSIDE for outcome in outcomes for one in outcome.judged or []):
        lines += ["All that is outside; the figure below says why:", "", *outside_list(outcomes), ""]
    for outcome in outcomes:
        lines += section(outcome)
    return "\n".join(lines).rstrip() + "\n"


def planning_page(paper: Paper, outcomes: list[Outcome], command: str) -> str:
    """The page for whoever plans a fabric: conclusions first, then the figures that support them."""
    lines = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->", f"# {paper.title}", "", paper.about, "",
             f"Made by `{command}` from the planner (`lib/plan/plan`) and the simulator (`lib/plan/netsim`); [figures.md](figures.md)",
             "shows how near both come to what five papers report. For your own topology: `weir-plan compare`.", ""]
    lines += [f"- {filled(outcome.figure.note, outcome)} ([{outcome.figure.id}](#{outcome.figure.id.lower()}))"
              for outcome in outcomes]
    for outcome in outcomes:
        figure = outcome.figure
        lines += ["", f"## {figure.id}", "", f"{figure.what}.", "", f"{figure.how}.", ""]
        for wanted in figure.plots:
            lines += [f"![{wanted.title}](figures/{picture_name(figure, wanted)})", ""]
        lines += ["| what | value |", "|---|---|", *map(plain_row, outcome.judged or [])]
    return "\n".join(lines).rstrip() + "\n"
