# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch 2 makes of a backend's calls: functional collectives, meshes, DTensor, coalescing, objects; and groups' ends."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.autograd.profiler import record_function
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader

import weir_torch
from ranks import RANK, RANKS, check, expect, world
from weir_torch.callbacks import Callbacks

SHORT = timedelta(milliseconds=200)


def expect_equal(found: torch.Tensor, due: torch.Tensor, what: str) -> None:
    expect(torch.equal(found, due), f"{what}: found {found}, should be {due}")


@contextmanager
def counted(weir: int, gloo: int = 0, group: weir_torch.ProcessGroupWeir | None = None) -> Iterator[None]:
    """So many calls of each way are made."""
    group = group or world()
    before = group.statistics()
    yield
    after = group.statistics()
    made = after.calls - before.calls, after.gloo_calls - before.gloo_calls
    expect(made == (weir, gloo), f"found {made} calls through the switch and by Gloo; should be {(weir, gloo)}")


def error_of(call: object) -> Exception:
    try:
        call()
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("found no error")


@check
def the_switch_reduces() -> None:
    expect(world().algorithm == "switch", world().algorithm)
    expect(dist.get_backend() == "weir", dist.get_backend())


@check
def functional_collectives() -> None:
    own = torch.arange(4.0) + 10 * RANK
    rows = torch.stack([torch.arange(4.0) + 10 * rank for rank in range(RANKS)])
    everybody = dist.group.WORLD
    with counted(weir=7, gloo=1):
        expect_equal(functional.all_reduce(own, "sum", everybody).wait(), rows.sum(0), "all_reduce")
        expect_equal(functional.all_gather_tensor(own, 0, everybody).wait(), rows.flatten(), "all_gather_tensor")
        expect_equal(functional.reduce_scatter_tensor(own, "max", 0, everybody).wait(), rows.amax(0)[RANK:RANK + 1],
                     "reduce_scatter_tensor")
        expect_equal(functional.broadcast(own, 2, everybody).wait(), rows[2], "broadcast")
        both = functional.all_reduce_coalesced([own, own + 1], "sum", everybody)
        expect_equal(both[1].wait(), rows.sum(0) + 4, "all_reduce_coalesced")
        gathered = functional.all_gather_into_tensor_coalesced([own, torch.tensor([RANK])], everybody)
        expect_equal(gathered[0].wait(), rows.flatten(), "all_gather_into_tensor_coalesced")
        expect_equal(gathered[1].wait(), torch.arange(RANKS), "all_gather_into_tensor_coalesced of another type")
        scattered = functional.reduce_scatter_tensor_coalesced([own, torch.cat([own, own])], "sum", [0, 0], everybody)
        expect_equal(scattered[0].wait(), rows.sum(0)[RANK:RANK + 1], "reduce_scatter_tensor_coalesced")
        expect_equal(scattered[1].wait(), rows.sum(0).repeat(2)[2 * RANK:2 * RANK + 2], "the second of them")
        turned = functional.all_to_all_single(own, None, None, everybody).wait()
        expect_equal(turned, rows[:, RANK], "all_to_all_single")


@check
def collectives_in_a_compiled_function() -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def mean(values: torch.Tensor) -> torch.Tensor:
        total = functional.all_reduce(values * 2, "sum", dist.group.WORLD)
        return functional.all_gather_tensor(total / RANKS, 0, dist.group.WORLD)
    with counted(weir=2):
        expect_equal(mean(torch.tensor([float(RANK)])), torch.full((RANKS,), 3.0), "a compiled mean")


