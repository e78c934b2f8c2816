# SPDX-License-Identifier: BSD-3-Clause
"""Which calls go through Weir, and which by an inner Gloo group."""

from __future__ import annotations

import os
import weakref
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import AllgatherOptions
from torch.distributed import (AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions, BroadcastOptions,
                               PrefixStore, ProcessGroup, ProcessGroupGloo, ReduceOptions, ReduceScatterOptions)

from . import collectives
from .calls import Calls, CallStatistics
from .collectives import is_weirs, operation_for
from .group import Group
from .meeting import Meeting
from .options import Options

FORWARDED = ("allgather_coalesced", "alltoall", "alltoall_base", "gather", "monitored_barrier", "recv",
             "recv_anysource", "scatter", "send", "_get_sequence_number_for_group", "_set_sequence_number_for_group")


class ProcessGroupWeir(ProcessGroup):
    """Weir's collectives of CPU tensors, if it knows type and operation; the rest by Gloo."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, options: Optional[Options]) -> None:
        super().__init__(rank, size)
        with Meeting(store, rank, size, timeout) as meeting:
            self._group = Group(meeting, Options.from_environment() if options is None else options)
        self._calls = Calls(self._group)
        # Runs when the process group goes away, or when the program ends.
        self.close = weakref.finalize(self, close_in_its_own_process, self._calls, os.getpid())
        # Last, because a rank that cannot come would leave Gloo's others waiting.
        self._gloo = ProcessGroupGloo(PrefixStore("gloo", store), rank, size, timeout=timeout)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "weir"

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceOptions()
        operation = operation_for(opts.reduceOp, tensors) if len(tensors) == 1 else None
        if operation is None:
            return self._gloo.allreduce(tensors, opts)
        return self._calls.start(collectives.all_reduce(tensors[0], operation))

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceCoalescedOptions()
        operation = operation_for(opts.reduceOp, tensors)
        if operation is None:
            return self._gloo.allreduce_coalesced(tensors, opts)
        return self._calls.start(collectives.all_reduce_coalesced(tensors, operation))

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or ReduceOptions()
        operation = operation_for(opts.reduceOp, tensors) if len(tensors) == 1 else None
        if operation is None:
            return self._gloo.reduce(tensors, opts)
        return self._calls.start(collectives.reduce(tensors[0], operation, opts.rootRank))

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or BroadcastOptions()
        if not (len(tensors) == 1 and is_weirs(tensors)):
            return self._gloo.broadcast(tensors, opts)
        return self._calls.start(collectives.broadcast(tensors[0], opts.rootRank))

    def allgather(self, results: list[list[torch.Tensor]], tensors: list[torch.Tensor], opts: Any = None) -> Any:
        if not (len(tensors) == len(results) == 1 and is_weirs([*results[0], *tensors])
                and self._holds_all(results[0], tensors[0])):
            return self._gloo.allgather(results, tensors, opts or AllgatherOptions())
        return self._calls.start(collectives.all_gather_list(results[0], tensors[0]))

    def _allgather_base(self, result: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if not is_weirs([result, tensor]) or result.numel() != self.size() * tensor.numel():
            return self._gloo._allgather_base(result, tensor, opts or AllgatherOptions())
        return self._calls.start(collectives.all_gather_into(result, tensor))

    def reduce_scatter(self, results: list[torch.Tensor], tensors: list[list[torch.Tensor]], opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        operation = operation_for(opts.reduceOp, [*results, *tensors[0]]) if len(results) == 1 else None
        if operation is None or not self._holds_all(tensors[0], results[0]):
            return self._gloo.reduce_scatter(results, tensors, opts)
        whole = torch.cat([tensor.detach().flatten() for tensor in tensors[0]])
        return self._calls.start(collectives.reduce_scatter(results[0], whole, operation))

    def _reduce_scatter_base(self, result: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        operation = operation_for(opts.reduceOp, [result, tensor])
        if operation is None or tensor.numel() != self.size() * result.numel():
            return self._gloo._reduce_scatter_base(result, tensor, opts)
        return self._calls.start(collectives.reduce_scatter(result, tensor, operation))

    def barrier(self, opts: Optional[BarrierOptions] = None) -> Any:
        return self._calls.start(collectives.barrier())

    def _holds_all(self, parts: list[torch.Tensor], part: torch.Tensor) -> bool:
        return len(parts) == self.size() and all(other.numel() == part.numel() for other in parts)

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
    return ProcessGroupWeir(torchs.store, torchs.group_rank, torchs.group_size, torchs.timeout, options)
