#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random trees of switches: what each switch gets, through weir-replay and through the model, every byte and every counter.

    random_trees.py --seeds 1:100            so many trees
    random_trees.py --seeds 7 --keep DIR     one, and keep captures and configurations in DIR

tree_check.py has the trees. Needs build/app/weir-replay. Ends in "random trees: N passed, N failed, N skipped", where all
seeds are one test; status 1 when one failed.
"""
from __future__ import annotations

import sys
from pathlib import Path

import run as replays
from seeds import try_seeds
from tree_check import RandomJob


def passes(seed: int, directory: Path) -> bool:
    tried = f"seed {seed}"
    try:
        for case in RandomJob(seed).cases():
            tried = case.name
            replays.check_tree(case, directory)
    except (replays.Failed, AssertionError) as problem:
        print(f"  FAILED  {tried}: {problem}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(try_seeds(__doc__, "trees", 16, passes))
