# SPDX-License-Identifier: BSD-3-Clause
"""Trainings of today's kinds, each beside the same one in a single process with all ranks' data."""
from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import weir_torch
from ranks import RANK, RANKS, check, expect, world

STEPS, BATCH, FEATURES = 3, 4, 8
WORDS = 40


def make_net() -> torch.nn.Module:
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, FEATURES))


def batch(step: int) -> torch.Tensor:
    """Of all ranks."""
    return torch.randn(RANKS * BATCH, FEATURES, generator=torch.Generator().manual_seed(step))


def own_part(points: torch.Tensor) -> torch.Tensor:
    return points[RANK * BATCH:(RANK + 1) * BATCH]


def adam(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01)


def train(net: torch.nn.Module, part: Callable[[torch.Tensor], torch.Tensor],
          optimizer_of: Callable[[torch.nn.Module], torch.optim.Optimizer] = adam) -> None:
    optimizer = optimizer_of(net)
    for step in range(STEPS):
        net(part(batch(step))).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def parameters_without_ranks() -> dict[str, torch.Tensor]:
    net = make_net()
    train(net, lambda points: points)
    return {name: value.detach() for name, value in net.named_parameters()}


def expect_trained(found: dict[str, torch.Tensor], tolerance: float = 1e-5) -> None:
    due = parameters_without_ranks()
    expect({name.removeprefix("module.") for name in found} == set(due), f"{sorted(found)}")
    for name, value in found.items():
        torch.testing.assert_close(value.detach(), due[name.removeprefix("module.")], atol=tolerance, rtol=tolerance)


def expect_same_on_all(net: torch.nn.Module) -> None:
    """To the bit."""
    own = torch.cat([value.detach().flatten() for value in net.parameters()])
    gathered = [torch.empty_like(own) for _ in range(RANKS)]
    dist.all_gather(gathered, own)
    expect(all(torch.equal(own, other) for other in gathered), "the ranks' parameters differ")


def expect_no_gloo(group: dist.ProcessGroup | None = None) -> None:
    counted = (group or world()).statistics()
    expect(counted.calls >= STEPS and counted.gloo_calls == 0, f"{counted}")


@check
def ddp_with_torchs_debug_level_detail() -> None:
    """In which torch wraps its own backends, and looks at each call's tensors first."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        group = dist.new_group()
        net = DistributedDataParallel(make_net(), process_group=group)
        train(net, own_part)
        expect_trained(dict(net.named_parameters()))
        expect_no_gloo(group)
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


@check
def ddp() -> None:
    net = DistributedDataParallel(make_net())
    train(net, own_part)
    expect_no_gloo()
    expect_trained(dict(net.named_parameters()))
    expect_same_on_all(net)


def ddp_with(hook: Callable[..., object], state: object, tolerance: float) -> None:
    net = DistributedDataParallel(make_net())
    net.register_comm_hook(state, hook)
    train(net, own_part)
    expect_no_gloo()
    expect_same_on_all(net)
    expect_trained(dict(net.named_parameters()), tolerance)


@check
def ddp_with_gradients_of_half_precision() -> None:
    ddp_with(default_hooks.fp16_compress_hook, None, 2e-2)


@check
def ddp_with_gradients_of_bf16() -> None:
    """PyTorch refuses this hook by its name without NCCL, so it comes by another."""
    ddp_with(lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket), None, 3e-2)


@check
def ddp_with_powersgd() -> None:
    """From the second step on the gradients are approximated, so their sum is another one."""
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=8, start_powerSGD_iter=2, min_compression_rate=0.5)
    ddp_with(powerSGD_hook.powerSGD_hook, state, 6e-2)


@check
def ddp_compiled() -> None:
    net = DistributedDataParallel(make_net())
    train(torch.compile(net, backend="aot_eager"), own_part)
    expect_no_gloo()
    expect_trained(dict(net.named_parameters()))


@check
def ddp_with_buckets_without_synchronization() -> None:
    """Two half batches: the gradients of the first wait for the second."""
    net = DistributedDataParallel(make_net(), bucket_cap_mb=0.0002)
    optimizer = adam(net)
    for step in range(STEPS):
        first, second = own_part(batch(step)).chunk(2)
        with net.no_sync():
            (net(first).square().mean() / 2).backward()
        (net(second).square().mean() / 2).backward()
        optimizer.step()
        optimizer.zero_grad()
    expect_trained(dict(net.named_parameters()))


class Words(torch.nn.Module):
    """Points whose features are numbers of words."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.vectors = torch.nn.Embedding(WORDS, FEATURES, sparse=True)
        self.out = torch.nn.Linear(FEATURES, 1)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.out(self.vectors(points.abs().mul(10).long() % WORDS).mean(1))