@check
def a_mesh_of_two_dimensions() -> None:
    """Each row and column of ranks is a group with a ring of its own."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    for name, due in (("data", 2 * (RANK % 2) + 2), ("tensor", 4 * (RANK // 2) + 1)):
        group = mesh.get_group(name)
        expect(group.algorithm == "switch", f"{name}: {group.algorithm}")
        total = torch.tensor([RANK])
        with counted(weir=1, group=group):
            dist.all_reduce(total, group=group)
        expect_equal(total, torch.tensor([due]), name)


@check
def dtensor() -> None:
    mesh = init_device_mesh("cpu", (RANKS,))
    whole = torch.arange(64.0).reshape(8, 8)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    expect_equal(rows.to_local(), whole[2 * RANK:2 * RANK + 2], "a shard")
    expect_equal(rows.full_tensor(), whole, "shard to replica")
    expect_equal(rows.redistribute(mesh, [Shard(1)]).to_local(), whole[:, 2 * RANK:2 * RANK + 2], "shard to shard")
    partial = DTensor.from_local(torch.full((8, 8), float(RANK)), mesh, [Partial()])
    expect_equal(partial.redistribute(mesh, [Replicate()]).to_local(), torch.full((8, 8), 6.0), "partial to replica")
    expect_equal(partial.redistribute(mesh, [Shard(0)]).to_local(), torch.full((2, 8), 6.0), "partial to shard")
    expect_equal((rows @ distribute_tensor(whole, mesh, [Replicate()])).full_tensor(), whole @ whole, "a product")
    expect(mesh.get_group().statistics().calls >= 4, f"{mesh.get_group().statistics()}")


@check
def tensor_parallel() -> None:
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    points = torch.randn(5, 8)
    due = net(points)
    mesh = init_device_mesh("cpu", (RANKS,))
    split = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    torch.testing.assert_close(split(points), due)
    expect(mesh.get_group().statistics().calls > 0, "nothing went through the switch")


@check
def coalescing() -> None:
    values = [torch.full((3,), float(RANK + i)) for i in range(3)]
    with counted(weir=3):
        with dist._coalescing_manager():
            for value in values:
                dist.all_reduce(value)
        wholes = [torch.zeros(RANKS), torch.zeros(2 * RANKS)]
        with dist._coalescing_manager(async_ops=True) as manager:
            for whole, size in zip(wholes, (1, 2), strict=True):
                dist.all_gather_into_tensor(whole, torch.full((size,), float(RANK)))
        manager.wait()
        parts = [torch.zeros(1), torch.zeros(1)]
        with dist._coalescing_manager():
            for part in parts:
                dist.reduce_scatter_tensor(part, torch.arange(4.0))
    expect_equal(torch.stack(values)[:, 0], torch.tensor([6.0, 10.0, 14.0]), "all_reduce")
    expect_equal(wholes[1], torch.arange(4.0).repeat_interleave(2), "all_gather_into_tensor")
    expect_equal(torch.cat(parts), torch.full((2,), 4.0 * RANK), "reduce_scatter_tensor")


@check
def what_gloo_does() -> None:
    after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    came = torch.zeros(2)
    with counted(weir=0, gloo=4):
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((2,), float(RANK)), after),
                                            dist.P2POp(dist.irecv, came, before)]):
            work.wait()
        expect_equal(came, torch.full((2,), float(before)), "batch_isend_irecv")
        turned = torch.zeros(RANKS, dtype=torch.int64)
        dist.all_to_all_single(turned, torch.arange(RANKS) + 10 * RANK)
        expect_equal(turned, 10 * torch.arange(RANKS) + RANK, "all_to_all_single")
        world().monitored_barrier(timedelta(seconds=10))


@check
def objects() -> None:
    mine = {"rank": RANK, "text": "x" * RANK}
    due = [{"rank": rank, "text": "x" * rank} for rank in range(RANKS)]
    gathered = [None] * RANKS
    dist.all_gather_object(gathered, mine)
    expect(gathered == due, f"all_gather_object: {gathered}")
    told = [mine if RANK == 3 else None]
    dist.broadcast_object_list(told, src=3)
    expect(told == [due[3]], f"broadcast_object_list: {told}")
    gathered = [None] * RANKS if RANK == 1 else None
    dist.gather_object(mine, gathered, dst=1)
    expect(gathered == (due if RANK == 1 else None), f"gather_object: {gathered}")
    got = [None]
    dist.scatter_object_list(got, due if RANK == 0 else None, src=0)
    expect(got == [due[RANK]], f"scatter_object_list: {got}")


@check
def a_late_rank_and_the_timeout_of_a_call() -> None:
    opts = dist.AllreduceOptions()
    opts.timeout = SHORT
    total = torch.ones(1)
    if RANK == 0:
        dist.recv(torch.zeros(1), src=1)  # so rank 1's wait is over before
        dist.all_reduce(total)
    else:
        work = world().allreduce([total], opts)
        if RANK == 1:
            expect("not done after 0:00:00.2" in str(error_of(work.wait)), "the wait ends otherwise")
            dist.send(torch.zeros(1), dst=0)
        work.wait(timedelta(seconds=20))
    expect(total.item() == RANKS, f"{total}")


@check
def a_rank_that_does_not_come_within_the_timeout() -> None:
    """The error names it."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    started = time.monotonic()
    if RANK != 2:
        error = error_of(lambda: dist.barrier(group))
        expect(isinstance(error, weir_torch.WeirError) and error.status == "timeout" and error.rank == 2, f"{error!r}")
        expect(1 <= time.monotonic() - started < 5, f"after {time.monotonic() - started:.1f} s")
    dist.barrier()


