# SPDX-License-Identifier: BSD-3-Clause
"""torch's collectives as calls of the library, on contiguous memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional

import torch
from torch.distributed import ReduceOp

from .c_api import BY_OPERATOR, DATA_TYPES, OPERATIONS, library
from .engines import ENGINES
from .group import Group, Request
from .operators import Operator

TYPES = {torch.float32: DATA_TYPES["WEIR_F32"], torch.float64: DATA_TYPES["WEIR_F64"],
         torch.float16: DATA_TYPES["WEIR_F16"], torch.bfloat16: DATA_TYPES["WEIR_BF16"],
         torch.int8: DATA_TYPES["WEIR_I8"], torch.uint8: DATA_TYPES["WEIR_U8"], torch.int16: DATA_TYPES["WEIR_I16"],
         torch.int32: DATA_TYPES["WEIR_I32"], torch.int64: DATA_TYPES["WEIR_I64"]}

REDUCTIONS = ((ReduceOp.SUM, OPERATIONS["WEIR_SUM"]), (ReduceOp.MIN, OPERATIONS["WEIR_MIN"]),
              (ReduceOp.MAX, OPERATIONS["WEIR_MAX"]), (ReduceOp.PRODUCT, OPERATIONS["WEIR_PRODUCT"]),
              (ReduceOp.AVG, OPERATIONS["WEIR_AVERAGE"]), (ReduceOp.BAND, OPERATIONS["WEIR_AND"]),
              (ReduceOp.BOR, OPERATIONS["WEIR_OR"]), (ReduceOp.BXOR, OPERATIONS["WEIR_XOR"]))

# As NCCL's backend has them: any of the ranks, or all.
REDUCTIONS_OF_BOOL = ((ReduceOp.SUM, OPERATIONS["WEIR_OR"]), (ReduceOp.MAX, OPERATIONS["WEIR_OR"]),
                      (ReduceOp.BOR, OPERATIONS["WEIR_OR"]), (ReduceOp.PRODUCT, OPERATIONS["WEIR_AND"]),
                      (ReduceOp.MIN, OPERATIONS["WEIR_AND"]), (ReduceOp.BAND, OPERATIONS["WEIR_AND"]),
                      (ReduceOp.BXOR, OPERATIONS["WEIR_XOR"]))

# Those that are the parts' own.
REDUCTIONS_OF_COMPLEX = ((ReduceOp.SUM, OPERATIONS["WEIR_SUM"]), (ReduceOp.AVG, OPERATIONS["WEIR_AVERAGE"]))

PARTS = {torch.bool: (torch.uint8, REDUCTIONS_OF_BOOL), torch.complex64: (torch.float32, REDUCTIONS_OF_COMPLEX),
         torch.complex128: (torch.float64, REDUCTIONS_OF_COMPLEX)}


def are_movable(tensors: Sequence[torch.Tensor]) -> bool:
    """Of any type, because what is not reduced is bytes. Decided by what is equal on all ranks, or they would call
    different things. So it does not ask for contiguity."""
    return len({(tensor.dtype, tensor.device) for tensor in tensors}) == 1 and all(
        tensor.layout == torch.strided and (tensor.device.type == "cpu" or tensor.device.type in ENGINES)
        and not tensor.is_quantized for tensor in tensors)


def operation_for(wanted: ReduceOp, tensors: Sequence[torch.Tensor]) -> Optional[int]:
    """None if Weir has none for the tensors' type."""
    return operation_of(wanted, tensors[0].dtype) if are_movable(tensors) else None


def operation_of(wanted: ReduceOp, dtype: torch.dtype) -> Optional[int]:
    dtype, reductions = PARTS.get(dtype, (dtype, REDUCTIONS))
    if dtype not in TYPES:
        return None
    return next((number for operation, number in reductions
                 if wanted == operation and library.weir_is_reducible(TYPES[dtype], number)), None)


