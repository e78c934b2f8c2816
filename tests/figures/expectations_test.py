#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of expectations: mistakes give an error text, bands hold the right values, damage raises only Mistake.

Ends in "figures-table: N passed, …".
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from pathlib import Path

import expectations
from expectations import INSIDE, OUTSIDE, REPORTED, Mistake, parse
from mutations import Mutation, unnoticed
from pages import paper_page
from progress import Progress
from record import Record
from run import ROOT, groups_of, outcome_of, outcomes_of, record_in, stale_rows, write_pages
from verdicts import judge, verdict_on

TABLE = """
papers:
- family: XX
  title: A paper
  about: About something.
  figures:
  - id: XX1
    source: Fig. 1
    what: A ratio
    how: By counting
    evidence: text
    checks:
    - {value: ratio, what: the ratio, CHECK}
"""
GOOD = "paper: 2, within: 5 %"

# What replaces CHECK, and words of the error.
BAD_CHECKS = (
    ("paper: 2, within: 5", "wants a share between 0 % and 100 %"),
    ("paper: 2, within: -5 %", "wants a share between 0 % and 100 %"),
    ("paper: 2, within: five %", "wants a share between 0 % and 100 %"),
    ("within: 5 %", "within wants the paper's number beside it"),
    ("paper: 2", "has the bands none; wants exactly one of"),
    ("paper: 2, within: 5 %, at_least: 1", "has the bands at_least, within; wants exactly one of"),
    ("paper: two, within: 5 %", "paper is 'two'; wants a finite number"),
    ("paper: .nan, within: 5 %", "wants a finite number"),
    ("paper: 2, factor: 0.5", "wants a number above 1"),
    ("paper: 2, exactly: maybe", "exactly is 'maybe'; wants true"),
    ("between: [3, 1]", "wants the lower end first"),
    ("between: 3", "wants [low, high]"),
    ("at_least: true", "at_least is True; wants a finite number"),
    ("paper: 2, within: 5 %, evidence: rumour", "evidence is 'rumour'; allowed: bound, formula"),
    ("paper: 2, within: 5 %, effort: huge", "effort is 'huge'; allowed: full, quick"),
    ("paper: 2, within: 5 %, verdict: fine", "verdict is 'fine'; allowed: inside, outside"),
    ("paper: 2, within: 5 %, verdict: outside", "without saying, under the key 'why'"),
    ("paper: 2, within: 5 %, why: because", "'why' explains a value outside its band"),
    ("paper: 2, within: 5 %, colour: red", "found key 'colour'; allowed: at_least"),
    ("report: ''", "report is ''; wants text"),
    ("report: no band, verdict: inside", "verdict is 'inside'; allowed: reported"),
)

# Whole tables.
BAD_TABLES = (
    ("papers: [", "not YAML"),
    ("- a", "wants keys and values"),
    ("papers: []\nmore: 1", "found key 'more'; allowed: papers"),
    ("{}", "lacks the key 'papers'"),
    ("papers: 7", "papers is 7; wants a list"),
    (TABLE.replace("CHECK", GOOD).replace("id: XX1", "id: YY1"), "wants an id that starts so"),
    (TABLE.replace("CHECK", GOOD) + "  - {id: XX1, source: s, what: w, not_reproducible: why}\n",
     "stands in the table twice"),
    (TABLE.replace("CHECK", GOOD) + "    not_reproducible: no GPUs\n", "wants either checks or the reason"),
    (TABLE.replace("CHECK", GOOD) + "    - {value: ratio, what: again, at_least: 1}\n", "checks 'ratio' twice"),
    (TABLE.replace("CHECK", GOOD) + "    plots:\n    - {plot: p, title: t, x: x, y: y, logarithmic: 2}\n",
     "wants true or false"),
    (TABLE.replace("CHECK", GOOD).replace("    what: A ratio\n", ""), "lacks the key 'what'"),
)

