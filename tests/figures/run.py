#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Computes the papers' figures, compares them with the table of expectations and writes the pages (README.md).

Ends in "figures: N passed, N failed, N skipped": a figure fails if a verdict differs from the recorded one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

import expectations  # noqa: E402
import mutations  # noqa: E402
import pages  # noqa: E402
from expectations import Figure, Paper  # noqa: E402
from output import end_with, write_text  # noqa: E402
from pages import Outcome  # noqa: E402
from progress import Progress  # noqa: E402
from record import Record  # noqa: E402
from verdicts import Computed, judge  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = Path(__file__).with_name("expectations.yaml")


# Figures that take minutes and share runs with each other, but with no others of their paper.
LONG = (("MT7",), ("MT8", "MT9", "MT10"))


def nobody(_: str) -> None:
    """A listener that ignores everything."""


class Program:
    """Builds and runs figures_main."""

    def __init__(self, build: Path, is_full: bool) -> None:
        self._path = build / "tests" / "figures" / "figures_main"
        subprocess.run(["ninja", "-C", str(build), "tests/figures/figures_main"], check=True, stdout=subprocess.DEVNULL)
        self._effort = ["--full"] if is_full else []
        self.ids = subprocess.run([self._path, "--list"], check=True, capture_output=True, text=True).stdout.split()

    def compute(self, ids: list[str], mutation: str | None = None,
                begin: Callable[[str], None] = nobody,
                finish: Callable[[Computed], None] = lambda _: None) -> list[Computed]:
        """Computes in one process, so that figures share runs. Raises RuntimeError with the program's output."""
        change = ["--mutation", mutation] if mutation else []
        process = subprocess.Popen([self._path, *self._effort, *change, *ids], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stderr is not None
        computed = []
        for name in ids:
            begin(name)
            line = process.stdout.readline()
            if not line:
                break
            computed.append(json.loads(line))
            finish(computed[-1])
        if process.wait() != 0:
            raise RuntimeError(process.stderr.read().strip())
        return computed


def wanted_ids(paper: Paper, chosen: list[str]) -> list[str]:
    return [figure.id for figure in paper.figures if figure.checks and (not chosen or figure.id in chosen)]


def groups_of(papers: list[Paper], chosen: list[str]) -> list[list[str]]:
    """The groups of figures, one process for each: the long figures, then the papers, the largest first."""
    wanted = [wanted_ids(paper, chosen) for paper in sorted(papers, key=lambda paper: len(paper.figures), reverse=True)]
    long = [[name for ids in wanted for name in ids if name in group] for group in LONG]
    rest = [[name for name in ids if not any(name in group for group in LONG)] for ids in wanted]
    return [ids for ids in long + rest if ids]


def compute_all(program: Program, papers: list[Paper], chosen: list[str],
                keep: Callable[[Computed], None]) -> dict[str, Computed]:
    """Groups run in parallel, the figures of a group one after the other. Each finished one is passed to `keep`."""
    groups = groups_of(papers, chosen)
    with Progress(sum(map(len, groups)), sys.stderr) as progress:
        def one(ids: list[str]) -> list[Computed]:
            def finish(computed: Computed) -> None:
                progress.finish(computed["figure"])
                keep(computed)
            return program.compute(ids, begin=progress.begin, finish=finish)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return {computed["figure"]: computed for results in pool.map(one, groups) for computed in results}


def outcome_of(figure: Figure, computed: dict[str, Computed], effort: str) -> Outcome:
    if figure.id not in computed:
        return Outcome(figure)
    return Outcome(figure, computed[figure.id], judge(figure, computed[figure.id], effort))


def show(outcome: Outcome) -> None:
    """The figure as a table of text."""
    figure = outcome.figure
    print(f"\n{figure.id}  {figure.source}: {figure.what}")
    if figure.not_reproducible:
        print(f"  not reproducible: {figure.not_reproducible}")
        return
    for one in outcome.judged or []:
        what, paper, ours, band, evidence, _ = pages.cells(one)
        changed = "" if one.is_as_recorded else f"   ON RECORD: {one.check.verdict}"
        print(f"  {what[:70]:70} {ours:>14}   paper {paper or '–':>14} {band:14} {evidence:10} "
              f"{one.verdict}{changed}")


def complaints_about(outcomes: list[Outcome]) -> list[str]:
    return [f"{outcome.figure.id}: {one.check.what} is {pages.number(one.value)}, {one.verdict} "
            f"{one.check.band.words if one.check.band else ''}; on record it is {one.check.verdict}"
            for outcome in outcomes for one in outcome.judged or [] if not one.is_as_recorded]


def stale_rows(outcomes: list[Outcome], page: Path) -> list[str]:
    """Rows that differ between the program and the page."""
    shown = page.read_text() if page.exists() else ""
    return [f"{page.name} does not have this row of {outcome.figure.id}; tools/figures makes it anew: "
            f"{pages.row_of(outcome, one)}"
            for outcome in outcomes for one in outcome.judged or [] if pages.row_of(outcome, one) not in shown]


def page_of(outcome: Outcome) -> Path:
    if pages.is_planning(outcome.figure):
        return ROOT / "docs/planning.md"
    return ROOT / "docs/figures" / pages.page_name(pages.family_of(outcome.figure))


def record_in(folder: Path) -> Path:
    return folder / "figures" / "computed.jsonl"


def is_failure(outcome: Outcome) -> bool:
    return any(not one.is_as_recorded for one in outcome.judged or [])


def write_pages(papers: list[Paper], outcomes: list[Outcome], folder: Path) -> None:
    pages.draw_all(outcomes, folder / "figures")
    of_papers = [paper for paper in papers if paper.family != pages.PLANNING]
    write_text(folder / "figures.md", pages.figures_page(of_papers, outcomes, "tools/figures"))
    for paper in papers:
        its_own = pages.of_paper(paper, outcomes)
        if paper.family == pages.PLANNING:
            write_text(folder / "planning.md", pages.planning_page(paper, its_own, "tools/figures"))
        else:
            write_text(folder / "figures" / pages.page_name(paper.family), pages.paper_page(paper, its_own))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/figures",
                                     description="The papers' figures beside ours, with verdicts.")
    parser.add_argument("ids", nargs="*", metavar="ID",
                        help="compute only these figures (see --list); pages show the others as they were computed last")
    parser.add_argument("--list", action="store_true", help="list the figures")
    parser.add_argument("--quick", action="store_true",
                        help="what takes two minutes; also holds the pages and the mutations to account")
    parser.add_argument("--out", type=Path, metavar="DIR", default=ROOT / "docs", help="where pages go (default docs)")
    parser.add_argument("--build", type=Path, default=ROOT / "build-release", help=argparse.SUPPRESS)
    return parser.parse_args()


