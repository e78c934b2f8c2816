# SPDX-License-Identifier: BSD-3-Clause
"""torch's collectives as calls of the library, on contiguous memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional

import torch
from torch.distributed import ReduceOp

from .c_api import DATA_TYPES, OPERATIONS, library
from .group import Group, Request

TYPES = {torch.float32: DATA_TYPES["WEIR_F32"], torch.float64: DATA_TYPES["WEIR_F64"],
         torch.float16: DATA_TYPES["WEIR_F16"], torch.bfloat16: DATA_TYPES["WEIR_BF16"],
         torch.int8: DATA_TYPES["WEIR_I8"], torch.uint8: DATA_TYPES["WEIR_U8"], torch.int16: DATA_TYPES["WEIR_I16"],
         torch.int32: DATA_TYPES["WEIR_I32"], torch.int64: DATA_TYPES["WEIR_I64"]}

REDUCTIONS = ((ReduceOp.SUM, OPERATIONS["WEIR_SUM"]), (ReduceOp.MIN, OPERATIONS["WEIR_MIN"]),
              (ReduceOp.MAX, OPERATIONS["WEIR_MAX"]), (ReduceOp.PRODUCT, OPERATIONS["WEIR_PRODUCT"]),
              (ReduceOp.AVG, OPERATIONS["WEIR_AVERAGE"]), (ReduceOp.BAND, OPERATIONS["WEIR_AND"]),
              (ReduceOp.BOR, OPERATIONS["WEIR_OR"]), (ReduceOp.BXOR, OPERATIONS["WEIR_XOR"]))


def is_weirs(tensors: Sequence[torch.Tensor]) -> bool:
    """Decided by what is equal on all ranks, or they would call different things. So it does not ask for contiguity."""
    return len({tensor.dtype for tensor in tensors}) == 1 and all(
        tensor.dtype in TYPES and tensor.layout == torch.strided and tensor.device.type == "cpu" for tensor in tensors)


def operation_for(wanted: ReduceOp, tensors: Sequence[torch.Tensor]) -> Optional[int]:
    """None if Weir has none for the tensors' type."""
    if not is_weirs(tensors):
        return None
    return next((number for operation, number in REDUCTIONS
                 if operation == wanted and library.weir_is_reducible(TYPES[tensors[0].dtype], number)), None)


@dataclass(frozen=True)
class Collective:
    """`tensors` are its results, `data` what the library works on: the results, or contiguous copies. `finish` brings what
    is in copies to the results."""

    name: str  # torch's
    tensors: list[torch.Tensor]
    data: tuple[torch.Tensor, ...]
    start: Callable[[Group], Request]
    finish: Callable[[], None]

    @property
    def bytes(self) -> int:
        """Of the longest buffer: the results of an all-reduce, of an all-gather, what a reduce-scatter reads."""
        return max((bytes_of(data) for data in self.data), default=0)


def bytes_of(data: torch.Tensor) -> int:
    return data.numel() * data.element_size()


def contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous()


def copy_back(data: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    for source, tensor in zip(data, tensors, strict=True):
        if source.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(source.view_as(tensor))


def apart(data: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A copy if they may overlap: the library's buffers do not."""
    return data.clone() if data.storage().data_ptr() == other.storage().data_ptr() else data


def all_reduce(tensor: torch.Tensor, operation: int) -> Collective:
    data = contiguous(tensor)
    return Collective("all_reduce", [tensor], (data,), lambda group: group.start_all_reduce(
        data.data_ptr(), data.numel(), TYPES[data.dtype], operation), lambda: copy_back([data], [tensor]))


def all_reduce_coalesced(tensors: list[torch.Tensor], operation: int) -> Collective:
    data = tuple(contiguous(tensor) for tensor in tensors)
    places = [(part.data_ptr(), part.numel()) for part in data]
    return Collective("all_reduce_coalesced", tensors, data, lambda group: group.start_all_reduce_coalesced(
        places, TYPES[data[0].dtype], operation), lambda: copy_back(data, tensors))


def reduce(tensor: torch.Tensor, operation: int, root: int) -> Collective:
    data = contiguous(tensor)
    return Collective("reduce", [tensor], (data,), lambda group: group.start_reduce(
        data.data_ptr(), data.numel(), TYPES[data.dtype], operation, root), lambda: copy_back([data], [tensor]))


def broadcast(tensor: torch.Tensor, root: int) -> Collective:
    data = contiguous(tensor)
    return Collective("broadcast", [tensor], (data,), lambda group: group.start_broadcast(
        data.data_ptr(), data.numel(), TYPES[data.dtype], root), lambda: copy_back([data], [tensor]))


def all_gather(results: list[torch.Tensor], whole: torch.Tensor, parts: Sequence[torch.Tensor],
               tensor: torch.Tensor) -> Collective:
    """Into `whole`, whose `parts` then are the results."""
    data = apart(contiguous(tensor), whole)
    return Collective("all_gather", results, (whole, data), lambda group: group.start_all_gather(
        data.data_ptr(), whole.data_ptr(), data.numel(), TYPES[data.dtype]), lambda: copy_back(parts, results))


def all_gather_into(result: torch.Tensor, tensor: torch.Tensor) -> Collective:
    whole = contiguous(result)
    return all_gather([result], whole, [whole], tensor)


def all_gather_list(results: list[torch.Tensor], tensor: torch.Tensor) -> Collective:
    whole = torch.empty(len(results), tensor.numel(), dtype=tensor.dtype)
    return all_gather(results, whole, list(whole), tensor)


def reduce_scatter(result: torch.Tensor, whole: torch.Tensor, operation: int) -> Collective:
    """Of `whole`, each rank's part after the other's."""
    data = contiguous(result)
    source = apart(contiguous(whole), data)
    return Collective("reduce_scatter", [result], (source, data), lambda group: group.start_reduce_scatter(
        source.data_ptr(), data.data_ptr(), data.numel(), TYPES[data.dtype], operation),
        lambda: copy_back([data], [result]))


def barrier() -> Collective:
    return Collective("barrier", [], (), lambda group: group.start_barrier(), lambda: None)
