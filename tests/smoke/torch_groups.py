# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that form a group of all and a group for each half. One rank is killed: its half and the group of all
end, the other half goes on. Ends with "torch_groups: exact" and status 0, except for the rank that is killed. With
$WEIR_SWITCH no group names a ring."""
from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Optional

import torch
import torch.distributed as dist

import weir_torch

HALVES = {8: (0, 2), 9: (1, 3)}  # by ring, as in test_torch.py
RANKS, VICTIM = 4, 3
CALLS = 50
# Of each group. Torch's own would outlast the test, and nobody would say for whom a rank waits.
TIMEOUT = timedelta(seconds=30)
MAKES_RINGS = "WEIR_SWITCH" in os.environ


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"torch_groups: rank {dist.get_rank()}: {otherwise}")


def reduce_in(half: dist.ProcessGroup, ranks: tuple[int, ...]) -> None:
    total = torch.full((1000,), dist.get_rank())
    dist.all_reduce(total, group=half)
    expect(torch.equal(total, torch.full((1000,), sum(ranks))), f"found {total[:8]} from ranks {ranks}")


def expect_death(group: dist.ProcessGroup, victim: int) -> None:
    try:
        for _ in range(2):  # the first may have been over before the rank was
            group.barrier().wait()
        expect(False, "the group goes on without a rank")
    except weir_torch.WeirError as error:
        expect(error.status == "peer_died" and error.rank == victim, f"{error}, rank {error.rank}")


def options_with(ring: int) -> Optional[weir_torch.Options]:
    if MAKES_RINGS:
        return None
    return weir_torch.Options(device=os.environ["WEIR_DEVICE"], ip=os.environ["WEIR_IP"], rings=(ring,), window=8)


def main() -> None:
    torch.set_num_threads(1)
    if MAKES_RINGS:
        os.environ["WEIR_RINGS"] = "offered"
    dist.init_process_group("weir", timeout=TIMEOUT)
    rank = dist.get_rank()
    for ring, ranks in HALVES.items():
        group = dist.new_group(ranks, timeout=TIMEOUT, pg_options=options_with(ring))
        if rank in ranks:
            half, own_ranks = group, ranks
    expect(half.algorithm == "switch", f"{half.algorithm}: {own_ranks}")
    for _ in range(CALLS):
        reduce_in(half, own_ranks)
    dist.barrier()
    if rank == VICTIM:
        for other in {*range(RANKS)} - {VICTIM}:
            dist.recv(torch.zeros(1), src=other)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.send(torch.zeros(1), dst=VICTIM)  # by Gloo: no call of Weir is under way any more
    expect_death(dist.distributed_c10d._get_default_group(), VICTIM)
    if VICTIM in own_ranks:
        expect_death(half, own_ranks.index(VICTIM))
    else:
        for _ in range(CALLS):
            reduce_in(half, own_ranks)
    print("torch_groups: exact", flush=True)


main()
