#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the graph of stages (lib/datapath/stage/graph.hpp) with the packets' ways, and the pages with the graph.

    tests/graph/run.py            checks
    tests/graph/run.py --write    writes README.md's picture and docs/drops.md's stages

Captures, a seed campaign and the test of the L2 fast path run through the stages, built so that they count each edge and
each shortcut. One that no packet takes fails, and so does a drop that the stage does not declare. (An edge that is used
and not declared does not compile.) Needs build/. Ends in "graph: N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "build" / "tests" / "graph"
RUNS = [[str(ROOT / "tests/replay/run.py"), "--unjudged"],  # the stage `replay` judges them
        [str(BUILT / "fabric_watched"), "--seeds", "1:1500", "--jobs", "2"],
        [str(BUILT / "l2_fast_path_watched")],  # only lcores have this path
        [str(BUILT / "region_watched"), "--gtest_filter=-*Bad*"],
        [str(BUILT / "tree_watched")]]

Rows = list[dict[str, Any]]


@dataclass
class Graph:
    stages: Rows
    shortcuts: Rows


def declared() -> Graph:
    return Graph(**json.loads(subprocess.run([BUILT / "print_graph"], check=True, capture_output=True, text=True).stdout))


def seen() -> dict[str, Counter]:
    """How often each edge and each shortcut was taken, and each reason counted by each stage."""
    crossings: dict[str, Counter] = {"edge": Counter(), "drop": Counter(), "shortcut": Counter()}
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        for command in RUNS:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                           env=os.environ | {"WEIR_GRAPH": str(counts), "WEIR_REPLAY": str(BUILT / "replay_watched")})
        for kind, place, name, count in map(str.split, counts.read_text().splitlines()):
            crossings[kind][place, name] += int(count)
    return crossings


def check_edges(graph: Graph, edges: Counter) -> list[str]:
    wanted = {(row["name"], to) for row in graph.stages for to in row["next"]}
    return [f"no packet goes from {a} to {b}, which the graph declares" for a, b in sorted(wanted - set(edges))] + \
           [f"packets go from {a} to {b}, which the graph does not declare" for a, b in sorted(set(edges) - wanted)]


def check_shortcuts(graph: Graph, shortcuts: Counter) -> list[str]:
    return [f"no packet takes {row['name']} to {row['to']}, which the graph declares" for row in graph.shortcuts
            if (row["name"], row["to"]) not in shortcuts]


def check_drops(graph: Graph, drops: Counter) -> list[str]:
    wanted = {(row["name"], reason) for row in graph.stages for reason in row["drops"]}
    return [f"{stage} drops under {reason}, which its row does not declare" for stage, reason in sorted(set(drops) - wanted)]


def check_every_reason_has_a_stage(graph: Graph) -> list[str]:
    header = (ROOT / "include/weir/reasons.hpp").read_text().split("WEIR_FOREIGN_REASONS")[0]
    known = {reason for row in graph.stages for reason in row["drops"]}
    return [f"no stage declares the drop reason {reason}" for reason in re.findall(r"X\((\w+),", header) if reason not in known]


def check_files(graph: Graph) -> list[str]:
    return [f"{row['name']} names lib/datapath/{row['file']}, which is not there" for row in [*graph.stages, *graph.shortcuts]
            if not (ROOT / "lib" / "datapath" / row["file"]).exists()]


def picture(graph: Graph) -> str:
    """The graph for README.md: a picture, then a table of files."""
    nodes = [f"  {row['name']}[\"{row['name']}<br/><i>{row['file']}</i>\"]" for row in graph.stages]
    arrows = [f"  {row['name']} --> {to}" for row in graph.stages for to in row["next"]]
    dashed = [f"  {row['from']} -. {row['name']} .-> {row['to']}" for row in graph.shortcuts]
    table = [f"| {row['name']} | [`lib/datapath/{row['file']}`](lib/datapath/{row['file']}) | {row['about']} | "
             f"{', '.join(row['next']) or 'the link'} | {len(row['drops']) or ''} |" for row in graph.stages]
    return "\n".join(["```mermaid", "flowchart LR", "  port([port]) --> receive", *nodes, *arrows, *dashed,
                      "  transmit --> out([port])", "```", "",
                      "| stage | file | what it does | hands on to | reasons to drop |", "|---|---|---|---|---|", *table])


def with_picture(page: str, graph: Graph) -> str:
    return re.sub(r"(<!-- graph -->\n).*?(\n<!-- end of graph -->)", lambda m: m[1] + picture(graph) + m[2], page,
                  flags=re.DOTALL)


def with_stages(page: str, graph: Graph) -> str:
    """docs/drops.md with each drop reason's stages in its second column."""
    stages = {reason: ", ".join(row["name"] for row in graph.stages if reason in row["drops"])
              for row in graph.stages for reason in row["drops"]}

    def line_of(match: re.Match[str]) -> str:
        return f"| `{match[1]}` | {stages[match[1]]} |" if match[1] in stages else match[0]

    return re.sub(r"^\| `(\w+)` \| ([a-z, ?]*) \|(?=[^|]*\|[^|]*\|$)", line_of, page, flags=re.MULTILINE)


PAGES = {"README.md": with_picture, "docs/drops.md": with_stages}


def check_pages(graph: Graph) -> list[str]:
    return [f"{name} is not what the graph says: tests/graph/run.py --write" for name, made in PAGES.items()
            if made((ROOT / name).read_text(), graph) != (ROOT / name).read_text()]


def write_pages(graph: Graph) -> None:
    for name, made in PAGES.items():
        page = ROOT / name
        page.write_text(made(page.read_text(), graph))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the pages that show the graph")
    graph = declared()
    if parser.parse_args().write:
        write_pages(graph)
        return 0
    crossings = seen()
    found = [check_edges(graph, crossings["edge"]), check_shortcuts(graph, crossings["shortcut"]),
             check_drops(graph, crossings["drop"]), check_every_reason_has_a_stage(graph),
             check_files(graph), check_pages(graph)]
    for mistake in [mistake for mistakes in found for mistake in mistakes]:
        print(mistake)
    failed = sum(map(bool, found))
    for (a, b), count in sorted((crossings["edge"] + crossings["shortcut"]).items()):
        print(f"{a:>12} -> {b:<10} {count}")
    print(f"graph: {len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
