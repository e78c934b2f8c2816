# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors of four ranks, and what Gloo makes of them, for any PyTorch. Values are whole and small, so that no type rounds a
sum; some are 0, and some sums are."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist

import weir_torch

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64)
NOT_ADDED = (torch.float16, torch.bfloat16)  # by each version of torch, whose sums of sparse tensors Gloo has
RANKS = 4


@dataclass(frozen=True)
class Case:
    shape: tuple[int, ...]
    sparse_dim: int
    counts: tuple[int, ...]  # of values, by rank
    dtype: torch.dtype = torch.float32

    def of(self, rank: int) -> torch.Tensor:
        """Places come several times, in any order."""
        drawn = torch.Generator().manual_seed(rank)
        count = self.counts[rank]
        places = [torch.randint(max(size, 1), (count,), generator=drawn) for size in self.shape[:self.sparse_dim]]
        values = torch.randint(4, (count, *self.shape[self.sparse_dim:]), generator=drawn)
        return torch.sparse_coo_tensor(torch.stack(places), (values - 1 if self.dtype.is_signed else values).to(self.dtype), self.shape)

    def total(self) -> torch.Tensor:
        return sum(self.of(rank).to_dense() for rank in range(RANKS))


CASES = [
    *(Case((40, 3), 1, (7, 0, 30, 1), dtype) for dtype in TYPES),
    Case((100,), 1, (0, 10, 50, 3)),
    Case((7, 9), 2, (5, 0, 40, 2)),
    Case((5, 4, 6), 3, (50, 1, 0, 9)),
    Case((5, 4, 6), 2, (0, 3, 20, 1)),
    Case((6, 3, 5), 1, (1, 2, 3, 4)),
    Case((3, 4, 5, 2, 2, 3), 3, (3, 0, 100, 7)),
    Case((50, 8), 1, (0, 0, 0, 0)),
    Case((50, 8), 1, (0, 0, 0, 1)),
    Case((0, 8), 1, (0, 0, 0, 0)),
    Case((100_000, 16), 1, (0, 10, 3000, 500)),
    Case((4000, 4000), 2, (300, 0, 1, 2000)),
    Case((3, 2**16 - 1), 1, (1, 0, 2, 1)),
    # To send all places would take fewer bytes than to tell which there are.
    Case((1,), 1, (0, 1, 0, 0)),
    Case((2,), 1, (0, 0, 1, 0)),
    Case((200,), 1, (400, 400, 400, 400)),
    Case((200,), 1, (400, 400, 400, 400), torch.uint8),
    Case((50, 3), 1, (400, 400, 400, 400), torch.int8),
]


def without_the_last_place(dtype: torch.dtype) -> torch.Tensor:
    """On all ranks, which have all others."""
    return torch.sparse_coo_tensor(torch.arange(999).unsqueeze(0), torch.ones(999).to(dtype), (1000,))


def cases(rank: int) -> Iterator[torch.Tensor]:
    yield from (case.of(rank) for case in CASES)
    yield from (without_the_last_place(dtype) for dtype in TYPES)


def by_gloo(group: weir_torch.ProcessGroupWeir, tensor: torch.Tensor) -> torch.Tensor:
    """The sum of the group's ranks. No type rounds it, so another one may have it."""
    result = tensor.to(torch.float32) if tensor.dtype in NOT_ADDED else tensor.clone()
    group._gloo.call("allreduce", [result], dist.AllreduceOptions()).wait()
    return result.to(tensor.dtype)


def gradient_of_words(rank: int, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """By DistributedDataParallel: each rank has a word of its own twice, and shares one."""
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(10, 3, sparse=True), process_group=group)
    net(torch.tensor([9, rank, rank])).sum().backward()
    return net.module.weight.grad


def difference(found: torch.Tensor, due: torch.Tensor) -> str:
    """"": there is none, in any respect."""
    for name in ("layout", "dtype", "shape"):
        if getattr(found, name) != getattr(due, name):
            return f"{name}: found {getattr(found, name)}, should be {getattr(due, name)}"
    if not (found.is_coalesced() and due.is_coalesced()):
        return f"coalesced: found {found.is_coalesced()}, should be {due.is_coalesced()}"
    if not torch.equal(found._indices(), due._indices()):
        return f"indices: found {found._indices()}, should be {due._indices()}"
    return "" if torch.equal(found._values(), due._values()) else f"values: found {found._values()}, should be {due._values()}"
