# SPDX-License-Identifier: BSD-3-Clause
"""The Gloo group that does what Weir does not."""

from __future__ import annotations

import os
import weakref
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import PrefixStore, ProcessGroup, ProcessGroupGloo

HAS_BACKENDS = hasattr(ProcessGroup, "_register_backend")  # since torch 2.0
ON_CPU = torch.device("cpu")
NAMED_INTERFACE = "GLOO_SOCKET_IFNAME"  # torch's own variable for it
UNCOUNTED = ("_get_sequence_number_for_group", "_set_sequence_number_for_group")


_alive: weakref.WeakSet[InnerGloo] = weakref.WeakSet()
_left_alone: list[InnerGloo] = []


def _leave_alone() -> None:
    """In a process made by fork the groups have no threads, and crash when they are destroyed: as garbage of a worker that
    loads data, for example."""
    _left_alone.extend(_alive)


os.register_at_fork(after_in_child=_leave_alone)


def make_gloo(store: Any, rank: int, size: int, timeout: timedelta, address: str) -> ProcessGroupGloo:
    """Gloo by itself would take the address of this host's name. Debian gives the name 127.0.1.1, where no other host comes."""
    if not address or NAMED_INTERFACE in os.environ:
        return ProcessGroupGloo(store, rank, size, timeout=timeout)
    options = ProcessGroupGloo._Options()
    options._timeout = timeout
    options._devices = [ProcessGroupGloo.create_device(hostname=address)]
    return ProcessGroupGloo(store, rank, size, options)


class InnerGloo:
    """Since torch 2.0 ProcessGroupGloo is a backend, and a process group has backends."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, address: str) -> None:
        """`address` is where the others find this rank's host; "": Gloo chooses one."""
        self._backend = make_gloo(PrefixStore("gloo", store), rank, size, timeout, address)
        self._group = self._backend
        if HAS_BACKENDS:
            self._group = ProcessGroup(rank, size)
            self.serve(self._group)
        self.calls = 0
        _alive.add(self)

    def serve(self, group: ProcessGroup) -> None:
        """What C++ code asks of the group, and Python cannot override, is Gloo's."""
        if HAS_BACKENDS:
            group._register_backend(ON_CPU, ProcessGroup.BackendType.GLOO, self._backend)
            group._set_default_backend(ProcessGroup.BackendType.GLOO)

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """By torch's name for it."""
        if name not in UNCOUNTED:
            self.calls += 1
        return getattr(self._group, name)(*arguments, **named)

    def abort(self) -> None:
        if HAS_BACKENDS:
            self._backend.abort()
