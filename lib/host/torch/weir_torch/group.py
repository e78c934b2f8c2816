# SPDX-License-Identifier: BSD-3-Clause
"""A group of the library: its forming by way of torch's Store, its calls, its end."""

from __future__ import annotations

import ctypes
import os
import socket
from ctypes import byref, c_uint32, c_void_p
from datetime import timedelta
from typing import Any

from .c_api import ContextOptions, GroupOptions, GroupStatistics, check, library
from .options import FALLBACK_NUMBERS, TRANSPORT_NUMBERS, Options

RENDEZVOUS_KEY = "weir/rendezvous"
LONGEST_MS = 2**32 - 1


class Group:
    """Each start_… takes the address of contiguous data, and returns a request for `wait`. Errors are WeirError."""

    def __init__(self, store: Any, rank: int, world: int, timeout: timedelta, options: Options) -> None:
        self._group = c_void_p()
        context = open_context(options)
        try:
            rendezvous = meeting_point(store, rank, options)
            check(library.weir_group_form(context, byref(group_options(rank, world, rendezvous, timeout, options)),
                                          byref(self._group)))
        finally:
            library.weir_context_close(context)

    @property
    def algorithm(self) -> str:
        """Who reduces: "switch" or "ring"."""
        if not self._group:
            raise RuntimeError("weir_torch: the process group is closed")
        return library.weir_group_algorithm(self._group).decode()

    def start_all_reduce(self, address: int, count: int, data_type: int, operation: int) -> c_void_p:
        request = c_void_p()
        check(library.weir_start_all_reduce(self._group, address, address, count, data_type, operation, byref(request)))
        return request

    def start_broadcast(self, address: int, count: int, data_type: int, root: int) -> c_void_p:
        request = c_void_p()
        check(library.weir_start_broadcast(self._group, address, count, data_type, root, byref(request)))
        return request

    def start_barrier(self) -> c_void_p:
        request = c_void_p()
        check(library.weir_start_barrier(self._group, byref(request)))
        return request

    def wait(self, request: c_void_p) -> None:
        """Until the request is done; the request is gone then."""
        check(library.weir_wait(request))

    def statistics(self) -> dict[str, int]:
        counted = GroupStatistics(size=ctypes.sizeof(GroupStatistics))
        check(library.weir_group_read_statistics(self._group, byref(counted)))
        return {name: getattr(counted, name) for name, _ in GroupStatistics._fields_ if name != "size"}

    def abort(self) -> None:
        library.weir_group_abort(self._group)

    def close(self) -> None:
        """Calls fail from then on."""
        group, self._group = self._group, c_void_p()
        library.weir_group_close(group)


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


def group_options(rank: int, world: int, rendezvous: str, timeout: timedelta, options: Options) -> GroupOptions:
    result = GroupOptions()
    library.weir_group_options_init_sized(byref(result), ctypes.sizeof(result))
    result.rank, result.world, result.rendezvous = rank, world, rendezvous.encode()
    result.rings = (c_uint32 * len(options.rings))(*options.rings)
    result.ring_count = len(options.rings)
    result.fallback = FALLBACK_NUMBERS[options.fallback]
    result.form_timeout_ms = result.timeout_ms = min(timeout // timedelta(milliseconds=1), LONGEST_MS)
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


def meeting_point(store: Any, rank: int, options: Options) -> str:
    """HOST:PORT of rank 0, which tells it by the store."""
    if rank == 0:
        store.set(RENDEZVOUS_KEY, options.rendezvous or own_meeting_point())
    return store.get(RENDEZVOUS_KEY).decode()


def own_meeting_point() -> str:
    """The address by which this rank reaches MASTER_ADDR, and a port that is free now."""
    master = os.environ.get("MASTER_ADDR")
    if not master:
        raise ValueError("weir_torch: MASTER_ADDR and WEIR_RENDEZVOUS: found neither; "
                         "allowed: WEIR_RENDEZVOUS=HOST:PORT, where rank 0 can listen")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((master, 9))  # sends nothing
        host = way.getsockname()[0]
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"
