# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the users' own, by the switch alone: MXFP8 from f32 tensors, an operator written in Python, and training with them.
Judged by numpy."""
from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import weir_torch
from ranks import RANK, RANKS, check, expect

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests/operators"))
from judges import JUDGES  # noqa: E402

MXFP8 = ("mxfp8-e4m3-sum", "mxfp8-e5m2-sum")
PACKET = 984  # one FIRST packet at an MTU of 1024
IN_PACKET = PACKET // 33 * 32  # numbers of MXFP8
CLIPPED = weir_torch.operator("clipped", "i8 v", lanes="i16", identity="v 0", fold=lambda a, b: a + b, finish=weir_torch.f.clip,
                              flags={0: lambda a: (a > 127) | (a < -128)})


def group() -> weir_torch.ProcessGroupWeir:
    texts = [(ROOT / f"config/operators/{name}.weir").read_text() for name in MXFP8]
    options = replace(weir_torch.Options.from_environment(), operators=(*texts, CLIPPED))
    return dist.new_group(pg_options=options)


def numbers_of(rank: int, count: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(rank).standard_normal(count).astype(np.float32))


def judged(name: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    with np.errstate(all="ignore"):
        return torch.from_numpy(JUDGES[name]([tensor.numpy() for tensor in tensors]))


@check
def mxfp8_from_f32_tensors() -> None:
    by = group()
    for name in MXFP8:
        operator = weir_torch.Operator((ROOT / f"config/operators/{name}.weir").read_text())
        count = IN_PACKET
        packed = [operator.pack(numbers_of(rank, count)) for rank in range(RANKS)]
        due = operator.unpack(judged(name, packed), count)
        found = numbers_of(RANK, count).view(2, -1)
        by.all_reduce_by(found, name).wait()
        expect(torch.equal(found.flatten(), due), f"{name}: found {found}, should be {due}")
        bytes_found = packed[RANK].clone()
        by.all_reduce_by(bytes_found, name).wait()
        expect(torch.equal(bytes_found, judged(name, packed)), f"{name}: packed tensors")
    long = numbers_of(RANK, 100_000)
    by.all_reduce_by(long, MXFP8[0]).wait()
    messages = weir_torch.Options.from_environment().message_bytes
    operator = weir_torch.Operator((ROOT / f"config/operators/{MXFP8[0]}.weir").read_text(), message_bytes=messages)
    due = operator.unpack(operator.reduce([operator.pack(numbers_of(rank, 100_000)) for rank in range(RANKS)]), 100_000)
    expect(torch.equal(long, due), "a tensor of several messages")


@check
def arguments_that_the_library_would_read_past() -> None:
    operator = weir_torch.Operator((ROOT / f"config/operators/{MXFP8[0]}.weir").read_text())
    packed = operator.pack(torch.ones(100))
    for call, words in ((lambda: operator.unpack(torch.zeros(8, dtype=torch.uint8), 1000), "packed: found 8 of torch.uint8"),
                        (lambda: operator.unpack(packed.float(), 100), "of torch.float32"),
                        (lambda: operator.bytes(-1), "elements: found -1"), (lambda: operator.place(2**63), "element: found"),
                        (lambda: operator.reduce([]), "tensors: found none"),
                        (lambda: operator.reduce([packed, operator.pack(torch.ones(1000))]), "tensors[1]: found"),
                        (lambda: weir_torch.operators.loaded("w", None, None), "found a string"),
                        (lambda: weir_torch.operators.loaded(["maxloc.weir"], None, None), "not the name of its file"),
                        (lambda: weir_torch.operators.loaded([operator.text, "weir-operator 1\nname a\n"], None, None), "operators[1]: line 3: found the end")):
        try:
            call()
        except (ValueError, RuntimeError) as error:
            expect(words in str(error), f"found {error}, due {words}")
        else:
            raise AssertionError(f"no error: {words}")


@check
def shares_by_an_operator() -> None:
    """A reduce-scatter, whose shares end within a message."""
    by = group()
    messages = weir_torch.Options.from_environment().message_bytes
    operator = weir_torch.Operator((ROOT / f"config/operators/{MXFP8[0]}.weir").read_text(), message_bytes=messages)
    shares = [[numbers_of(RANKS * rank + share, 10_000) for share in range(RANKS)] for rank in range(RANKS)]
    due = operator.unpack(operator.reduce([operator.pack(shares[rank][RANK]) for rank in range(RANKS)]), 10_000)
    found = torch.zeros(10_000)
    by.reduce_scatter_by(found, torch.cat(shares[RANK]), MXFP8[0]).wait()
    expect(torch.equal(found, due), f"found {found}, should be {due}")
    try:
        by.reduce_scatter_by(found, found, MXFP8[0])
    except ValueError as error:
        expect(f"found 10000 of torch.float32; allowed: {RANKS} ranks' shares" in str(error), f"{error}")
    else:
        raise AssertionError("found no error")


@check
def an_operator_written_in_python() -> None:
    values = [torch.from_numpy(np.random.default_rng(rank).integers(-60, 60, PACKET).astype(np.int8)) for rank in range(RANKS)]
    packed = [tensor.view(torch.uint8).clone() for tensor in values]
    for tensor in packed:
        tensor[-8:] = 0
    found = packed[RANK].clone()
    group().all_reduce_by(found, "clipped").wait()
    expect(torch.equal(found, judged("clipped-i8-sum", packed)), f"found {found}")
    expect(found[-8] == 1, f"flags {found[-8:]}")


@check
def an_operator_that_the_group_lacks() -> None:
    try:
        group().all_reduce_by(torch.ones(32), "maxloc")
    except ValueError as error:
        expect("found 'maxloc'; allowed: mxfp8-e4m3-sum, mxfp8-e5m2-sum, clipped" in str(error), f"{error}")
    else:
        raise AssertionError("found no error")


@check
def gradients_by_an_operator() -> None:
    """DistributedDataParallel with a hook: the mean of what each rank's gradient becomes in MXFP8."""
    torch.manual_seed(1)
    model = torch.nn.Linear(64, 8, bias=False)
    plain = torch.nn.Linear(64, 8, bias=False)
    plain.load_state_dict(model.state_dict())
    by = group()
    parallel = DistributedDataParallel(model, process_group=by)
    parallel.register_comm_hook(None, weir_torch.sum_by(MXFP8[0], by))
    gradients = []
    for rank in range(RANKS):
        plain.zero_grad()
        plain(numbers_of(rank, 640).view(10, 64)).square().sum().backward()
        gradients.append(plain.weight.grad.clone())
    parallel(numbers_of(RANK, 640).view(10, 64)).square().sum().backward()
    operator = weir_torch.Operator((ROOT / f"config/operators/{MXFP8[0]}.weir").read_text())
    due = operator.unpack(judged(MXFP8[0], [operator.pack(gradient) for gradient in gradients]), 512) / RANKS
    expect(torch.equal(model.weight.grad.flatten(), due), f"found {model.weight.grad.flatten()[:8]}, should be {due[:8]}")
