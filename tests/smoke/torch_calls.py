# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that makes every kind of call of the backend "weir" and compares the results with whole numbers
that it computes by itself. Ends with "torch_calls: exact" and status 0."""
from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist

import weir_torch

sys.path.append(str(Path(__file__).resolve().parent.parent / "torch"))
from sparse_cases import by_gloo, cases, difference, gradient_of_words  # noqa: E402

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
         torch.int64)
COUNTS = (0, 1, 3, 5000)
RANKS = 4
LONGEST_S = 60  # then it says where it hangs
SOON_S = 5  # far less than a callback has whose wait nobody sees
RULES = {"SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b, "MIN": min, "MAX": max}
BITWISE_RULES = {"BAND": lambda a, b: a & b, "BOR": lambda a, b: a | b, "BXOR": lambda a, b: a ^ b}


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"torch_calls: rank {dist.get_rank()}: {otherwise}")


def expect_equal(found: torch.Tensor, due: torch.Tensor, what: str) -> None:
    expect(torch.equal(found, due), f"{what}: found {found.flatten()[:8]}, should be {due.flatten()[:8]}")


def values(rank: int, count: int) -> list[int]:
    """So small that no type rounds their sum or product."""
    return [(rank + 2 * i) % 3 + 1 for i in range(count)]


def folded(operation: str, count: int) -> list[float]:
    columns = list(zip(*(values(rank, count) for rank in range(RANKS)), strict=True))
    if operation == "AVG":
        return [sum(column) / RANKS for column in columns]
    return [reduce((RULES | BITWISE_RULES)[operation], column) for column in columns]


def weir_calls() -> int:
    return group().statistics().calls


def group() -> weir_torch.ProcessGroupWeir:
    return dist.distributed_c10d._get_default_group()


def reduce_every_type(rank: int) -> None:
    for kind, dtype in enumerate(TYPES):
        operations = ["AVG", *RULES, *(() if dtype.is_floating_point else BITWISE_RULES)]
        for number, operation in enumerate(operations):
            count = COUNTS[(kind + number) % len(COUNTS)]
            tensor = torch.tensor(values(rank, count), dtype=dtype)
            before = weir_calls()
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, operation))
            expect(weir_calls() == before + 1, f"{dtype}: went to Gloo")
            expect_equal(tensor, torch.tensor(folded(operation, count)).to(dtype), f"{dtype}, {operation}")


def broadcast_every_type(rank: int) -> None:
    for number, dtype in enumerate(TYPES):
        tensor = torch.tensor(values(rank, 1000), dtype=dtype)
        dist.broadcast(tensor, src=number % RANKS)
        expect_equal(tensor, torch.tensor(values(number % RANKS, 1000), dtype=dtype), f"broadcast of {dtype}")


def move_other_types(rank: int) -> None:
    """What is not reduced is bytes."""
    before = weir_calls()
    flags = torch.tensor([rank == 2, rank != 2, True])
    dist.broadcast(flags, src=2)
    expect_equal(flags, torch.tensor([True, False, True]), "broadcast of bool")
    turned = torch.tensor([rank + 2j])
    opts = dist.BroadcastOptions()
    opts.rootRank = 1
    group().broadcast([turned.conj() if rank == 1 else turned], opts).wait()
    expect_equal(turned, torch.tensor([rank + 2j if rank == 1 else 1 - 2j]), "broadcast of a conjugate view")
    gathered = [torch.zeros(3, dtype=torch.bool) for _ in range(RANKS)]
    dist.all_gather(gathered, torch.tensor([i < rank for i in range(3)]))
    expect_equal(torch.stack(gathered).sum(1), torch.tensor([0, 1, 2, 3]), "all_gather of bool")
    expect(weir_calls() == before + 3, "went to Gloo")


def reduce_bool_and_complex(rank: int) -> None:
    """At each place, every rank has another bit of the place's number; and another number with another imaginary part."""
    bits = torch.arange(2 ** RANKS)
    due = {"SUM": bits > 0, "MAX": bits > 0, "PRODUCT": bits == 2 ** RANKS - 1, "MIN": bits == 2 ** RANKS - 1}
    before = weir_calls()
    for operation, expected in due.items():
        flags = (bits >> rank & 1).bool()
        dist.all_reduce(flags, op=getattr(dist.ReduceOp, operation))
        expect_equal(flags, expected, f"{operation} of bool")
    numbers = torch.tensor([complex(rank, 10 * rank), complex(1, -rank)])
    dist.reduce(numbers, dst=1)
    if rank == 1:
        expect_equal(numbers, torch.tensor([complex(6, 60), complex(4, -6)]), "reduce of complex")
    expect(weir_calls() == before + len(due) + 1, "went to Gloo")