def check_ids(papers: list[Paper], program: Program, chosen: list[str]) -> None:
    known = [figure.id for paper in papers for figure in paper.figures]
    for one in chosen:
        if one not in known:
            sys.exit(f"tools/figures: found figure {one!r}; --list names those there are")
    with_checks = [name for paper in papers for name in wanted_ids(paper, [])]
    if sorted(with_checks) != sorted(program.ids):
        sys.exit(f"tools/figures: the table and the program differ over {sorted(set(with_checks) ^ set(program.ids))}")


def list_figures(papers: list[Paper]) -> None:
    for paper in papers:
        for figure in paper.figures:
            print(f"{figure.id:6} {figure.source}: {figure.what}")


@dataclass
class Tally:
    """The counts of the last line, and its errors."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)

    def add_figures(self, outcomes: list[Outcome]) -> None:
        failed = sum(map(is_failure, outcomes))
        judged = sum(bool(outcome.judged) for outcome in outcomes)
        self.passed += judged - failed
        self.failed += failed
        self.skipped += len(outcomes) - judged
        self.complaints += complaints_about(outcomes)

    def add_check(self, complaints: list[str]) -> None:
        self.passed += not complaints
        self.failed += bool(complaints)
        self.complaints += complaints

    def show(self) -> int:
        """Prints the result. Returns the exit status."""
        print("".join(f"\nFAILED: {complaint}" for complaint in self.complaints))
        print(f"figures: {self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def outcomes_of(papers: list[Paper], computed: dict[str, Computed], chosen: list[str], effort: str) -> list[Outcome]:
    return [outcome_of(figure, computed, effort) for paper in papers for figure in paper.figures
            if not chosen or figure.id in chosen]


def check_quickly(program: Program, papers: list[Paper], chosen: list[str], tally: Tally) -> None:
    """The verdicts of figures that take two minutes together, and the pages and mutations of all."""
    computed = compute_all(program, papers, chosen, lambda _: None)
    outcomes = outcomes_of(papers, computed, chosen, "quick")
    for outcome in outcomes:
        show(outcome)
    tally.add_figures(outcomes)
    if not chosen:
        tally.add_check([row for outcome in outcomes for row in stale_rows([outcome], page_of(outcome))])
        for mutation in mutations.MUTATIONS:
            tally.add_check(mutations.unnoticed(program, papers, mutation))


def compute_pages(program: Program, papers: list[Paper], options: argparse.Namespace, tally: Tally) -> None:
    """Computes all figures, or the chosen ones, and writes the pages."""
    record = Record(record_in(options.out))
    compute_all(program, papers, options.ids, record.add)
    for outcome in outcomes_of(papers, record.computed, options.ids, "full"):
        show(outcome)
    outcomes = outcomes_of(papers, record.computed, [], "full")
    tally.add_figures(outcomes)
    write_pages(papers, outcomes, options.out)
    print(f"\npages: {options.out}/figures.md, {options.out}/figures/*.md, {options.out}/planning.md")


def main() -> int:
    options = parse_arguments()
    papers = expectations.load(TABLE)
    if options.list:
        list_figures(papers)
        return 0
    program = Program(options.build, not options.quick)
    check_ids(papers, program, options.ids)
    tally = Tally()
    if options.quick:
        check_quickly(program, papers, options.ids, tally)
    else:
        compute_pages(program, papers, options, tally)
    return tally.show()


def run() -> int:
    try:
        return main()
    except (expectations.Mistake, KeyError, RuntimeError) as error:
        sys.exit(f"tools/figures: {error.args[0]}")


if __name__ == "__main__":
    end_with("tools/figures", run)