@check
def two_groups_in_different_orders() -> None:
    """Rank 0 begins with the one, all others with the other: each hears so. A new group works at once."""
    one, two = (dist.new_group(timeout=timedelta(seconds=1), group_desc=name) for name in ("one", "two"))
    for group in (one, two):
        dist.barrier(group)
    dist.barrier()
    own, other = (one, two) if RANK == 0 else (two, one)
    late, others = ("ranks 1, 2, 3", "rank 0") if RANK == 0 else ("rank 0", "ranks 1, 2, 3")
    started = time.monotonic()
    error = error_of(lambda: [dist.all_reduce(torch.ones(1), group=group) for group in (own, other)])
    due = (f"weir: timeout: call 2: {late} did not make it within 1000 ms; this rank waited in group {own.group_desc} of ranks 0, 1, 2, 3, and "
           f"rank {1 if RANK == 0 else 0} for this one in group {other.group_desc} of ranks 0, 1, 2, 3 (call 2: {others} did not make it within "
           "1000 ms); right is the same order of groups on all ranks")
    expect(str(error) == due, f"{error!r}; due: {due}")
    expect(time.monotonic() - started < 10, f"after {time.monotonic() - started:.1f} s")
    total = torch.ones(1)
    dist.all_reduce(total, group=dist.new_group())
    expect(total.item() == RANKS, f"{total}")


@check
def ranks_that_wait_in_a_chain() -> None:
    """Ranks 1 and 3 wait for rank 0, which waits in another group for rank 2, which is late in both: no order is wrong."""
    pair = dist.new_group([0, 2], timeout=timedelta(seconds=1))
    group = dist.new_group(timeout=timedelta(seconds=1))
    dist.barrier()
    if RANK != 2:
        own, late = (pair, "rank 1") if RANK == 0 else (group, "ranks 0, 2")
        error = error_of(lambda: dist.all_reduce(torch.ones(1), group=own))
        expect(str(error) == f"weir: timeout: call 1: {late} did not make it within 1000 ms", f"{error!r}")
    dist.barrier()


@check
def groups_end_in_any_order() -> None:
    """Each rank ends them in another order. No end waits for another rank's."""
    groups = [dist.new_group() for _ in range(3)]
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
    started = time.monotonic()
    for place in range(3):
        dist.destroy_process_group(groups[(place + RANK) % 3])
    expect(time.monotonic() - started < 10, f"it took {time.monotonic() - started:.1f} s")
    total = torch.ones(1)
    dist.all_reduce(total)
    expect(total.item() == RANKS, f"{total}")


