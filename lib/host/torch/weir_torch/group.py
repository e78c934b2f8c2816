# SPDX-License-Identifier: BSD-3-Clause
"""A group of the library: its forming, its calls, its end."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from ctypes import byref, c_uint32, c_void_p
from datetime import timedelta
from typing import Any, Optional

from .c_api import (MEMORY_KINDS, RING_COUNTS, STATUS, ContextOptions, GroupOptions, GroupStatistics, SparseTensor, Tensor, WeirError,
                    check, library)
from .meeting import Meeting
from .operators import Operator, loaded
from .options import FALLBACK_NUMBERS, OFFERED, SWITCH_FILES, TRANSPORT_NUMBERS, Options
from .registrations import Registrations

LONGEST_MS = 2**32 - 1

Request = tuple[c_void_p, ...]  # of one call, or of several that follow one another


class Group:
    """Each start_… takes the address of contiguous data, and returns a request for `wait`. Errors are WeirError."""

    def __init__(self, meeting: Meeting, options: Options) -> None:
        self._group = c_void_p()
        self.operators = loaded(options.operators, options.path_mtu, options.message_bytes)
        self._context = open_context(options)
        try:
            check(library.weir_group_form(self._context, byref(group_options(meeting, options, self.operators)), byref(self._group)))
        except WeirError as error:
            library.weir_context_close(self._context)
            if meeting.error is not None:  # which is the cause, and says more
                raise meeting.error from error
            raise
        if meeting.rank == 0 and self.missing_operators:  # nothing else tells that calls by these take the hosts' way, or fail
            warnings.warn(f"weir_torch: {self.missing_operators}", stacklevel=2)
        # The software transport copies what it sends, wherever it lies.
        self.registrations = Registrations(self._register, library.weir_memory_release) if options.transport == "verbs" else None

    def _register(self, address: int, size: int) -> c_void_p:
        memory = c_void_p()
        check(library.weir_memory_register(self._context, MEMORY_KINDS["WEIR_MEMORY_HOST"], address, size, byref(memory)))
        return memory

    @property
    def address(self) -> str:
        """Where the other ranks reach this one's host. "" for a group of one."""
        return library.weir_group_address(self._group).decode()

    @property
    def algorithm(self) -> str:
        """As weir_group_algorithm has it."""
        if not self._group:
            raise RuntimeError("weir_torch: the process group is closed")
        return library.weir_group_algorithm(self._group).decode()

    @property
    def missing_operators(self) -> str:
        """As weir_group_missing_operators has it."""
        return library.weir_group_missing_operators(self._group).decode()

    @property
    def descriptor(self) -> int:
        """Readable while a request is done that nobody has tested, and after an error."""
        descriptor = library.weir_group_descriptor(self._group)
        if descriptor < 0:
            raise RuntimeError(f"weir_torch: {library.weir_last_error().decode(errors='replace')}")
        return descriptor

    def start_all_reduce(self, data: int, count: int, data_type: int, operation: int) -> Request:
        return self._start(library.weir_start_all_reduce, data, data, count, data_type, operation)

    def start_all_reduce_coalesced(self, places: Sequence[tuple[int, int]], data_type: int, operation: int) -> Request:
        """A place is an address and a count."""
        tensors = (Tensor * len(places))(*(Tensor(data, data, count) for data, count in places))
        return self._start(library.weir_start_all_reduce_coalesced, tensors, len(places), data_type, operation)

    def start_sparse_all_reduce(self, tensor: SparseTensor, data_type: int, operation: int, result: c_void_p) -> Request:
        """`result` becomes the caller's."""
        return self._start(library.weir_start_sparse_all_reduce, byref(tensor), data_type, operation, byref(result))

    def start_reduce(self, data: int, count: int, data_type: int, operation: int, root: int) -> Request:
        return self._start(library.weir_start_reduce, data, data, count, data_type, operation, root)

    def start_broadcast(self, data: int, count: int, data_type: int, root: int) -> Request:
        return self._start(library.weir_start_broadcast, data, count, data_type, root)

    def start_all_gather(self, source: int, whole: int, count: int, data_type: int) -> Request:
        return self._start(library.weir_start_all_gather, source, whole, count, data_type)

    def start_reduce_scatter(self, whole: int, result: int, count: int, data_type: int, operation: int) -> Request:
        return self._start(library.weir_start_reduce_scatter, whole, result, count, data_type, operation)

    def start_barrier(self) -> Request:
        return self._start(library.weir_start_barrier)

    def _start(self, function: Callable[..., int], *arguments: Any) -> Request:
        request = c_void_p()
        check(function(self._group, *arguments, byref(request)))
        return (request,)

    @staticmethod
    def is_pending(request: Request) -> bool:
        return any(library.weir_test(call) == STATUS["WEIR_PENDING"] for call in request)

    @staticmethod
    def wait(request: Request) -> None:
        """Until the request is done; the request is gone then. What ends a call with an error ends those behind it too."""
        *before, last = request
        for call in before:
            library.weir_release(call)
        check(library.weir_wait(last))

    def failure(self) -> Optional[WeirError]:
        """What has ended the group."""
        try:
            check(library.weir_group_progress(self._group))
        except WeirError as error:
            return error
        return None

    def statistics(self) -> dict[str, int]:
        counted = GroupStatistics(size=ctypes.sizeof(GroupStatistics))
        check(library.weir_group_read_statistics(self._group, byref(counted)))
        return {name: getattr(counted, name) for name, _ in GroupStatistics._fields_ if name != "size"}

    def abort(self, why: str = "") -> None:
        library.weir_group_abort_because(self._group, why.encode(errors="replace"))

    def close(self) -> None:
        """Calls fail from then on."""
        group, self._group = self._group, c_void_p()
        library.weir_group_close(group)
        if self.registrations is not None:
            self.registrations.close()
        library.weir_context_close(self._context)


