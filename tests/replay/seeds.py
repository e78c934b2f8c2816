# SPDX-License-Identifier: BSD-3-Clause
"""A program that tries one seed after the other, and tells how many failed."""
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Callable

import run as replays


def try_seeds(description: str | None, things: str, most: int, passes: Callable[[int, Path], bool]) -> int:
    """Its exit status. `things` are what a seed makes one of; without `--seeds` it is 1 to `most`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=f"1:{most}", metavar="FIRST:LAST")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    given = parser.parse_args()
    if not replays.REPLAY.exists():
        sys.exit(f"random {things}: there is no {replays.REPLAY}: meson setup build && ninja -C build")
    first, _, last = given.seeds.partition(":")
    seeds = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory(prefix="weir-random-") as directory:
        failed = sum(not passes(seed, given.keep or Path(directory)) for seed in seeds)
    print(f"{len(seeds)} {things}, {failed} of them failed")
    print(f"random {things}: {int(failed == 0)} passed, {int(failed > 0)} failed, 0 skipped")
    return int(failed > 0)
