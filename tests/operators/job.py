#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a job by operators, over a switch: all-reduces, and tells whether each is what numpy makes of all ranks' tensors.

`job.py BUILD_DIR RANK WORLD INTERFACE IP RING FALLBACK HOLD TEXT...`: a TEXT is a file. Says "rank R: exact", what the library says, or what is
wrong. Before it ends it waits until there is a file HOLD; "-": not."""

from __future__ import annotations

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


def all_reduce(weir: Weir, group: c_void_p, number: int, name: str, tensors: list[np.ndarray], rank: int) -> None:
    out = np.zeros(len(tensors[rank]), np.uint8)
    weir.call("weir_all_reduce", group, pointer(tensors[rank]), pointer(out), c_size_t(len(out)), AS_OPERATOR, FIRST_OPERATOR + number)
    with np.errstate(all="ignore"):
        wrong = np.nonzero(out != judged(name, tensors))[0]
    if len(wrong):
        raise RuntimeError(f"{name}: {len(wrong)} of {len(out)} bytes differ, the first at {wrong[0]}")


def main() -> int:
    build, rank, world, interface, ip, ring, fallback, hold, *files = sys.argv[1:]
    weir = Weir(Path(build))
    try:
        texts = [Path(file).read_text() for file in files]
        operators = [weir.load(text) for text in texts]
        group = weir.group(int(rank), operators, int(world), interface, ip, int(ring), int(fallback))
        for place, text in enumerate(texts):
            if name_of(text) not in JUDGES:
                raise RuntimeError(f"{name_of(text)}: nobody judges it")
            size = weir.library.weir_operator_bytes(operators[place], c_size_t(ELEMENTS))
            tensors = [np.random.default_rng(10 * place + other).integers(0, 256, size).astype(np.uint8) for other in range(int(world))]
            all_reduce(weir, group, place, name_of(text), tensors, int(rank))
        print(f"rank {rank}: exact", flush=True)
        while hold != "-" and not Path(hold).exists():
            time.sleep(0.05)
        weir.library.weir_group_close(group)
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
