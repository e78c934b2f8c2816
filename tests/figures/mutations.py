# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes made on purpose: for each family of figures, a slower link and a later step must turn verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations import INSIDE, Paper
from verdicts import verdict_on

if TYPE_CHECKING:
    from run import Program


@dataclass(frozen=True)
class Mutation:
    family: str
    name: str  # as figures_main knows it
    ids: tuple[str, ...]  # the figures that must notice


MUTATIONS = (
    Mutation("AS", "link-slower", ("AS1", "AS2")),
    Mutation("AS", "step-later", ("AS1",)),
    Mutation("NR", "link-slower", ("NR1", "NR6")),
    Mutation("NR", "step-later", ("NR1",)),
    Mutation("MT", "link-slower", ("MTC", "MTO1", "MTO5")),
    Mutation("MT", "step-later", ("MTC",)),
    Mutation("KL", "link-slower", ("KL1", "KL2", "KL5", "KL7")),
    Mutation("KL", "step-later", ("KL1", "KL2", "KL7", "KL8")),
    Mutation("FL", "link-slower", ("FL7",)),
    Mutation("FL", "step-later", ("FL1",)),
    Mutation("PL", "link-slower", ("PL1", "PL5")),
)


def turned(program: Program, papers: list[Paper], mutation: Mutation) -> dict[str, list[str]]:
    """For each figure the values that were inside and no longer are."""
    figures = {figure.id: figure for paper in papers for figure in paper.figures}
    return {computed["figure"]: [check.value for check in figures[computed["figure"]].checks
                                 if check.verdict == INSIDE and check.value in computed["values"]
                                 and verdict_on(check, computed["values"][check.value]) != INSIDE]
            for computed in program.compute(list(mutation.ids), mutation.name)}


def unnoticed(program: Program, papers: list[Paper], mutation: Mutation) -> list[str]:
    """A complaint for each figure whose verdicts the mutation leaves as they are."""
    return [f"{mutation.family}: {mutation.name} turns no verdict of {name}"
            for name, values in turned(program, papers, mutation).items() if not values]