@check
def an_abort_ends_the_group_on_all_ranks() -> None:
    group = dist.new_group()
    if RANK == 2:
        dist.barrier()
        group.abort()
    else:
        work = group.allreduce([torch.ones(1)])
        dist.barrier()
        error = error_of(work.wait)
        expect(isinstance(error, weir_torch.WeirError) and error.status in ("aborted", "peer_died"), f"{error!r}")
        expect(not work.is_success() and work.exception() is error, f"{work.exception()!r}")
    expect(isinstance(error_of(lambda: dist.all_reduce(torch.ones(1), group=group)), weir_torch.WeirError), "it goes on")
    dist.barrier()


@check
def no_ring_is_left() -> None:
    """The switch says so; with the option, the hosts reduce instead."""
    groups = []
    try:
        while len(groups) < 100:
            groups.append(dist.new_group())
        raise AssertionError("the switch makes any number of rings")
    except weir_torch.WeirError as error:
        expect(error.status == "not_aggregated" and "as many as this switch has room for" in str(error), f"{error}")
    options = replace(weir_torch.Options.from_environment(), fallback="ring")
    by_hosts = dist.new_group(pg_options=options)
    expect(by_hosts.algorithm == "ring", by_hosts.algorithm)
    total = torch.tensor([RANK])
    dist.all_reduce(total, group=by_hosts)
    expect_equal(total, torch.tensor([6]), "all_reduce by the hosts")


@check
def detail_of_debugging() -> None:
    """PyTorch would wrap a backend in one that compares calls. Weir compares them by itself."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        group = dist.new_group()
        dist.all_reduce(torch.ones(2), group=group)
        dist.barrier()  # the error of a rank that is ahead ends what another has not finished
        error = error_of(lambda: dist.all_reduce(torch.ones(2 if RANK else 3), group=group))
        expect(isinstance(error, weir_torch.WeirError) and error.status == "mismatch", f"{error!r}")
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, place: int) -> torch.Tensor:
        if place == 0:
            gc.collect()
        return torch.tensor(float(place))


@check
def loaders_of_data_in_other_processes() -> None:
    """By fork, after the group was formed: the workers own nothing of it, and their ends do not touch it. Nor does their
    garbage collector touch a group that is garbage."""
    garbage = [dist.new_group()]
    dist.destroy_process_group(garbage[0])
    garbage.append(garbage)
    del garbage
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    total = sum(batch.sum() for batch in loader).reshape(1)
    dist.all_reduce(total)
    expect(total.item() == 28 * RANKS, f"{total}")


@check
def a_loader_that_is_spawned() -> None:
    if RANK == 0:
        loader = DataLoader(Numbers(), batch_size=8, num_workers=1, multiprocessing_context="spawn")
        expect(next(iter(loader)).sum().item() == 28, "a batch")
    total = torch.ones(1)
    dist.all_reduce(total)
    expect(total.item() == RANKS, f"{total}")


@check
def the_profiler_shows_each_call() -> None:
    dist.barrier()
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(4))
        dist.all_to_all_single(torch.zeros(4), torch.zeros(4))
    shown = {event.name: event for event in profile.events()}
    expect({"weir:all_reduce", "gloo:all_to_all"} <= set(shown), f"{sorted(shown)}")
    told = shown["weir:start"].kwinputs
    expect(told == {"call": "all_reduce", "bytes": 16, "way": "switch"}, f"{told}")


@check
def a_span_is_over_when_its_call_is() -> None:
    """Whoever waits for a call may stop the profiler then, which forgets its spans: torch would write the end of one that is late to
    memory that it has freed."""
    late: list[Callable[[], None]] = []
    with patch.object(Callbacks, "run", lambda _, callbacks: late.append(callbacks)), torch.profiler.profile() as profile:
        dist.all_reduce(torch.ones(4))
        with record_function("later"):
            pass
    for callbacks in late:
        callbacks()
    shown = {event.name: event.time_range for event in profile.events()}
    end, later = shown["weir:all_reduce"].end, shown["later"].start
    expect(end <= later, f"the span ends at {end}, and the caller went on at {later}")
