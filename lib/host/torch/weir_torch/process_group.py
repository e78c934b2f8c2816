# SPDX-License-Identifier: BSD-3-Clause
"""Which calls go through Weir, and which by an inner Gloo group."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import AllgatherOptions
from torch.distributed import (AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions, BroadcastOptions, PrefixStore,
                               ProcessGroup, ReduceOptions, ReduceScatterOptions)

from . import collectives, order, sparse
from .c_api import WeirError
from .calls import Calls, CallStatistics
from .closing import end, end_and_wait, wait_for_ends
from .collectives import Collective, are_movable, operation_for
from .group import Group
from .inner_gloo import InnerGloo
from .meeting import Meeting
from .options import Options
from .uncompiled import hide_methods

# What Gloo does, whatever the tensors are.
FORWARDED = ("allgather_coalesced", "alltoall", "alltoall_base", "all_to_all_single", "gather", "monitored_barrier",
             "recv", "recv_anysource", "scatter", "send", "_get_sequence_number_for_group",
             "_set_sequence_number_for_group")
BY_WEIR = ("allreduce", "allreduce_coalesced", "reduce", "broadcast", "allgather", "_allgather_base",
           "all_gather_single_coalesced", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single_coalesced",
           "barrier")
# Another name of a call in a later torch. 2.13 and what is before it ask for either.
LATER_NAMES = {"all_gather_single": "_allgather_base", "reduce_scatter_single": "_reduce_scatter_base",
              "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
              "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced"}


class ProcessGroupWeir(ProcessGroup):
    """Weir's collectives, if it knows type and operation; the rest by Gloo."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, options: Optional[Options]) -> None:
        super().__init__(rank, size)
        self._store = store
        wait_for_ends()
        with Meeting(store, rank, size, timeout) as meeting:
            self._group = Group(meeting, Options.from_environment() if options is None else options)
        self._calls = Calls(self._group, rank, self.getBackendName(), partial(explain, weakref.ref(self)))
        # Runs when the process group goes away, or when the program ends.
        self._end = weakref.finalize(self, end if torch.distributed.is_initialized() else end_and_wait, self._calls, os.getpid())
        # Last, because a rank that cannot come would leave Gloo's others waiting. Torchrun may start ranks again with the same
        # store, where the addresses of those that died are left: a rank that found them would wait for one who is gone.
        self._gloo = InnerGloo(PrefixStore(meeting.name, store), rank, size, timeout, self._group.address)
        self._gloo.serve(self)
        order.know(self)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "weir"

    def get_group_store(self) -> Any:
        return self._store

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceOptions()
        way = sparse if tensors and tensors[0].layout == torch.sparse_coo else collectives
        operation = way.operation_for(opts.reduceOp, tensors) if len(tensors) == 1 else None
        if operation is None:
            return self._gloo.call("allreduce", tensors, opts)
        return self._start(way.all_reduce(tensors[0], operation), opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceCoalescedOptions()
        operation = operation_for(opts.reduceOp, tensors)
        if operation is None:
            return self._gloo.call("allreduce_coalesced", tensors, opts)
        return self._start(collectives.all_reduce_coalesced(tensors, operation), opts)

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or ReduceOptions()
        operation = operation_for(opts.reduceOp, tensors) if len(tensors) == 1 else None
        if operation is None:
            return self._gloo.call("reduce", tensors, opts)
        return self._start(collectives.reduce(tensors[0], operation, opts.rootRank), opts)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or BroadcastOptions()
        if not (len(tensors) == 1 and are_movable(tensors)):
            return self._gloo.call("broadcast", tensors, opts)
        return self._start(collectives.broadcast(tensors[0], opts.rootRank), opts)

    def allgather(self, results: list[list[torch.Tensor]], tensors: list[torch.Tensor], opts: Any = None) -> Any:
        opts = opts or AllgatherOptions()
        if not (len(tensors) == len(results) == 1 and are_movable([*results[0], *tensors])
                and self._holds_all(results[0], tensors[0])):
            return self._gloo.call("allgather", results, tensors, opts)
        return self._start(collectives.all_gather_list(results[0], tensors[0]), opts)

    def _allgather_base(self, result: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        opts = opts or AllgatherOptions()
        if not self._can_gather(result, tensor):
            return self._gloo.call("_allgather_base", result, tensor, opts)
        return self._start(collectives.all_gather_into(result, tensor), opts)

    def all_gather_single_coalesced(self, results: list[torch.Tensor], tensors: list[torch.Tensor],
                                    opts: Any = None) -> Any:
        """One call for all, as functional collectives have it, mostly for one pair."""
        opts = opts or AllgatherOptions()
        if not all(self._can_gather(*pair) for pair in zip(results, tensors, strict=True)):
            return self._gloo.call("all_gather_single_coalesced", results, tensors, opts)
        return self._start(collectives.all_gather_into_each(results, tensors, self.size()), opts)

    def reduce_scatter(self, results: list[torch.Tensor], tensors: list[list[torch.Tensor]], opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        operation = operation_for(opts.reduceOp, [*results, *tensors[0]]) if len(results) == 1 else None
        if operation is None or not self._holds_all(tensors[0], results[0]):
            return self._gloo.call("reduce_scatter", results, tensors, opts)
        whole = torch.cat([tensor.detach().flatten() for tensor in tensors[0]])
        return self._start(collectives.reduce_scatter(results[0], whole, operation), opts)

    def _reduce_scatter_base(self, result: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        operation = self._operation_to_scatter([result], [tensor], opts)
        if operation is None:
            return self._gloo.call("_reduce_scatter_base", result, tensor, opts)
        return self._start(collectives.reduce_scatter(result, tensor, operation), opts)

    def reduce_scatter_single_coalesced(self, results: list[torch.Tensor], tensors: list[torch.Tensor],
                                        opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        operation = self._operation_to_scatter(results, tensors, opts)
        if operation is None:
            return self._gloo.call("reduce_scatter_single_coalesced", results, tensors, opts)
        return self._start(collectives.reduce_scatter_each(results, tensors, operation, self.size()), opts)

    def all_reduce_by(self, tensor: torch.Tensor, operator: str) -> Any:
        """The all-reduce by one of the options' operators, named as in its text. The tensor becomes the result when the work that is
        returned is done: of numbers (f32, or what becomes f32), which are packed for an operator such as mxfp8-e4m3-sum, or of uint8
        that are packed already."""
        number = self._number_of(operator)
        return self._calls.start(collectives.all_reduce_by(tensor, self._group.operators[number], number))

    def reduce_scatter_by(self, result: torch.Tensor, tensor: torch.Tensor, operator: str) -> Any:
        """The reduce-scatter by one of the options' operators. `tensor` has a share for each rank, of `result`'s size and type: of numbers,
        or of uint8 that are packed already, each share for itself."""
        if tensor.numel() != self.size() * result.numel() or tensor.dtype != result.dtype:
            raise ValueError(f"weir_torch: tensor: found {tensor.numel()} of {tensor.dtype}; allowed: {self.size()} ranks' shares as `result`: "
                             f"{self.size() * result.numel()} of {result.dtype}")
        number = self._number_of(operator)
        return self._calls.start(collectives.reduce_scatter_by(result, tensor, self._group.operators[number], number, self.size()))

    def _number_of(self, operator: str) -> int:
        names = self.operators
        if operator not in names:
            allowed = ", ".join(names) or "none, as Options.operators is empty"
            raise ValueError(f"weir_torch: operator: found {operator!r}; allowed: {allowed}")
        return names.index(operator)

    def barrier(self, opts: Optional[BarrierOptions] = None) -> Any:
        return self._start(collectives.barrier(), opts or BarrierOptions())

    def _start(self, collective: Collective, opts: Any) -> Any:
        return self._calls.start(collective, opts.timeout)

    def _holds_all(self, parts: list[torch.Tensor], part: torch.Tensor) -> bool:
        return len(parts) == self.size() and all(other.numel() == part.numel() for other in parts)

    def _can_gather(self, result: torch.Tensor, tensor: torch.Tensor) -> bool:
        return are_movable([result, tensor]) and result.numel() == self.size() * tensor.numel()

    def _operation_to_scatter(self, results: list[torch.Tensor], tensors: list[torch.Tensor], opts: Any) -> Optional[int]:
        fits = all(tensor.numel() == self.size() * result.numel()
                   for result, tensor in zip(results, tensors, strict=True))
        return operation_for(opts.reduceOp, [*results, *tensors]) if fits else None

    def shutdown(self) -> None:
        """torch's destroy_process_group calls it. Calls that are under way fail."""
        self._end()

    def close(self) -> None:
        """Gives the rings back. Calls that are under way fail."""
        self._end()
        wait_for_ends()

    def failure(self) -> Optional[WeirError]:
        """What has ended the group; None: it goes on, or is closed."""
        return self._calls.failure()

    def abort(self) -> None:
        """On this rank all calls fail at once, on the others as soon as they hear of it."""
        self._calls.abort()
        self._gloo.abort()

    @property
    def algorithm(self) -> str:
        """Who reduces: "switch"; "ring" after a fallback; "local" and "alone" where no switch is needed."""
        return self._group.algorithm

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of the options' operators."""
        return tuple(loaded.name for loaded in self._group.operators)

    @property
    def missing_operators(self) -> str:
        """Which of the options' operators the hosts fold by although the algorithm is "switch", and why; "" if there is none."""
        return self._group.missing_operators

    def statistics(self) -> CallStatistics:
        return replace(self._calls.statistics(), gloo_calls=self._gloo.calls)

    def transport_statistics(self) -> dict[str, int]:
        """The fields of weir_group_statistics."""
        return self._group.statistics()


def explain(group: weakref.ref[ProcessGroupWeir], error: WeirError) -> str:
    alive = group()
    return "" if alive is None else order.crossing(alive, error)


def forwarded(name: str) -> Any:
    def forward(self: ProcessGroupWeir, *arguments: Any, **named: Any) -> Any:
        return self._gloo.call(name, *arguments, **named)
    forward.__name__ = name
    return forward


for _name in FORWARDED:
    setattr(ProcessGroupWeir, _name, forwarded(_name))
hide_methods(ProcessGroupWeir, *FORWARDED, *BY_WEIR)
for _name, _older in LATER_NAMES.items():
    setattr(ProcessGroupWeir, _name, getattr(ProcessGroupWeir, _older))


def create_group(torchs: Any, options: Optional[Options]) -> ProcessGroupWeir:
    """What torch calls for init_process_group and new_group; `options` is their pg_options."""
    return ProcessGroupWeir(torchs.store, torchs.group_rank, torchs.group_size, torchs.timeout, options)
