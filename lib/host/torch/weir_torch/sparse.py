# SPDX-License-Identifier: BSD-3-Clause
"""All-reduces of sparse tensors, torch.sparse_coo. The tensor becomes what Gloo makes of it: coalesced, with the places that some
rank has, also where their sum is 0."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from math import prod
from typing import Optional

import torch
from torch.distributed import ReduceOp

from .c_api import DATA_TYPES, OPERATIONS, SparseTensor, SparseView, WeirError, check, library
from .collectives import TYPES, Collective, bytes_of, contiguous, operation_of, reducible
from .group import Group, Request

# As weir.h has them: what absent elements do not change, and the longest block and tensor.
ALLOWED = {OPERATIONS[name] for name in ("WEIR_SUM", "WEIR_AVERAGE", "WEIR_OR", "WEIR_XOR")}
MOST_ELEMENTS = 2**16 - 1
MOST_BLOCKS = 2**36

# Since torch 2.0. Later ones warn where nothing is said of it. Indices of the library need no check.
UNCHECKED = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


class Layout:
    """A tensor as the library has it: a block for each place of the sparse dimensions."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._sizes, self.dense_sizes = tensor.shape[:tensor.sparse_dim()], tensor.shape[tensor.sparse_dim():]
        self.elements = prod(self.dense_sizes) * (2 if tensor.is_complex() else 1)  # of a block
        self._bytes = prod(self.dense_sizes) * tensor.element_size()

    @property
    def fits(self) -> bool:
        return 0 < self.elements <= MOST_ELEMENTS and self.blocks <= MOST_BLOCKS

    @property
    def blocks(self) -> int:
        """Behind the tensor's are some that no rank has, longer together than a bitmap of all. So the library never finds that it
        saves bytes to send all blocks, in whose sum nobody would see which of them some rank has."""
        places = prod(self._sizes)
        return places + (places + 64) // (8 * self._bytes - 1) + 1

    def numbers(self, places: torch.Tensor) -> torch.Tensor:
        return (places * self._steps()).sum(0)

    def places(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers.div(self._steps(), rounding_mode="floor") % column(self._sizes)

    def _steps(self) -> torch.Tensor:
        return column([prod(self._sizes[i + 1:]) for i in range(len(self._sizes))])


def column(numbers: Sequence[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64).unsqueeze(1)


def operation_for(wanted: ReduceOp, tensors: Sequence[torch.Tensor]) -> Optional[int]:
    """Of one sparse tensor. None: not by Weir. Decided by what is equal on all ranks, so not by what a rank has."""
    (tensor,) = tensors
    if tensor.device.type != "cpu" or not Layout(tensor).fits:
        return None
    operation = operation_of(wanted, tensor.dtype)
    return operation if operation in ALLOWED else None


class Reduction:
    """A call of a sparse tensor, and behind it one of its shape: the library compares lengths, which may be equal by chance."""

    def __init__(self, tensor: torch.Tensor, operation: int) -> None:
        self._result = c_void_p()
        self._tensor, self._operation, self._layout = tensor, operation, Layout(tensor)
        self._numbers = self._layout.numbers(tensor._indices())
        self.values = reducible(contiguous(tensor._values()))
        shape = torch.tensor(tensor.shape, dtype=torch.int64)
        self._bounds = torch.stack([shape, -shape])  # whose maxima are the highest and, negated, the lowest

    def __del__(self) -> None:
        library.weir_sparse_result_free(self._result)

    def start(self, group: Group) -> Request:
        given = SparseTensor(ctypes.sizeof(SparseTensor), self._layout.blocks * self._layout.elements, self._numbers.data_ptr(),
                             self.values.data_ptr(), self._numbers.numel(), self._layout.elements)
        request = group.start_sparse_all_reduce(given, TYPES[self.values.dtype], self._operation, self._result)
        try:
            return request + group.start_all_reduce(self._bounds.data_ptr(), self._bounds.numel(), DATA_TYPES["WEIR_I64"],
                                                    OPERATIONS["WEIR_MAX"])
        except WeirError:  # the group is over
            group.wait(request)
            raise

    def finish(self) -> None:
        tensor, (highest, negated) = self._tensor, self._bounds
        if not torch.equal(highest, -negated):
            raise WeirError("mismatch", f"all_reduce of sparse tensors: found shape {tuple(tensor.shape)} here, and another one on "
                            "another rank; right: the same on all")
        view = SparseView(size=ctypes.sizeof(SparseView))
        check(library.weir_sparse_result_read(self._result, byref(view)))
        numbers = torch.empty(view.index_count, dtype=torch.int64)
        values = tensor._values().new_empty(view.index_count, *self._layout.dense_sizes)
        check(library.weir_sparse_result_copy(self._result, numbers.data_ptr(), values.data_ptr(), view.index_count))
        total = torch.sparse_coo_tensor(self._layout.places(numbers), values, tensor.shape, **UNCHECKED)
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            tensor.copy_(total._coalesced_(True))


@dataclass(frozen=True)
class SparseAllReduce(Collective):
    """It has no `data`, because the library sends from memory of its own: a NIC need not know the tensor's."""

    values: torch.Tensor  # of this rank

    @property
    def bytes(self) -> int:
        return bytes_of(self.values)


def all_reduce(tensor: torch.Tensor, operation: int) -> Collective:
    reduction = Reduction(tensor, operation)
    return SparseAllReduce("all_reduce", [tensor], (), (), reduction.start, reduction.finish, reduction.values)