def open_context(options: Options) -> c_void_p:
    device = ContextOptions()
    library.weir_context_options_init_sized(byref(device), ctypes.sizeof(device))
    device.transport = TRANSPORT_NUMBERS[options.transport]
    for name in ("device", "ip", "mac"):
        setattr(device, name, getattr(options, name).encode() or None)
    set_given(device, options, "gid_index")
    context = c_void_p()
    check(library.weir_context_open(byref(device), byref(context)))
    return context


def group_options(meeting: Meeting, options: Options, operators: Sequence[Operator]) -> GroupOptions:
    result = GroupOptions()
    library.weir_group_options_init_sized(byref(result), ctypes.sizeof(result))
    result.rank, result.world, result.all_gather = meeting.rank, meeting.world, meeting.all_gather
    result.rendezvous = options.rendezvous.encode() or None
    if options.rings == OFFERED:
        result.ring_count = RING_COUNTS["WEIR_RINGS_OFFERED"]
    elif rings := options.named_rings:
        result.rings = (c_uint32 * len(rings))(*rings)
        result.ring_count = len(rings)
    result.switch_address = options.switch.encode()  # "" is none, whatever the environment says
    for name in (*SWITCH_FILES, "switch_name"):
        setattr(result, name, getattr(options, name).encode() or None)
    result.operators = (c_void_p * len(operators))(*(operator.pointer.value for operator in operators))
    result.operator_count = len(operators)
    result.fallback = FALLBACK_NUMBERS[options.fallback]
    result.form_timeout_ms = result.timeout_ms = min(meeting.timeout // timedelta(milliseconds=1), LONGEST_MS)
    result.lateness_ms = result.timeout_ms  # torch's limit is that of the whole call
    set_given(result, options, "window", "message_bytes", "path_mtu", "ack_timeout_ms")
    return result


def set_given(struct: ctypes.Structure, options: Options, *names: str) -> None:
    """Sets the options that are not None. ctypes would cut a number that does not fit."""
    for name in names:
        if (value := getattr(options, name)) is not None:
            setattr(struct, name, value)
            if getattr(struct, name) != value:
                most = 2**(8 * getattr(type(struct), name).size) - 1
                raise ValueError(f"weir_torch: {name}: found {value}; allowed: 0 .. {most}")
