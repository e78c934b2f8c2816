#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a job by operators, over a switch: all-reduces and reduce-scatters, and tells whether each is what numpy makes of all ranks' tensors.

`job.py BUILD_DIR RANK WORLD INTERFACE IP RING FALLBACK HOLD TEXT...`: a TEXT is a file. Says "rank R: exact", SHA-256 of all results, and which operators no switch folds by; or
what the library says, or what is wrong. Before it ends it makes a file HOLD.RANK, and waits until there is a file HOLD; "-": not. `--tree [[0,1],2]` says in which order
switches fold; without it, ranks in their order. `--rounds N` repeats all calls with other tensors; `--subnormals` has all f32 below 2^-126.
`--other-code LIBRARY` is tests/smoke/other_code.c: with `--wrong-loops ADDRESS` this rank's loops are wrong, without it it flushes subnormals
while Weir runs."""

from __future__ import annotations

import argparse
import ctypes
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
SHARE = 1000  # elements of a rank's share, which end within a message


def name_of(text: str) -> str:
    return next(line.split()[1] for line in text.splitlines() if line.startswith("name"))


class Flushing(Weir):
    """Called in a thread that flushes subnormals."""

    def __init__(self, build: Path, other: ctypes.CDLL) -> None:
        super().__init__(build)
        self.other = other

    def call(self, name: str, *arguments: object) -> None:
        self.other.flush_subnormals()
        try:
            if np.float32(1e-40) * np.float32(1) != 0:
                raise RuntimeError("subnormals stay")
            super().call(name, *arguments)
        finally:
            self.other.keep_subnormals()


def weir_of(job: argparse.Namespace) -> Weir:
    if not job.other_code:
        return Weir(job.build)
    other = ctypes.CDLL(job.other_code)
    if not job.wrong_loops:
        return Flushing(job.build, other)
    weir = Weir(job.build)
    if not other.wrong_loops(b"libweir.so", c_size_t(int(job.wrong_loops, 16))):
        raise RuntimeError("there is no libweir.so")
    return weir


def tensor_of(size: int, seed: int, job: argparse.Namespace) -> np.ndarray:
    data = np.random.default_rng(seed).integers(0, 256, size).astype(np.uint8)
    if job.subnormals:
        data.view(np.uint32)[:] &= 0x807fffff
    return data


def folded(name: str, tensors: list[np.ndarray], tree: list | int) -> np.ndarray:
    """A tree's leaves are ranks; each list is a switch."""
    if isinstance(tree, int):
        return tensors[tree]
    with np.errstate(all="ignore"):
        return judged(name, [folded(name, tensors, child) for child in tree])


def all_reduce(weir: Weir, group: c_void_p, number: int, name: str, tensors: list[np.ndarray], rank: int, tree: list) -> np.ndarray:
    out = np.zeros(len(tensors[rank]), np.uint8)
    weir.call("weir_all_reduce", group, pointer(tensors[rank]), pointer(out), c_size_t(len(out)), AS_OPERATOR, FIRST_OPERATOR + number)
    return judge(name, out, tensors, tree)


def reduce_scatter(weir: Weir, group: c_void_p, number: int, name: str, shares: list[list[np.ndarray]], rank: int, tree: list) -> np.ndarray:
    """`shares` are by rank that brings them, and by rank that keeps them."""
    brought, out = np.concatenate(shares[rank]), np.zeros(len(shares[rank][rank]), np.uint8)
    weir.call("weir_reduce_scatter", group, pointer(brought), pointer(out), c_size_t(len(out)), AS_OPERATOR, FIRST_OPERATOR + number)
    return judge(f"{name}, reduce-scatter", out, [brings[rank] for brings in shares], tree)


def judge(what: str, out: np.ndarray, tensors: list[np.ndarray], tree: list) -> np.ndarray:
    wrong = np.nonzero(out != folded(what.partition(",")[0], tensors, tree))[0]
    if len(wrong):
        raise RuntimeError(f"{what}: {len(wrong)} of {len(out)} bytes differ, the first at {wrong[0]}")
    return out


def missing_operators(weir: Weir, group: c_void_p) -> str:
    function = weir.library.weir_group_missing_operators
    function.restype = ctypes.c_char_p
    return function(group).decode()


def hold(until: Path, rank: int) -> None:
    until.with_suffix(f".{rank}").touch()
    while not until.exists():
        time.sleep(0.05)


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
            tensors = [tensor_of(size, 1000 * turn + 10 * place + other, job) for other in range(job.world)]
            results.update(all_reduce(weir, group, place, name_of(text), tensors, job.rank, job.tree or list(range(job.world))))
            size = weir.library.weir_operator_bytes(operators[place], c_size_t(SHARE))
            shares = [[tensor_of(size, 1000 * turn + 10 * place + 100 * other + share, job) for share in range(job.world)] for other in range(job.world)]
            reduce_scatter(weir, group, place, name_of(text), shares, job.rank, job.tree or list(range(job.world)))
    print(f"rank {job.rank}: exact {results.hexdigest()}; by hosts: {missing_operators(weir, group)}", flush=True)
    if job.hold != "-":
        hold(Path(job.hold), job.rank)
    weir.library.weir_group_close(group)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in (("build", Path), ("rank", int), ("world", int), ("interface", str), ("ip", str), ("ring", int), ("fallback", int), ("hold", str)):
        parser.add_argument(name, type=kind)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--tree", type=json.loads)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--subnormals", action="store_true")
    parser.add_argument("--other-code")
    parser.add_argument("--wrong-loops")
    job = parser.parse_args()
    try:
        run(weir_of(job), job)
    except RuntimeError as error:
        print(f"rank {job.rank}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
