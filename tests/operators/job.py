#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a job by operators, over a switch: all-reduces, and tells whether each is what numpy makes of all ranks' tensors.

`job.py BUILD_DIR RANK WORLD INTERFACE IP RING FALLBACK HOLD TEXT...`: a TEXT is a file. Says "rank R: exact", and SHA-256 of all results, or
what the library says, or what is wrong. Before it ends it waits until there is a file HOLD; "-": not. `--tree [[0,1],2]` says in which order
switches fold; without it, ranks in their order. `--rounds N` repeats all calls with other tensors."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from ctypes import c_size_t, c_void_p
from pathlib import Path

import numpy as np

from judges import JUDGES
from ranks import AS_OPERATOR, FIRST_OPERATOR, Weir, judged, pointer

ELEMENTS = 6000


def name_of(text: str) -> str:
    return next(line.split()[1] for line in text.splitlines() if line.startswith("name"))


def folded(name: str, tensors: list[np.ndarray], tree: list | int) -> np.ndarray:
    """A tree's leaves are ranks; each list is a switch."""
    if isinstance(tree, int):
        return tensors[tree]
    with np.errstate(all="ignore"):
        return judged(name, [folded(name, tensors, child) for child in tree])


def all_reduce(weir: Weir, group: c_void_p, number: int, name: str, tensors: list[np.ndarray], rank: int, tree: list) -> np.ndarray:
    out = np.zeros(len(tensors[rank]), np.uint8)
    weir.call("weir_all_reduce", group, pointer(tensors[rank]), pointer(out), c_size_t(len(out)), AS_OPERATOR, FIRST_OPERATOR + number)
    wrong = np.nonzero(out != folded(name, tensors, tree))[0]
    if len(wrong):
        raise RuntimeError(f"{name}: {len(wrong)} of {len(out)} bytes differ, the first at {wrong[0]}")
    return out


def run(weir: Weir, job: argparse.Namespace) -> None:
    texts = [Path(file).read_text() for file in job.texts]
    operators = [weir.load(text) for text in texts]
    group = weir.group(job.rank, operators, job.world, job.interface, job.ip, job.ring, job.fallback)
    results = hashlib.sha256()
    for turn in range(job.rounds):
        for place, text in enumerate(texts):
            if name_of(text) not in JUDGES:
                raise RuntimeError(f"{name_of(text)}: nobody judges it")
            size = weir.library.weir_operator_bytes(operators[place], c_size_t(ELEMENTS))
            tensors = [np.random.default_rng(1000 * turn + 10 * place + other).integers(0, 256, size).astype(np.uint8) for other in range(job.world)]
            results.update(all_reduce(weir, group, place, name_of(text), tensors, job.rank, job.tree or list(range(job.world))))
    print(f"rank {job.rank}: exact {results.hexdigest()}", flush=True)
    while job.hold != "-" and not Path(job.hold).exists():
        time.sleep(0.05)
    weir.library.weir_group_close(group)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in (("build", Path), ("rank", int), ("world", int), ("interface", str), ("ip", str), ("ring", int), ("fallback", int), ("hold", str)):
        parser.add_argument(name, type=kind)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--tree", type=json.loads)
    parser.add_argument("--rounds", type=int, default=1)
    job = parser.parse_args()
    try:
        run(Weir(job.build), job)
    except RuntimeError as error:
        print(f"rank {job.rank}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
