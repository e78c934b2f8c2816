# SPDX-License-Identifier: BSD-3-Clause
"""A Gloo group that can be let go of at any time."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroupGloo

LONGEST_FAREWELL_S = 5.0
LOOK_S = 0.001


class Loan:
    """Aliases of a call's tensors that Gloo's threads may hold."""

    def __init__(self, aliases: list[torch.Tensor], work: Any) -> None:
        self._aliases = [weakref.ref(alias) for alias in aliases]
        self._work = weakref.ref(work)

    def is_over(self) -> bool:
        """A thread of Gloo's lets go of no alias any more: none is left, or the caller still holds them by its work."""
        work = self._work()
        return work is not None and work.is_completed() or all(alias() is None for alias in self._aliases)


class InnerGloo:
    """Gloo's calls, by their names, with aliases of the caller's tensors.

    ~ProcessGroupGloo joins its threads while it holds Python's lock. A thread that has just ended a call may need the
    lock to let go of a tensor that Python has dropped. Then neither goes on (PyTorch's issue 56297). An alias that
    nobody else knows shows when the thread has let go of it."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._group = ProcessGroupGloo(store, rank, size, timeout=timeout)
        self._lock = threading.Lock()
        self._loans: list[Loan] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._group, name)

        def call_with_aliases(*arguments: Any, **named: Any) -> Any:  # no tensor is named
            aliases: list[torch.Tensor] = []
            work = call(*(lent(argument, aliases) for argument in arguments), **named)
            if aliases:
                self._remember(Loan(aliases, work))
            return work
        return call_with_aliases

    def _remember(self, loan: Loan) -> None:
        with self._lock:
            self._loans = [*(other for other in self._loans if not other.is_over()), loan]

    def close(self) -> None:
        """Returns when the group can be let go of. One that waits for other ranks stays for ever."""
        deadline = time.monotonic() + LONGEST_FAREWELL_S
        while not all(loan.is_over() for loan in self._loans):
            if time.monotonic() > deadline:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._group))
                return
            time.sleep(LOOK_S)


def lent(argument: Any, aliases: list[torch.Tensor]) -> Any:
    """The argument with aliases for its tensors. An alias of a sparse tensor would not get the result."""
    if isinstance(argument, (list, tuple)):
        return [lent(part, aliases) for part in argument]
    if not isinstance(argument, torch.Tensor) or argument.layout != torch.strided:
        return argument
    aliases.append(argument.detach())
    return aliases[-1]
