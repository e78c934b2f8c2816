# SPDX-License-Identifier: BSD-3-Clause
"""All-reduces of sparse tensors. Gloo judges them, or the dense sum of what all ranks bring, where Gloo has none."""
from __future__ import annotations

from dataclasses import replace

import torch
import torch.distributed as dist

import weir_torch
from group_checks import counted, error_of, expect_equal
from ranks import RANK, RANKS, check, expect, world
from sparse_cases import Case, by_gloo, cases, difference, gradient_of_words

SOME = Case((40, 3), 1, (7, 0, 30, 1))


def expect_same(found: torch.Tensor, due: torch.Tensor) -> None:
    expect(not difference(found, due), difference(found, due))


@check
def sparse_sums_are_those_of_gloo() -> None:
    for tensor in cases(RANK):
        due = by_gloo(world(), tensor)
        values = tensor._values()
        before = world().statistics().bytes
        with counted(weir=1):
            dist.all_reduce(tensor)
        expect_same(tensor, due)
        expect(world().statistics().bytes - before == values.numel() * values.element_size(), f"{world().statistics()}")


@check
def sparse_gradients_are_those_of_gloo() -> None:
    """Of the inner group: new_group makes none here, where judge.py puts Weir in Gloo's place."""
    found = gradient_of_words(RANK)
    expect(world().statistics().gloo_calls == 0, "a gradient went to Gloo")
    expect_same(found, gradient_of_words(RANK, world()._gloo._group))


@check
def sparse_averages() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        tensor = replace(SOME, dtype=dtype).of(RANK)
        due = by_gloo(world(), tensor)
        mean = due._values() / RANKS
        due._values().copy_(mean if dtype.is_floating_point else mean.trunc())
        with counted(weir=1):
            dist.all_reduce(tensor, dist.ReduceOp.AVG)
        expect_same(tensor, due)


@check
def sparse_sums_that_gloo_lacks() -> None:
    """Of i16, bool and complex numbers; of bits; and of places without a dimension."""
    short = replace(SOME, dtype=torch.int16)
    tensor = short.of(RANK)
    bits = replace(SOME, dtype=torch.uint8)
    union, parity = bits.of(RANK).coalesce(), bits.of(RANK).coalesce()
    flags = torch.sparse_coo_tensor([[RANK, 4, 5]], [True, RANK == 2, False], (8,))
    turned = torch.sparse_coo_tensor([[RANK, 5]], [1 + 2j, 3 - 1j * RANK], (8,))
    alone = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), [[RANK, 1], [0, 2]], (2,))
    with counted(weir=6):
        dist.all_reduce(tensor)
        dist.all_reduce(union, dist.ReduceOp.BOR)
        dist.all_reduce(parity, dist.ReduceOp.BXOR)
        dist.all_reduce(flags)
        world().allreduce([turned]).wait()
        dist.all_reduce(alone)
    expect_equal(tensor.to_dense(), short.total(), "i16")
    every = [bits.of(rank).to_dense() for rank in range(RANKS)]
    expect_equal(union.to_dense(), every[0] | every[1] | every[2] | every[3], "BOR")
    expect_equal(parity.to_dense(), every[0] ^ every[1] ^ every[2] ^ every[3], "BXOR")
    expect_equal(flags._indices()[0], torch.arange(6), "places of bool")
    expect_equal(flags._values(), torch.tensor([True, True, True, True, True, False]), "bool")
    expect_equal(turned.to_dense(), torch.tensor([1 + 2j] * 4 + [0, 12 - 6j, 0, 0]), "complex numbers")
    expect_equal(alone.to_dense(), torch.tensor([6, 12]), "no sparse dimension")


@check
def sparse_tensors_as_programs_have_them() -> None:
    """With gaps in memory; that require a gradient; of inference mode; several under way, dense ones among them."""
    due = SOME.total()
    with torch.inference_mode():
        inferred = SOME.of(RANK)
    own = SOME.of(RANK)
    indices, values = own._indices(), own._values()
    gaps = torch.sparse_coo_tensor(indices.repeat_interleave(2, 1)[:, ::2], values.t().contiguous().t(), SOME.shape)
    learnt = SOME.of(RANK).requires_grad_()
    dense = torch.ones(5)
    for work in [dist.all_reduce(tensor, async_op=True) for tensor in (gaps, dense, learnt, inferred, own)]:
        work.wait()
    for tensor in (gaps, learnt, inferred, own):
        expect_equal(tensor.detach().to_dense(), due, "a sum")
    expect(learnt.requires_grad and learnt.is_leaf, "found another kind of tensor")
    expect_equal(dense, torch.full((5,), float(RANKS)), "the dense call among them")
    expect_equal(values, SOME.of(RANK)._values(), "the values before the call")


def expect_mismatch(tensor: torch.Tensor, group: weir_torch.ProcessGroupWeir | None = None) -> None:
    error = error_of(lambda: dist.all_reduce(tensor, group=group))
    expect(isinstance(error, weir_torch.WeirError) and error.status == "mismatch", f"{error!r}")


@check
def sparse_shapes_that_differ() -> None:
    """All ranks have an error. Where the calls are equally long, the group goes on."""
    places = [[RANK], [0]]
    tensor = torch.sparse_coo_tensor(places, [1.0], (6, 4) if RANK else (4, 6))
    expect_mismatch(tensor)
    expect_equal(tensor.to_dense().sum(), torch.tensor(1.0), "after the error")
    dist.barrier()
    others = [torch.sparse_coo_tensor(places, [1.0], (6, 5)), torch.sparse_coo_tensor([[RANK]], [1.0], (24,)),
              torch.sparse_coo_tensor([[RANK]], torch.ones(1, 4), (6, 4)), torch.ones(24),
              torch.sparse_coo_tensor(places, torch.tensor([1.0], dtype=torch.float64), (6, 4))]
    for other in others:
        group = dist.new_group()
        expect_mismatch(tensor if RANK == 1 else other, group)
        dist.barrier()


@check
def sparse_calls_that_gloo_has() -> None:
    """Or refuses."""
    longest = Case((3, 2**16), 1, (1, 0, 2, 1))
    tensor = longest.of(RANK)
    with counted(weir=0, gloo=1):
        dist.all_reduce(tensor)
    expect_equal(tensor.to_dense(), longest.total(), "rows that are longer than a block")
    error = error_of(lambda: dist.all_reduce(SOME.of(RANK), dist.ReduceOp.MAX))
    expect("only works with ReduceOp.SUM" in str(error), f"{error}")


@check
def sparse_sums_without_a_switch() -> None:
    alone = [dist.new_group([rank]) for rank in range(RANKS)][RANK]
    by_hosts = dist.new_group(pg_options=replace(weir_torch.Options.from_environment(), switch="", rings=(99,), fallback="ring"))
    for group, algorithm, due in ((alone, "alone", SOME.of(RANK).coalesce()), (by_hosts, "ring", by_gloo(world(), SOME.of(RANK)))):
        expect(group.algorithm == algorithm, f"found {group.algorithm}, should be {algorithm}")
        tensor = SOME.of(RANK)
        with counted(weir=1, group=group):
            dist.all_reduce(tensor, group=group)
        expect_same(tensor, due)
