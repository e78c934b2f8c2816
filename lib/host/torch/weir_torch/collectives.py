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


def are_movable(tensors: Sequence[torch.Tensor]) -> bool:
    """Of any type, because what is not reduced is bytes. Decided by what is equal on all ranks, or they would call
    different things. So it does not ask for contiguity."""
    return len({tensor.dtype for tensor in tensors}) == 1 and all(
        tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized for tensor in tensors)


def operation_for(wanted: ReduceOp, tensors: Sequence[torch.Tensor]) -> Optional[int]:
    """None if Weir has none for the tensors' type."""
    if not are_movable(tensors) or tensors[0].dtype not in TYPES:
        return None
    return next((number for operation, number in REDUCTIONS
                 if wanted == operation and library.weir_is_reducible(TYPES[tensors[0].dtype], number)), None)


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
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def elements_of(data: torch.Tensor) -> tuple[int, int]:
    """Count and type, as the library moves them."""
    if data.dtype in TYPES:
        return data.numel(), TYPES[data.dtype]
    return bytes_of(data), TYPES[torch.uint8]


def memory_of(tensor: torch.Tensor) -> int:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()  # since torch 2.0
    return storage.data_ptr()


def copy_back(data: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    for source, tensor in zip(data, tensors, strict=True):
        if source.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(source.view_as(tensor))


def apart(data: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A copy if they may overlap: the library's buffers do not."""
    return data.clone() if memory_of(data) == memory_of(other) else data


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
        data.data_ptr(), *elements_of(data), root), lambda: copy_back([data], [tensor]))


def all_gather(results: list[torch.Tensor], whole: torch.Tensor, parts: Sequence[torch.Tensor],
               tensor: torch.Tensor) -> Collective:
    """Into `whole`, whose `parts` then are the results."""
    data = apart(contiguous(tensor), whole)
    return Collective("all_gather", results, (whole, data), lambda group: group.start_all_gather(
        data.data_ptr(), whole.data_ptr(), *elements_of(data)), lambda: copy_back(parts, results))


def all_gather_into(result: torch.Tensor, tensor: torch.Tensor) -> Collective:
    whole = contiguous(result)
    return all_gather([result], whole, [whole], tensor)


def all_gather_list(results: list[torch.Tensor], tensor: torch.Tensor) -> Collective:
    whole = torch.empty(len(results), tensor.numel(), dtype=tensor.dtype)
    return all_gather(results, whole, list(whole), tensor)


def all_gather_into_each(results: list[torch.Tensor], tensors: list[torch.Tensor], ranks: int) -> Collective:
    """Several, of any types, as one call: their bytes lie one after the other."""
    if len(tensors) == 1:
        return all_gather_into(results[0], tensors[0])
    data = torch.cat([as_bytes(tensor) for tensor in tensors])
    whole = torch.empty(ranks, data.numel(), dtype=torch.uint8)

    def finish() -> None:
        for result, part in zip(results, whole.split([bytes_of(tensor) for tensor in tensors], dim=1), strict=True):
            result.detach().copy_(part.flatten().view(result.dtype).view_as(result))
    return Collective("all_gather", results, (whole, data), lambda group: group.start_all_gather(
        data.data_ptr(), whole.data_ptr(), *elements_of(data)), finish)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return contiguous(tensor).flatten().view(torch.uint8)


def reduce_scatter(result: torch.Tensor, whole: torch.Tensor, operation: int) -> Collective:
    """Of `whole`, each rank's part after the other's."""
    data = contiguous(result)
    source = apart(contiguous(whole), data)
    return Collective("reduce_scatter", [result], (source, data), lambda group: group.start_reduce_scatter(
        source.data_ptr(), data.data_ptr(), data.numel(), TYPES[data.dtype], operation),
        lambda: copy_back([data], [result]))


def reduce_scatter_each(results: list[torch.Tensor], tensors: list[torch.Tensor], operation: int,
                        ranks: int) -> Collective:
    """Several of one type as one call: each rank's parts of all lie one after the other."""
    if len(tensors) == 1:
        return reduce_scatter(results[0], tensors[0], operation)
    source = torch.cat([contiguous(tensor).view(ranks, -1) for tensor in tensors], dim=1)
    data = source.new_empty(source.shape[1])
    parts = data.split([result.numel() for result in results])
    return Collective("reduce_scatter", results, (source, data), lambda group: group.start_reduce_scatter(
        source.data_ptr(), data.data_ptr(), data.numel(), TYPES[data.dtype], operation),
        lambda: copy_back(parts, results))


def barrier() -> Collective:
    return Collective("barrier", [], (), lambda group: group.start_barrier(), lambda: None)
