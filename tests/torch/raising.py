# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that train. Rank 2 raises an error that nobody catches. The others print theirs, and at once form a group of
three, which trains on. They end with "raising: exact"."""
from __future__ import annotations

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import weir_torch  # noqa: F401 (makes the backend known)

RANK, RANKS, VICTIM = int(os.environ["RANK"]), 4, 2
STEPS = 5  # before the error, and after it
TIMEOUT = timedelta(seconds=30)
LONGEST_S = 10.0  # until all have heard of it, and the new group works: much less than the limit


def train(until: int) -> None:
    """Without DistributedDataParallel, which takes seconds to import."""
    net = torch.nn.Linear(8, 8)
    for step in range(1, until + 1):
        if RANK == VICTIM and step == STEPS:
            raise ValueError(f"no data for step {step}")
        net(torch.ones(1, 8)).sum().backward()
        dist.all_reduce(net.weight.grad)


def main() -> None:
    torch.set_num_threads(1)
    os.environ.pop("WEIR_RINGS")  # the switch makes them
    dist.init_process_group("weir", timeout=TIMEOUT)
    store = dist.distributed_c10d._get_default_store()
    try:
        train(1000 * STEPS)
        raise SystemExit("raising: nobody raised")
    except RuntimeError as error:
        heard = time.monotonic()
        print(f"raising: heard: {error}", flush=True)
    dist.destroy_process_group()
    dist.init_process_group("weir", store=dist.PrefixStore("rest", store), rank=RANK - (RANK > VICTIM), world_size=RANKS - 1,
                            timeout=TIMEOUT)
    train(STEPS)
    total = torch.tensor([RANK])
    dist.all_reduce(total)
    algorithm, took = dist.distributed_c10d._get_default_group().algorithm, time.monotonic() - heard
    if total.item() != sum(range(RANKS)) - VICTIM or algorithm != "switch" or took > LONGEST_S:
        raise SystemExit(f"raising: found {total.item()} by {algorithm} after {took:.1f} s")
    dist.destroy_process_group()
    print("raising: exact", flush=True)


main()
