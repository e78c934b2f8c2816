#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a small transformer that learns to write a text, letter by letter; tools/demo --training --compare starts it.

RANK and the like are as torchrun sets them. `--by` says who adds up the gradients: weir, gloo, openmpi, or alone: nobody, which
is what computing costs. Rank 0's last line is JSON: seconds since the start, the ranks' mean loss, and bytes sent, at the end of each step.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

LETTERS, WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 128, 128, 4, 2, 32, 2
BUCKET_MB = 0.5
WARM_UP = 2  # steps that are not told: the first ones make buckets and connections


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = torch.nn.Embedding(LETTERS, WIDTH)
        self.places = torch.nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS)
        self.output = torch.nn.Linear(WIDTH, LETTERS)
        self.register_buffer("later", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.output(self.layers(self.letters(text) + self.places, self.later))


class Batches:
    """Places in the text, each rank's own, drawn alike in each run."""

    def __init__(self, text: bytes, rank: int) -> None:
        self._text = torch.tensor([min(letter, LETTERS - 1) for letter in text])
        self._places = torch.Generator().manual_seed(rank)

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        begins = torch.randint(len(self._text) - CONTEXT, (BATCH,), generator=self._places)
        both = torch.stack([self._text[begin:begin + CONTEXT + 1] for begin in begins])
        return both[:, :-1], both[:, 1:]


class OpenMpi:
    """All-reduces of DistributedDataParallel's buckets by a thread, one after the other, while the backward pass goes on."""

    def __init__(self) -> None:
        from mpi4py import MPI
        self._mpi, self._ranks = MPI, MPI.COMM_WORLD.size
        self._due: SimpleQueue[tuple[torch.Tensor, torch.futures.Future]] = SimpleQueue()
        Thread(target=self._add_up, daemon=True).start()

    def hook(self, _, bucket):  # noqa: ANN001, ANN201 (torch refuses annotations that are texts)
        future = torch.futures.Future()
        self._due.put((bucket.buffer(), future))
        return future

    def _add_up(self) -> None:
        while True:
            gradients, future = self._due.get()
            self._mpi.COMM_WORLD.Allreduce(self._mpi.IN_PLACE, gradients.numpy())
            future.set_result(gradients.div_(self._ranks))

    def mean(self, value: float) -> float:
        return self._mpi.COMM_WORLD.allreduce(value) / self._ranks

    def end(self) -> None:
        """mpirun takes a process that goes without for one that has failed."""
        self._mpi.Finalize()


def mean_of_ranks(value: float) -> float:
    total = torch.tensor([value])
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def sent_bytes() -> int:
    """Of frames, by this rank's interface, since it was made."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("host"))
    return int(line.split(":")[1].split()[8])


def train(net: torch.nn.Module, steps: int, batches: Batches, mean: Callable[[float], float], unsynchronized: Any) -> list[list[float]]:
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    told: list[list[float]] = []
    for step in range(-WARM_UP, steps):
        if step == 0:
            started, sent = time.monotonic(), sent_bytes()
        given, due = batches.next()
        with unsynchronized():
            loss = torch.nn.functional.cross_entropy(net(given).flatten(0, 1), due.flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        all_loss = mean(loss.item())
        if step >= 0:
            told.append([time.monotonic() - started, all_loss, sent_bytes() - sent])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=["weir", "gloo", "openmpi", "alone"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("text", nargs="+", type=Path, help="files")
    options = parser.parse_args()
    os.environ.setdefault("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", ""))
    if options.by == "weir":
        import weir_torch  # noqa: F401 (it makes itself known to torch)
    else:
        os.environ["GLOO_SOCKET_IFNAME"] = f"host{os.environ['RANK']}"  # by itself it takes the address of the host's name
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("weir" if options.by == "weir" else "gloo")
    net = DistributedDataParallel(Transformer(), bucket_cap_mb=BUCKET_MB)
    mean = mean_of_ranks
    if options.by == "openmpi":
        rival = OpenMpi()
        net.register_comm_hook(None, rival.hook)
        mean = rival.mean
    batches = Batches(b"".join(file.read_bytes() for file in options.text), dist.get_rank())
    told = train(net, options.steps, batches, mean if options.by != "alone" else float,
                 net.no_sync if options.by == "alone" else nullcontext)
    if dist.get_rank() == 0:
        print(json.dumps({"steps": told, "gradient_bytes": 4 * sum(value.numel() for value in net.parameters())}), flush=True)
    dist.barrier()
    if options.by == "openmpi":
        rival.end()
    os._exit(0)  # Gloo's threads may wait for Python's lock at the end (PyTorch's issue 56297)


if __name__ == "__main__":
    main()
