#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a training with DistributedDataParallel over Weir, or over Gloo for comparison.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are as torchrun sets them; WEIR_DEVICE and the like as docs/pytorch.md says.
Rank 0 prints the loss, and at the end every rank a line of JSON. The same ranks, seeds and steps give the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import weir_torch

FEATURES, HIDDEN, CLASSES, BATCH = 32, 512, 10, 64
BUCKET_MB = 0.25  # several buckets even for this small net, after a first one of 1 MB
PAUSE_S = 0.03


def make_net() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN),
                               torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))


class Batches:
    """Points and the classes that a fixed random map gives them; every rank has points of its own."""

    def __init__(self, rank: int) -> None:
        self._map = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(2))
        self._points = torch.Generator().manual_seed(100 + rank)

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        points = torch.randn(BATCH, FEATURES, generator=self._points)
        return points, (points @ self._map).argmax(dim=1)


def mean_of_ranks(value: torch.Tensor) -> float:
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train(net: torch.nn.Module, steps: int, is_straggler: bool) -> list[float]:
    """Returns the loss of each step. A straggler pauses now and then, differently in each run."""
    batches = Batches(dist.get_rank())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(1, steps + 1):
        if is_straggler and random.random() < 0.2:
            time.sleep(random.uniform(0, PAUSE_S))
        points, classes = batches.next()
        loss = torch.nn.functional.cross_entropy(net(points), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(mean_of_ranks(loss))
        if dist.get_rank() == 0:
            print(f"step {step} of {steps}: loss {losses[-1]:.4f}", flush=True)
    return losses


def hash_of(net: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for parameter in net.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def weir_report(group: dist.ProcessGroup) -> dict[str, object]:
    if not isinstance(group, weir_torch.ProcessGroupWeir):
        return {}
    return {"algorithm": group.algorithm, **vars(group.statistics()), **group.transport_statistics()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="weir", choices=["weir", "gloo"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--straggler", type=int, help="the rank that pauses now and then (default: none)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    net = DistributedDataParallel(make_net(), bucket_cap_mb=BUCKET_MB)
    dist.barrier()
    started = time.monotonic()
    losses = train(net, options.steps, is_straggler=dist.get_rank() == options.straggler)
    dist.barrier()
    print(json.dumps({"rank": dist.get_rank(), "training_seconds": time.monotonic() - started, "losses": losses,
                      "parameters": hash_of(net), **weir_report(dist.distributed_c10d._get_default_group())}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