@dataclass(frozen=True)
class Move:
    """A call of the library, or a piece of one: of `count` elements of each part. `source` and `result` are flat, of one type, and
    have one part or one for each rank, part after part."""

    source: torch.Tensor
    result: torch.Tensor
    count: int
    begin: Callable[[Group, int, int, int], Request]  # with the addresses of source and result, and the count

    @property
    def parts(self) -> int:
        """Of the longer one."""
        return max(len(self.source_rows), len(self.result_rows))

    @property
    def source_rows(self) -> torch.Tensor:
        return in_rows(self.source, self.count)

    @property
    def result_rows(self) -> torch.Tensor:
        return in_rows(self.result, self.count)

    def start(self, group: Group) -> Request:
        return self.begin(group, self.source.data_ptr(), self.result.data_ptr(), self.count)

    def within(self, memory: torch.Tensor, rank: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of `count` elements for the source and the result, in place as the library has it: a rank's one part lies where it
        is among all."""
        all_rows = memory[:self.parts * count * self.source.element_size()].view(self.source.dtype).view(self.parts, count)
        own = all_rows[rank:rank + 1] if self.parts > 1 else all_rows
        return tuple(all_rows if len(rows) == self.parts else own for rows in (self.source_rows, self.result_rows))


def in_rows(data: torch.Tensor, count: int) -> torch.Tensor:
    return data.view(-1, count) if count > 0 else data.view(1, 0)


@dataclass(frozen=True)
class Collective:
    """`tensors` are its results, `data` what the library works on: the results, or contiguous copies. `finish` brings what
    is in copies to the results."""

    name: str  # torch's
    tensors: list[torch.Tensor]
    data: tuple[torch.Tensor, ...]
    moves: tuple[Move, ...]  # for another device, one after the other
    start: Callable[[Group], Request]  # all moves as one call
    finish: Callable[[], None]

    @property
    def bytes(self) -> int:
        """Of the longest buffer: the results of an all-reduce, of an all-gather, what a reduce-scatter reads."""
        return max((bytes_of(data) for data in self.data), default=0)


def moved(name: str, tensors: list[torch.Tensor], data: tuple[torch.Tensor, ...], move: Move, finish: Callable[[], None]) -> Collective:
    return Collective(name, tensors, data, (move,), move.start, finish)


def bytes_of(data: torch.Tensor) -> int:
    return data.numel() * data.element_size()


def contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def known(data: torch.Tensor) -> torch.Tensor:
    """Flat, and of a type that the library moves: others are bytes."""
    flat = data.flatten()
    return flat if data.dtype in TYPES else flat.view(torch.uint8)


def reducible(data: torch.Tensor) -> torch.Tensor:
    """Flat, as the library reduces it: of complex numbers both parts, of bools the bytes, which are 0 or 1."""
    flat = data.flatten()
    if flat.is_complex():
        return torch.view_as_real(flat).flatten()
    return flat.view(torch.uint8) if flat.dtype == torch.bool else flat


def memory_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of all that the tensor may be a part of."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()  # since torch 2.0
    return storage.data_ptr(), storage.nbytes()


def copy_back(data: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    for source, tensor in zip(data, tensors, strict=True):
        if source.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(source.view_as(tensor))


def apart(data: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A copy if they may overlap: the library's buffers do not."""
    return data.clone() if memory_of(data) == memory_of(other) else data


def all_reducing(data: torch.Tensor, operation: int) -> Move:
    flat = reducible(data)
    return Move(flat, flat, flat.numel(), lambda group, source, _, count: group.start_all_reduce(
        source, count, TYPES[flat.dtype], operation))


def all_reduce(tensor: torch.Tensor, operation: int) -> Collective:
    data = contiguous(tensor)
    return moved("all_reduce", [tensor], (data,), all_reducing(data, operation), lambda: copy_back([data], [tensor]))


def all_reduce_coalesced(tensors: list[torch.Tensor], operation: int) -> Collective:
    data = tuple(contiguous(tensor) for tensor in tensors)
    parts = [reducible(part) for part in data]
    places = [(part.data_ptr(), part.numel()) for part in parts]
    return Collective("all_reduce_coalesced", tensors, data, tuple(all_reducing(part, operation) for part in data),
                      lambda group: group.start_all_reduce_coalesced(places, TYPES[parts[0].dtype], operation),
                      lambda: copy_back(data, tensors))


def packed_for(operator: Operator, tensor: torch.Tensor) -> torch.Tensor:
    """Numbers are packed; uint8 are packed already. On the CPU, wherever the tensor is: a packed tensor cannot be cut into pieces."""
    return contiguous(tensor).cpu().flatten() if tensor.dtype == torch.uint8 else operator.pack(tensor)


def put_unpacked(operator: Operator, data: torch.Tensor, tensor: torch.Tensor) -> None:
    numbers = data if tensor.dtype == torch.uint8 else operator.unpack(data, tensor.numel())
    tensor.detach().copy_(numbers.view(tensor.shape))


def as_operator(number: int) -> tuple[int, int]:
    """The library's data type and operation."""
    return BY_OPERATOR["WEIR_AS_OPERATOR"], BY_OPERATOR["WEIR_OPERATOR(0)"] + number


def all_reduce_by(tensor: torch.Tensor, operator: Operator, number: int) -> Collective:
    data = packed_for(operator, tensor)
    return Collective("all_reduce_by", [tensor], (data,), (), lambda group: group.start_all_reduce(
        data.data_ptr(), data.numel(), *as_operator(number)), lambda: put_unpacked(operator, data, tensor))


def reduce_scatter_by(result: torch.Tensor, tensor: torch.Tensor, operator: Operator, number: int, world: int) -> Collective:
    """Each rank's share is packed for itself."""
    whole = torch.cat([packed_for(operator, share) for share in contiguous(tensor).flatten().view(world, -1)])
    data = torch.zeros(whole.numel() // world, dtype=torch.uint8)
    return Collective("reduce_scatter_by", [result], (whole, data), (), lambda group: group.start_reduce_scatter(
        whole.data_ptr(), data.data_ptr(), data.numel(), *as_operator(number)), lambda: put_unpacked(operator, data, result))


def reduce(tensor: torch.Tensor, operation: int, root: int) -> Collective:
    data = contiguous(tensor)
    flat = reducible(data)
    return moved("reduce", [tensor], (data,), Move(flat, flat, flat.numel(), lambda group, source, _, count: group.start_reduce(
        source, count, TYPES[flat.dtype], operation, root)), lambda: copy_back([data], [tensor]))


def broadcast(tensor: torch.Tensor, root: int) -> Collective:
    data = contiguous(tensor)
    flat = known(data)
    return moved("broadcast", [tensor], (data,), Move(flat, flat, flat.numel(), lambda group, source, _, count: group.start_broadcast(
        source, count, TYPES[flat.dtype], root)), lambda: copy_back([data], [tensor]))


def gathering(data: torch.Tensor, whole: torch.Tensor) -> Move:
    source = known(data)
    return Move(source, known(whole), source.numel(), lambda group, own, all_parts, count: group.start_all_gather(
        own, all_parts, count, TYPES[source.dtype]))


def all_gather(results: list[torch.Tensor], whole: torch.Tensor, parts: Sequence[torch.Tensor],
               tensor: torch.Tensor) -> Collective:
    """Into `whole`, whose `parts` then are the results."""
    data = apart(contiguous(tensor), whole)
    return moved("all_gather", results, (whole, data), gathering(data, whole), lambda: copy_back(parts, results))


def all_gather_into(result: torch.Tensor, tensor: torch.Tensor) -> Collective:
    whole = contiguous(result)
    return all_gather([result], whole, [whole], tensor)


def all_gather_list(results: list[torch.Tensor], tensor: torch.Tensor) -> Collective:
    whole = torch.empty(len(results), tensor.numel(), dtype=tensor.dtype, device=tensor.device)
    return all_gather(results, whole, list(whole), tensor)


def all_gather_into_each(results: list[torch.Tensor], tensors: list[torch.Tensor], ranks: int) -> Collective:
    """Several, of any types, as one call: their bytes lie one after the other."""
    if len(tensors) == 1:
        return all_gather_into(results[0], tensors[0])
    data = torch.cat([as_bytes(tensor) for tensor in tensors])
    whole = data.new_empty(ranks, data.numel())

    def finish() -> None:
        for result, part in zip(results, whole.split([bytes_of(tensor) for tensor in tensors], dim=1), strict=True):
            result.detach().copy_(part.flatten().view(result.dtype).view_as(result))
    return moved("all_gather", results, (whole, data), gathering(data, whole), finish)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return contiguous(tensor).flatten().view(torch.uint8)


def scattering(source: torch.Tensor, data: torch.Tensor, operation: int) -> Move:
    part = reducible(data)
    return Move(reducible(source), part, part.numel(), lambda group, whole, own, count: group.start_reduce_scatter(
        whole, own, count, TYPES[part.dtype], operation))


def reduce_scatter(result: torch.Tensor, whole: torch.Tensor, operation: int) -> Collective:
    """Of `whole`, each rank's part after the other's."""
    data = contiguous(result)
    source = apart(contiguous(whole), data)
    return moved("reduce_scatter", [result], (source, data), scattering(source, data, operation), lambda: copy_back([data], [result]))


def reduce_scatter_each(results: list[torch.Tensor], tensors: list[torch.Tensor], operation: int,
                        ranks: int) -> Collective:
    """Several of one type as one call: each rank's parts of all lie one after the other."""
    if len(tensors) == 1:
        return reduce_scatter(results[0], tensors[0], operation)
    source = torch.cat([contiguous(tensor).view(ranks, -1) for tensor in tensors], dim=1)
    data = source.new_empty(source.shape[1])
    parts = data.split([result.numel() for result in results])
    return moved("reduce_scatter", results, (source, data), scattering(source, data, operation), lambda: copy_back(parts, results))


def barrier() -> Collective:
    return Collective("barrier", [], (), (), lambda group: group.start_barrier(), lambda: None)
