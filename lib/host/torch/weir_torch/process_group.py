# SPDX-License-Identifier: BSD-3-Clause
"""Which calls go through Weir, and which by an inner Gloo group."""

from __future__ import annotations

import os
import weakref
from datetime import timedelta
from typing import Any, Optional

import torch
from torch.distributed import (AllreduceOptions, BarrierOptions, BroadcastOptions, PrefixStore, ProcessGroup,
                               ProcessGroupGloo, ReduceOp)

from .c_api import DATA_TYPES, OPERATIONS, library
from .calls import Calls, CallStatistics
from .group import Group
from .options import Options

TYPES = {torch.float32: DATA_TYPES["WEIR_F32"], torch.float64: DATA_TYPES["WEIR_F64"],
         torch.float16: DATA_TYPES["WEIR_F16"], torch.bfloat16: DATA_TYPES["WEIR_BF16"],
         torch.int8: DATA_TYPES["WEIR_I8"], torch.uint8: DATA_TYPES["WEIR_U8"], torch.int16: DATA_TYPES["WEIR_I16"],
         torch.int32: DATA_TYPES["WEIR_I32"], torch.int64: DATA_TYPES["WEIR_I64"]}

REDUCTIONS = ((ReduceOp.SUM, OPERATIONS["WEIR_SUM"]), (ReduceOp.MIN, OPERATIONS["WEIR_MIN"]),
              (ReduceOp.MAX, OPERATIONS["WEIR_MAX"]), (ReduceOp.PRODUCT, OPERATIONS["WEIR_PRODUCT"]),
              (ReduceOp.AVG, OPERATIONS["WEIR_AVERAGE"]), (ReduceOp.BAND, OPERATIONS["WEIR_AND"]),
              (ReduceOp.BOR, OPERATIONS["WEIR_OR"]), (ReduceOp.BXOR, OPERATIONS["WEIR_XOR"]))

FORWARDED = ("allgather", "allgather_coalesced", "allreduce_coalesced", "alltoall", "alltoall_base", "gather",
             "monitored_barrier", "recv", "recv_anysource", "reduce", "reduce_scatter", "scatter", "send",
             "_allgather_base", "_reduce_scatter_base", "_get_sequence_number_for_group",
             "_set_sequence_number_for_group")


def is_weirs(tensors: list[torch.Tensor]) -> bool:
    """Decided by what is equal on all ranks, or they would call different things. So it does not ask for contiguity."""
    return (len(tensors) == 1 and tensors[0].dtype in TYPES and tensors[0].layout == torch.strided
            and tensors[0].device.type == "cpu")


def operation_for(wanted: ReduceOp, dtype: torch.dtype) -> Optional[int]:
    """None if Weir has none for the type."""
    return next((number for operation, number in REDUCTIONS
                 if operation == wanted and library.weir_is_reducible(TYPES[dtype], number)), None)


class ProcessGroupWeir(ProcessGroup):
    """all_reduce, broadcast and barrier of CPU tensors by Weir, if it knows type and operation; the rest by Gloo."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, options: Options) -> None:
        super().__init__(rank, size)
        self._gloo = ProcessGroupGloo(PrefixStore("gloo", store), rank, size, timeout=timeout)
        self._group = Group(store, rank, size, timeout, options)
        self._calls = Calls(self._group)
        # Runs when the process group goes away, or when the program ends.
        self.close = weakref.finalize(self, close_in_its_own_process, self._calls, os.getpid())

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "weir"

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceOptions()
        operation = operation_for(opts.reduceOp, tensors[0].dtype) if is_weirs(tensors) else None
        if operation is None:
            return self._gloo.allreduce(tensors, opts)
        return self._calls.start(tensors, lambda data: self._group.start_all_reduce(
            data.data_ptr(), data.numel(), TYPES[data.dtype], operation))

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or BroadcastOptions()
        if not is_weirs(tensors):
            return self._gloo.broadcast(tensors, opts)
        return self._calls.start(tensors, lambda data: self._group.start_broadcast(
            data.data_ptr(), data.numel(), TYPES[data.dtype], opts.rootRank))

    def barrier(self, opts: Optional[BarrierOptions] = None) -> Any:
        return self._calls.start_without_data(self._group.start_barrier)

    @property
    def algorithm(self) -> str:
        """Who reduces: "switch", or "ring" after a fallback."""
        return self._group.algorithm

    def statistics(self) -> CallStatistics:
        return self._calls.statistics()

    def transport_statistics(self) -> dict[str, int]:
        """The fields of weir_group_statistics."""
        return self._group.statistics()


def close_in_its_own_process(calls: Calls, process: int) -> None:
    if os.getpid() == process:
        calls.close()


def forwarded(name: str) -> Any:
    def forward(self: ProcessGroupWeir, *arguments: Any, **named: Any) -> Any:
        return getattr(self._gloo, name)(*arguments, **named)
    forward.__name__ = name
    return forward


for _name in FORWARDED:
    setattr(ProcessGroupWeir, _name, forwarded(_name))


def create_group(torchs: Any, options: Optional[Options]) -> ProcessGroupWeir:
    """What torch calls for init_process_group and new_group; `options` is their pg_options."""
    return ProcessGroupWeir(torchs.store, torchs.group_rank, torchs.group_size, torchs.timeout,
                            Options.from_environment() if options is None else options)