def reduce_coalesced(rank: int) -> None:
    """Tensors of unlike shapes as one call, one of them with gaps."""
    square = torch.tensor(values(rank, 64)).reshape(8, 8).t()
    tensors = [torch.tensor(values(rank, count), dtype=torch.int64) for count in COUNTS] + [square]
    before = weir_calls()
    dist.all_reduce_coalesced(tensors, op=dist.ReduceOp.MAX)
    expect(weir_calls() == before + 1, "not one call")
    for tensor, count in zip(tensors, COUNTS, strict=False):
        expect_equal(tensor, torch.tensor(folded("MAX", count), dtype=torch.int64), f"{count} elements of several tensors")
    expect_equal(square, torch.tensor(folded("MAX", 64)).reshape(8, 8).t(), "the tensor with gaps")


def reduce_to_each_root(rank: int) -> None:
    for root in range(RANKS):
        tensor = torch.tensor(values(rank, 1000), dtype=torch.float32)
        before = weir_calls()
        dist.reduce(tensor, dst=root)
        expect(weir_calls() == before + 1, "reduce went to Gloo")
        due = folded("SUM", 1000) if rank == root else values(rank, 1000)
        expect_equal(tensor, torch.tensor(due, dtype=torch.float32), f"reduce to {root}")


def reduce_sparse(rank: int) -> None:
    for number, tensor in enumerate(cases(rank)):
        due, before = by_gloo(group(), tensor), weir_calls()
        dist.all_reduce(tensor)
        expect(not difference(tensor, due), f"sparse tensor {number}: {difference(tensor, due)}")
        expect(weir_calls() == before + 1, f"sparse tensor {number} went to Gloo")


def average_sparse_gradients(rank: int) -> None:
    found, due = gradient_of_words(rank), gradient_of_words(rank, dist.new_group(backend="gloo"))
    expect(not difference(found, due), f"a sparse gradient: {difference(found, due)}")


def gather_from_all(rank: int) -> None:
    for count in COUNTS:
        own = torch.tensor(values(rank, count), dtype=torch.int16)
        due = torch.tensor([values(r, count) for r in range(RANKS)], dtype=torch.int16)
        before = weir_calls()
        gathered = [torch.zeros_like(own) for _ in range(RANKS)]
        dist.all_gather(gathered, own)
        expect_equal(torch.stack(gathered), due, f"all_gather of {count}")
        whole = torch.zeros(RANKS * count, dtype=torch.int16)
        dist.all_gather_into_tensor(whole, own)
        expect_equal(whole, due.flatten(), f"all_gather_into_tensor of {count}")
        expect(weir_calls() == before + 2, "all_gather went to Gloo")
    many = 100_000  # more than a window, so that results come before all is sent
    in_place = torch.full((RANKS, many), rank)
    dist.all_gather_into_tensor(in_place, in_place[(rank + 1) % RANKS])  # not the place where it goes
    expect_equal(in_place, torch.arange(RANKS).unsqueeze(1).expand(RANKS, many), "all_gather in place")
    columns = torch.zeros(5, RANKS, dtype=torch.int64)
    dist.all_gather_into_tensor(columns.t(), torch.full((5,), rank))
    expect_equal(columns, torch.arange(RANKS).expand(5, RANKS), "all_gather into gaps")


def scatter_reductions(rank: int) -> None:
    for count in COUNTS:
        whole = torch.tensor(values(rank, RANKS * count), dtype=torch.float64)
        due = torch.tensor(folded("SUM", RANKS * count)[rank * count:(rank + 1) * count], dtype=torch.float64)
        before = weir_calls()
        part = torch.zeros(count, dtype=torch.float64)
        dist.reduce_scatter_tensor(part, whole)
        expect_equal(part, due, f"reduce_scatter_tensor of {count}")
        part.zero_()
        dist.reduce_scatter(part, list(whole.reshape(RANKS, count)))
        expect_equal(part, due, f"reduce_scatter of {count}")
        expect(weir_calls() == before + 2, "reduce_scatter went to Gloo")
    whole = torch.tensor(values(rank, 4 * RANKS))
    dist.reduce_scatter_tensor(whole[2:6], whole)
    expect_equal(whole[2:6], torch.tensor(folded("SUM", 4 * RANKS)[4 * rank:4 * rank + 4]), "reduce_scatter in place")


def use_tensors_with_gaps(rank: int) -> None:
    """Contiguous on rank 0 alone: the ranks must still make the same call."""
    size = 64
    matrix = torch.tensor(values(rank, size * size)).reshape(size, size)
    part = matrix.t().contiguous() if rank == 0 else matrix.t()
    dist.all_reduce(part)
    expect_equal(part, torch.tensor(folded("SUM", size * size)).reshape(size, size).t(), "a transposed tensor")
    row = torch.full((2 * size,), rank)
    dist.broadcast(row[::2], src=1)
    expect_equal(row, torch.tensor([1, rank] * size), "every second element")