# A band, a value, its verdict.
VERDICTS = (
    ("paper: 2, within: 5 %", 2.1, INSIDE), ("paper: 2, within: 5 %", 2.11, OUTSIDE),
    ("paper: -2, within: 5 %", -1.9, INSIDE), ("paper: -2, within: 5 %", -1.89, OUTSIDE),
    ("paper: 3, exactly: true", 3.0, INSIDE), ("paper: 3, exactly: true", 3.0001, OUTSIDE),
    ("paper: 0, exactly: true", 0, INSIDE), ("paper: 0, exactly: true", 1e-9, OUTSIDE),
    ("paper: 8, factor: 2", 4, INSIDE), ("paper: 8, factor: 2", 16.1, OUTSIDE),
    ("between: [1, 2]", 2, INSIDE), ("between: [1, 2]", 0.99, OUTSIDE),
    ("at_least: 1", 1, INSIDE), ("at_least: 1", 0.99, OUTSIDE),
    ("at_most: 1", 1, INSIDE), ("at_most: 1", 1.01, OUTSIDE),
    ("report: no band", 5, REPORTED),
)


def complaint_about(table: str) -> str:
    try:
        parse(table)
    except Mistake as mistake:
        return str(mistake)
    return "no complaint"


def check_mistakes() -> list[str]:
    tables = [(TABLE.replace("CHECK", check), words) for check, words in BAD_CHECKS] + list(BAD_TABLES)
    return [f"wanted a complaint with {words!r} and got {complaint_about(table)!r} for\n{table}"
            for table, words in tables if words not in complaint_about(table)]


def check_verdicts() -> list[str]:
    wrong = []
    for band, value, verdict in VERDICTS:
        check = parse(TABLE.replace("CHECK", band))[0].figures[0].checks[0]
        if verdict_on(check, value) != verdict:
            wrong.append(f"{band}: {value} is {verdict_on(check, value)}, should be {verdict}")
    return wrong


def check_names() -> list[str]:
    """The error names values that only the table or only the program has."""
    figure = parse(TABLE.replace("CHECK", GOOD))[0].figures[0]
    wrong = []
    for values, words in (({}, "does not give 'ratio'"), ({"ratio": 2, "extra": 1}, "gives 'extra'")):
        try:
            judge(figure, {"values": values}, "quick")
            wrong.append(f"no complaint about {values}")
        except KeyError as error:
            if words not in str(error.args[0]):
                wrong.append(f"wanted {words!r} in {error.args[0]!r}")
    return wrong


def check_damage() -> list[str]:
    """A damaged table is accepted or raises Mistake, nothing else."""
    dice = random.Random(1)
    pieces = ["[", "]", "{", "}", ":", ",", "-", "'", "\n", " ", "null", "1e999", "true", "%",
              "&a", "*a", "!!int", "\0", "é"]
    wrong = []
    for _ in range(2000):
        text = list(TABLE.replace("CHECK", dice.choice(BAD_CHECKS + ((GOOD, ""),))[0]))
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(text))
            text[at:at + dice.randint(0, 3)] = dice.choice(pieces)
        try:
            complaint_about("".join(text))
        except Exception as error:  # anything but a Mistake is an error in the parser
            wrong.append(f"{type(error).__name__}: {error} for\n{''.join(text)}")
    return wrong[:1]


class Fake:
    """Stands in for figures_main: one figure, whose value no mutation changes."""

    def __init__(self, value: float) -> None:
        self._value = value

    def compute(self, ids: list[str], _: str | None = None) -> list[dict[str, object]]:
        return [{"figure": one, "values": {"ratio": self._value}, "plots": {}} for one in ids]


def check_mutations() -> list[str]:
    """A mutation that changes no verdict is reported; one that does is not."""
    papers = parse(TABLE.replace("CHECK", GOOD))
    mutation = Mutation("XX", "link-slower", ("XX1",))
    wrong = []
    if unnoticed(Fake(2.0), papers, mutation) != ["XX: link-slower turns no verdict of XX1"]:
        wrong.append("no complaint about a mutation that turns nothing")
    if unnoticed(Fake(3.0), papers, mutation):
        wrong.append("a complaint about a mutation that turns a verdict")
    return wrong