def train_words(net: torch.nn.Module, part: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, torch.Tensor]:
    """SparseAdam changes the vectors of words that are in a gradient, also those whose gradient is 0."""
    vectors, *others = net.parameters()
    optimizers = torch.optim.SparseAdam([vectors], lr=0.01), torch.optim.Adam(others, lr=0.01)
    for step in range(STEPS):
        net(part(batch(step))).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return {name.removeprefix("module."): value.detach() for name, value in net.named_parameters()}


@check
def ddp_with_sparse_gradients() -> None:
    net = DistributedDataParallel(Words())
    found = train_words(net, own_part)
    expect_no_gloo()
    expect_same_on_all(net)
    for name, due in train_words(Words(), lambda points: points).items():
        torch.testing.assert_close(found[name], due, atol=1e-5, rtol=1e-5)


@check
def ddp_of_nets_that_differ() -> None:
    """A rank whose gradients have other shapes ends the training on all, by an error that names who called what."""
    net = make_net() if RANK else torch.nn.Linear(FEATURES, 2)
    net(own_part(batch(0))).sum().backward()
    try:
        for value in net.parameters():
            dist.all_reduce(value.grad)
        raise AssertionError("found no error")
    except weir_torch.WeirError as error:
        expect(error.status == "mismatch" and "rank 0 calls all-reduce of 16 f32" in str(error), f"{error}")


@check
def zero_redundancy_optimizer() -> None:
    net = DistributedDataParallel(make_net())
    train(net, own_part, lambda net: ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.01))
    expect_no_gloo()
    expect_trained(dict(net.named_parameters()))
    expect_same_on_all(net)


def whole(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.full_tensor() for name, value in net.named_parameters()}


@check
def fsdp_of_torch_1() -> None:
    net = FullyShardedDataParallel(make_net(), device_id=torch.device("cpu"), use_orig_params=True)
    train(net, own_part)
    expect_no_gloo()
    with FullyShardedDataParallel.summon_full_params(net):
        expect_trained({name: value.clone() for name, value in net.module.named_parameters()})


@check
def fsdp_and_its_checkpoint() -> None:
    """fully_shard, and torch.distributed.checkpoint: what is saved in shards is loaded into a net of other values."""
    mesh = init_device_mesh("cpu", (RANKS,))
    net = make_net()
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, own_part)
    expect_no_gloo(mesh.get_group())
    expect_trained(whole(net))
    folder = Path(os.environ["TEMP_DIR"]) / "checkpoint"
    checkpoint.save({"net": get_model_state_dict(net)}, checkpoint_id=folder)
    other = copy.deepcopy(make_net())
    fully_shard(other, mesh=mesh)
    loaded = {"net": get_model_state_dict(other)}
    checkpoint.load(loaded, checkpoint_id=folder)
    set_model_state_dict(other, loaded["net"])
    expect_trained(whole(other))


@check
def fsdp_of_two_dimensions() -> None:
    """Shards within each row of the mesh, copies along its columns."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
    net = make_net()
    fully_shard(net, mesh=mesh)
    train(net, own_part)
    for name in mesh.mesh_dim_names:
        expect_no_gloo(mesh.get_group(name))
    expect_trained(whole(net))
