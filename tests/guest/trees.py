# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with a tree of switches: six guests on two leaves below a spine (docs/protocol.md §11)."""

from __future__ import annotations

from allreduce import WORKER, run_job
from fabric import Setup
from lab import Lab
from rings import ALL
from scenarios import scenario
from switch import Ring

RING = Ring(ALL, 70)
LATE_RING = Ring(ALL, 71)
TREE = Setup(guests=6, rings=(RING, LATE_RING), leaves=2)


def in_tree(lab: Lab, options: str) -> str:
    """A worker checks every element against the fold by leaves."""
    return f"{options} --tree {lab.tree.lists()}"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree(lab: Lab) -> str:
    """Without loss: types whose bits depend on the order; less than a packet, not a whole message."""
    cases = ["--size 256KiB --repeat 2", "--size 4 --type i32 --op max", "--size 65538 --type bf16 --out-of-place",
             "--size 100000 --type f64"]
    seconds = [run_job(lab, in_tree(lab, case)) for case in cases]
    return f"{len(cases)} jobs exact; 2 x 256 KiB of f32 in {seconds[0]:.2f} s"