def keep_several_under_way(rank: int) -> None:
    tensors = [torch.full((1000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = works[-1].get_future().then(lambda future: 2 * future.value()[0])
    for i in reversed(range(20)):
        expect(works[i].wait() and works[i].is_completed(), "wait returned early")
        expect_equal(tensors[i], torch.full((1000,), float(6 + 4 * i)), f"all-reduce {i} under way")
    expect_equal(doubled.wait(), 2 * tensors[-1], "a future's `then`")


def wait_within_a_callback(rank: int) -> None:
    """For another call's future, which must not end in the thread that waits, and whose callbacks do not wait for it for long."""
    started = time.monotonic()
    def reduce_again(future: torch.futures.Future) -> torch.Tensor:
        total = future.value()[0].clone()
        return dist.all_reduce(total, async_op=True).get_future().wait()[0]
    first = dist.all_reduce(torch.full((5,), float(rank)), async_op=True)
    expect_equal(first.get_future().then(reduce_again).wait(), torch.full((5,), 24.0), "an all-reduce of an all-reduce")
    expect(time.monotonic() - started < SOON_S, f"the callback gave way after {time.monotonic() - started:.1f} s")


def start_calls_in_callbacks(rank: int) -> None:
    """Each callback starts a call of another length: on all ranks in the same order, or they would differ."""
    def start_another(future: torch.futures.Future) -> object:
        return dist.all_reduce(torch.full((future.value()[0].numel() + 7,), 1.0), async_op=True)
    works = [dist.all_reduce(torch.zeros(i), async_op=True) for i in range(1, 20)]
    started = [work.get_future().then(start_another) for work in works]
    for i, future in enumerate(started, 1):
        future.wait().wait()
        expect(future.value().result()[0].sum().item() == 4 * (i + 7), f"call {i} of a callback")


def miss_a_place_for_the_result(rank: int) -> None:
    """Elements that share one place in memory: an error of this call alone."""
    try:
        dist.all_reduce(torch.ones(1).expand(4))
        expect(False, "a tensor whose elements share their memory has a result")
    except RuntimeError as error:
        expect("single memory location" in str(error), f"{error}")
    total = torch.ones(1)
    dist.all_reduce(total)
    expect(total.item() == RANKS, "the call after it")


def return_works_that_are_done(rank: int) -> None:
    """To C++ code, which has no reference to a work's Python half and asks it for the outcome later."""
    start = weir_torch.ProcessGroupWeir.broadcast

    def start_and_let_it_end(*arguments: object) -> object:
        work = start(*arguments)
        dist.barrier()  # which is done after it
        return work
    tensors = [torch.full((5,), float(rank + i)) for i in range(6)]
    with patch.object(weir_torch.ProcessGroupWeir, "broadcast", start_and_let_it_end):
        dist._broadcast_coalesced(group(), tensors, 1, 2)
    expect_equal(torch.stack(tensors)[:, 0], torch.arange(2.0, 8.0), "broadcast by C++ code")


def leave_a_wait(rank: int) -> None:
    """Rank 0 comes late to a barrier; the others' waits end in time and the barrier still works."""
    if rank == 0:
        dist.recv(torch.zeros(1), src=1)
    work = dist.barrier(async_op=True)
    if rank == 1:
        try:
            work.wait(timedelta(milliseconds=50))
            expect(False, "a barrier without rank 0 is over")
        except RuntimeError as error:
            expect("not done after" in str(error), f"{error}")
        dist.send(torch.zeros(1), dst=0)
    work.wait()


def expect_gloos_error(text: str, call: Callable[[], object]) -> None:
    try:
        call()
    except RuntimeError as error:
        expect(text in str(error), f"found {error}; should be {text}")
    else:
        expect(False, f"found no error; should be {text}")


def call_gloo(rank: int) -> None:
    before = weir_calls()
    gathered = [torch.zeros(3) for _ in range(RANKS)] if rank == 1 else None
    dist.gather(torch.full((3,), float(rank)), gathered, dst=1)
    expect(gathered is None or torch.equal(torch.stack(gathered)[:, 0], torch.arange(4.0)), f"gather: {gathered}")
    expect_gloos_error("with non-integral dtype", lambda: dist.all_reduce(torch.ones(1), op=dist.ReduceOp.BAND))
    expect(weir_calls() - before == 0, "Weir was called")
    objects = [None] * RANKS
    dist.all_gather_object(objects, {"rank": rank})
    expect(objects == [{"rank": r} for r in range(RANKS)], f"objects: {objects}")


def form_a_second_group(rank: int) -> None:
    """Of two ranks, on a ring that the switch does not know."""
    options = weir_torch.Options(device=os.environ["WEIR_DEVICE"], rings=(8,), fallback="ring")
    second = dist.new_group([1, 3], pg_options=options)
    if rank in (1, 3):
        expect(second.algorithm == "ring", f"the second group's algorithm is {second.algorithm}")
        total = torch.tensor([rank])
        dist.all_reduce(total, group=second)
        expect(total.item() == 4, f"all-reduce of ranks 1 and 3: {total}")
        dist.destroy_process_group(second)


def form_groups_of_one(rank: int) -> None:
    """As for a dimension of a mesh that is 1. Ring 7 is the first group's, but these need none."""
    alone = [dist.new_group([member]) for member in range(RANKS)][rank]
    expect(alone.algorithm == "alone", f"the algorithm of one rank is {alone.algorithm}")
    mine = torch.tensor([1.5, float(rank)])
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        result = mine.clone()
        dist.all_reduce(result, op=operation, group=alone)
        expect_equal(result, mine, f"{operation} of one rank")
    gathered = [torch.zeros(2)]
    dist.all_gather(gathered, mine, group=alone)
    expect_equal(gathered[0], mine, "all-gather of one rank")
    scattered = torch.zeros(2)
    dist.reduce_scatter(scattered, [mine], group=alone)
    expect_equal(scattered, mine, "reduce-scatter of one rank")
    dist.broadcast(mine, src=rank, group=alone)
    dist.barrier(group=alone)
    dist.destroy_process_group(alone)


def form_a_group_without_a_ring() -> None:
    """The environment names ring 7, which the first group has."""
    try:
        dist.new_group()
        expect(False, "two groups have ring 7")
    except weir_torch.WeirError as error:
        expect(error.status == "mismatch" and "ring 7: found another group of this process" in str(error)
               and "WEIR_SWITCH" in str(error), f"{error}")


def put_numbers_into_names(rank: int) -> None:
    with patch.dict(os.environ, {"LOCAL_RANK": "5", "WEIR_DEVICE": "weir%l", "WEIR_IP": "10.0.%%.1%r"}):
        options = weir_torch.Options.from_environment()
    expect((options.device, options.ip) == ("weir5", f"10.0.%.1{rank}"), f"{options}")


def refuse_what_is_wrong() -> None:
    for wrong in ({"transport": "tcp"}, {"fallback": "gloo"}, {"rings": ()}, {"rings": "some"}):
        try:
            weir_torch.Options(**wrong)
        except ValueError as error:
            expect("found" in str(error) and "allowed" in str(error), f"{error}")
        else:
            expect(False, f"{wrong} is not refused")
    for variable, text in (("WEIR_WINDOW", "many"), ("WEIR_RINGS", "7;8"), ("WEIR_FALLBACK", "gloo"), ("WEIR_DEVICE", "weir%x"),
                           ("WEIR_IP", "10.0.0.%"), ("WEIR_DEVICE", "weir%l")):  # LOCAL_RANK is not set
        with patch.dict(os.environ, {variable: text}):
            try:
                weir_torch.Options.from_environment()
            except ValueError as error:
                expect(f"found {text!r}; allowed: " in str(error), f"{error}")
            else:
                expect(False, f"{variable}={text} is not refused")


def call_different_things(rank: int) -> None:
    """Ends the group on every rank. The error says who called what."""
    try:
        dist.all_reduce(torch.zeros(4 if rank == 3 else 8))
        expect(False, "different counts are not noticed")
    except weir_torch.WeirError as error:
        expect(error.status == "mismatch" and error.rank is not None, f"{error.status}: {error}")
    try:
        dist.barrier()
        expect(False, "the group goes on after an error")
    except weir_torch.WeirError as error:
        expect(error.status == "mismatch", f"{error}")


def main() -> None:
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    refuse_what_is_wrong()
    put_numbers_into_names(int(os.environ["RANK"]))
    dist.init_process_group("weir", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    expect(dist.get_backend() == "weir" and group().algorithm == "switch", f"{dist.get_backend()}, {group().algorithm}")
    reduce_every_type(rank)
    broadcast_every_type(rank)
    move_other_types(rank)
    reduce_bool_and_complex(rank)
    reduce_coalesced(rank)
    reduce_to_each_root(rank)
    reduce_sparse(rank)
    average_sparse_gradients(rank)
    gather_from_all(rank)
    scatter_reductions(rank)
    use_tensors_with_gaps(rank)
    keep_several_under_way(rank)
    wait_within_a_callback(rank)
    start_calls_in_callbacks(rank)
    miss_a_place_for_the_result(rank)
    return_works_that_are_done(rank)
    leave_a_wait(rank)
    call_gloo(rank)
    form_a_second_group(rank)
    form_groups_of_one(rank)
    form_a_group_without_a_ring()
    form_a_second_group(rank)  # on the same ring: the one before it is gone
    call_different_things(rank)
    dist.destroy_process_group()
    print("torch_calls: exact", flush=True)


main()
