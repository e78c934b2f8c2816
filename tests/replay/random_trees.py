#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random trees of switches: what each switch gets, through weir-replay and through the model, every byte and every counter.

    random_trees.py --seeds 1:100            so many trees
    random_trees.py --seeds 7 --keep DIR     one, and keep captures and configurations in DIR

tree_check.py has the trees. Needs build/app/weir-replay. Ends in "random trees: N passed, N failed, N skipped", where all
seeds are one test; status 1 when one failed.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import run as replays
from tree_check import RandomJob


def passes(seed: int, directory: Path) -> bool:
    for case in RandomJob(seed).cases():
        try:
            replays.check_tree(case, directory)
        except (replays.Failed, AssertionError) as problem:
            print(f"  FAILED  {case.name}: {problem}")
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1:60", metavar="FIRST:LAST")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    given = parser.parse_args()
    if not replays.REPLAY.exists():
        sys.exit(f"random trees: there is no {replays.REPLAY}: meson setup build && ninja -C build")
    first, _, last = given.seeds.partition(":")
    seeds = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory(prefix="weir-trees-") as directory:
        failed = sum(not passes(seed, given.keep or Path(directory)) for seed in seeds)
    print(f"{len(seeds)} trees, {failed} of them failed")
    print(f"random trees: {int(failed == 0)} passed, {int(failed > 0)} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