def check_pages() -> list[str]:
    """A row that differs from the page's is reported; a page as generated is not."""
    paper = parse(TABLE.replace("CHECK", GOOD))[0]
    made = outcome_of(paper.figures[0], {"XX1": Fake(2.0).compute(["XX1"])[0]}, "quick")
    moved = outcome_of(paper.figures[0], {"XX1": Fake(2.05).compute(["XX1"])[0]}, "quick")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figures.md"
        page.write_text(paper_page(paper, [made]))
        wrong = [f"the page that was just made is called stale: {row}" for row in stale_rows([made], page)]
        if not stale_rows([moved], page):
            wrong.append("a value that moved is not seen in the page")
    return wrong


def check_table() -> list[str]:
    """The table itself is accepted, and every family of the five papers is in it."""
    papers = expectations.load(Path(__file__).with_name("expectations.yaml"))
    missing = {"AS", "NR", "MT", "KL", "FL"} - {paper.family for paper in papers}
    return [f"the table lacks {', '.join(sorted(missing))}"] if missing else []


def check_progress() -> list[str]:
    """Without a terminal there is a line for each figure. The bar counts finished figures and names those that run."""
    out = io.StringIO()
    with Progress(4, out) as progress:
        for name in ("XX1", "XX2", "XX3"):
            progress.begin(name)
        progress.finish("XX2")
        bar = progress.line()
    wrong = [f"the bar is {bar!r}, wants {words!r} in it" for words in ("[#######.", "] 1/4 XX1 0 s, XX3 0 s")
             if words not in bar]
    if out.getvalue() != "figures: XX2 computed in 0.0 s, 1 of 4\n":
        wrong.append(f"wanted one line about XX2 and got {out.getvalue()!r}")
    return wrong


def check_record() -> list[str]:
    """After the next start the record has the last value of each added figure, and all others."""
    with tempfile.TemporaryDirectory() as folder:
        path = record_in(Path(folder))
        for name, value in (("XX1", 1.0), ("XX2", 2.0), ("XX1", 3.0)):
            Record(path).add({"figure": name, "values": {"µs": value}, "plots": {}})
        found = {name: computed["values"]["µs"] for name, computed in Record(path).computed.items()}
    return [] if found == {"XX1": 3.0, "XX2": 2.0} else [f"the record holds {found}"]


def check_groups() -> list[str]:
    """Every figure is computed once, however many run in parallel."""
    papers = expectations.load(Path(__file__).with_name("expectations.yaml"))
    ids = [figure.id for paper in papers for figure in paper.figures if figure.checks]
    grouped = [name for group in groups_of(papers, []) for name in group]
    return [] if sorted(grouped) == sorted(ids) else [f"not once each: {sorted(set(grouped) ^ set(ids))}"]


def check_pages_of_record() -> list[str]:
    """The pages match the table and the record: neither was changed alone."""
    papers = expectations.load(Path(__file__).with_name("expectations.yaml"))
    docs = ROOT / "docs"
    with tempfile.TemporaryDirectory() as folder:
        write_pages(papers, outcomes_of(papers, Record(record_in(docs)).computed, [], "full"), Path(folder))
        made = [path.relative_to(folder) for path in Path(folder).rglob("*") if path.is_file()]
        return [f"docs/{name} is not what the table and docs/figures/computed.jsonl make; tools/figures makes it anew"
                for name in made
                if not (docs / name).exists() or (docs / name).read_text() != (Path(folder) / name).read_text()]


def main() -> int:
    failed = 0
    checks = (check_mistakes, check_verdicts, check_names, check_damage, check_mutations, check_pages, check_progress, check_record,
              check_groups, check_pages_of_record, check_table)
    for check in checks:
        wrong = check()
        failed += bool(wrong)
        for one in wrong:
            print(f"{check.__name__}: {one}")
    print(f"figures-table: {len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
