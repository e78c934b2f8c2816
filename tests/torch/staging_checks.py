# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of a device that has streams, with an engine of threads in the place of CUDA's."""
from __future__ import annotations

import threading
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from weir_torch import collectives

from group_checks import error_of, expect_equal
from ranks import RANK, RANKS, check, expect, world
from thread_engine import SMALL_PIECE, EagerStream, ThreadEngine, ThreadStream, engine_of_threads
from training_checks import expect_same_on_all, expect_trained, make_net, own_part, train

COUNT = 3 * SMALL_PIECE // 4 + 5  # elements of f32: four pieces, the last one of five elements
LONGEST_S = 20.0  # for what takes milliseconds


def numbers(rank: int, count: int = COUNT) -> torch.Tensor:
    """Whole and small, so that no sum is rounded."""
    return (torch.arange(count) * 7 % 101 + 1000 * rank).float()


def of_all(count: int = COUNT) -> torch.Tensor:
    return torch.stack([numbers(rank, count) for rank in range(RANKS)])


def expect_in_order(engine: ThreadEngine, given: torch.Tensor, result: torch.Tensor, call: Callable[[], object],
                    due: torch.Tensor, what: str) -> None:
    """The call takes what a kernel before it wrote, and a kernel behind it finds what it made; the program waits for neither."""
    begin = threading.Event()
    own = given.clone()
    given.fill_(-1)
    engine.soon(begin.wait)
    engine.soon(lambda: given.copy_(own))
    call()
    engine.soon(lambda: result.add_(1))
    begin.set()
    engine.synchronize()
    expect_equal(result, due + 1, what)


@check
def staged_collectives() -> None:
    with engine_of_threads(ThreadStream()) as engine:
        every = of_all()
        tensor = numbers(RANK)
        expect_in_order(engine, tensor, tensor, lambda: dist.all_reduce(tensor), every.sum(0), "all_reduce")
        expect(engine.pieces == 4, f"found {engine.pieces} pieces")
        expect_in_order(engine, tensor := numbers(RANK), tensor, lambda: dist.broadcast(tensor, 2), every[2], "broadcast")
        due = every.amax(0) if RANK == 1 else every[RANK]
        expect_in_order(engine, tensor := numbers(RANK), tensor, lambda: dist.reduce(tensor, 1, dist.ReduceOp.MAX), due, "reduce")
        whole = torch.zeros(RANKS * COUNT)
        expect_in_order(engine, tensor := numbers(RANK), whole, lambda: dist.all_gather_into_tensor(whole, tensor), every.flatten(),
                        "all_gather_into_tensor")
        part = torch.zeros(COUNT)
        own = RANK * COUNT
        expect_in_order(engine, tensor := numbers(RANK, RANKS * COUNT), part, lambda: dist.reduce_scatter_tensor(part, tensor),
                        of_all(RANKS * COUNT).sum(0)[own:own + COUNT], "reduce_scatter_tensor")
        flags = torch.arange(COUNT) % RANKS == RANK
        dist.broadcast(flags, 3)
        engine.synchronize()
        expect_equal(flags, torch.arange(COUNT) % RANKS == 3, "bool")
        several = [numbers(RANK, count) for count in (3, 0, COUNT)]
        dist.all_reduce_coalesced(several)
        engine.synchronize()
        expect_equal(several[0], of_all(3).sum(0), "the first of several")
        expect_equal(several[2], every.sum(0), "the last of several")
        expect(world().statistics().gloo_calls == 0, f"{world().statistics()}")


@check
def staged_pieces_lie_in_place() -> None:
    """As weir.h has it for an all-gather and a reduce-scatter: in == out + own rank * count, and the other way round."""
    memory, part, whole = torch.empty(SMALL_PIECE, dtype=torch.uint8), torch.zeros(6), torch.zeros(6 * RANKS)
    for collective in (collectives.all_gather_into(whole, part), collectives.reduce_scatter(part, whole, 0)):
        source, result = collective.moves[0].within(memory, RANK, 5)
        own, every = sorted((source, result), key=len)
        expect((len(own), len(every)) == (1, RANKS), f"found {len(own)} and {len(every)} rows")
        expect(own.data_ptr() - every.data_ptr() == RANK * 5 * 4, "the own part is elsewhere")


@check
def staged_with_lists_and_gaps() -> None:
    with engine_of_threads(EagerStream()):
        parts = [torch.zeros(COUNT) for _ in range(RANKS)]
        dist.all_gather(parts, numbers(RANK))
        expect_equal(torch.stack(parts), of_all(), "all_gather")
        part = torch.zeros(3)
        dist.reduce_scatter(part, list(numbers(RANK, 3 * RANKS).split(3)))
        expect_equal(part, of_all(3 * RANKS).sum(0)[3 * RANK:3 * RANK + 3], "reduce_scatter")
        with_gaps = numbers(RANK, 2 * COUNT)[::2]
        dist.all_reduce(with_gaps)
        expect_equal(with_gaps, of_all(2 * COUNT).sum(0)[::2], "with gaps")


@check
def staged_calls_keep_the_order() -> None:
    """A barrier waits for the data of the call before it, on ranks where they come late as where they come soon."""
    with engine_of_threads(ThreadStream()) as engine:
        begin = threading.Event()
        engine.soon(begin.wait)
        tensor = numbers(RANK)
        work = dist.all_reduce(tensor, async_op=True)
        if RANK == 0:
            begin.set()
            expect(engine.has_arrived.wait(LONGEST_S), "no piece comes")
        barrier = dist.barrier(async_op=True)
        begin.set()
        barrier.wait()
        work.wait()
        engine.synchronize()
        expect_equal(tensor, of_all().sum(0), "all_reduce")
        expect(work.is_completed(), "the work is not completed")


@check
def staged_futures() -> None:
    with engine_of_threads(ThreadStream()) as engine:
        tensor = numbers(RANK)
        doubled = dist.all_reduce(tensor, async_op=True).get_future().then(lambda future: 2 * future.value()[0])
        expect_equal(doubled.wait(), 2 * of_all().sum(0), "a future's value")
        engine.synchronize()


@check
def staged_calls_that_fail() -> None:
    """The streams go on, and the next call says what is wrong."""
    with engine_of_threads(ThreadStream()) as engine:
        dist.all_reduce(numbers(RANK, COUNT + RANK // 3), async_op=True).get_future().wait()
        error = error_of(lambda: dist.all_reduce(numbers(RANK)))
        expect("mismatch" in str(error), str(error))
        engine.synchronize()


@check
def staged_data_that_never_come() -> None:
    """The group ends all the same, and so does the stream."""
    with engine_of_threads(ThreadStream()) as engine:
        begin = threading.Event()
        engine.soon(begin.wait)
        work = dist.all_reduce(numbers(RANK), async_op=True)
        group = world()
        group.close()
        expect("was closed before the call's data had come" in str(work.exception()), str(work.exception()))
        begin.set()
        work.get_future().wait()
        engine.synchronize()


@check
def staged_trainings() -> None:
    with engine_of_threads(EagerStream()) as engine:
        net = DistributedDataParallel(make_net(), bucket_cap_mb=0.001)
        train(net, own_part)
        expect_trained(dict(net.named_parameters()))
        expect_same_on_all(net)
        sharded = make_net()
        fully_shard(sharded)
        train(sharded, own_part)
        expect_trained({name: value.full_tensor() for name, value in sharded.named_parameters()})
        expect(engine.pieces > 0 and world().statistics().gloo_calls == 0, f"{engine.pieces} pieces, {world().statistics()}")
