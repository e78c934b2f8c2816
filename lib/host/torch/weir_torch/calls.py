# SPDX-License-Identifier: BSD-3-Clause
"""Calls under way: who waits for them, and what a caller gets in the meantime."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Optional, Union

import torch
from torch._C._distributed_c10d import Work
from torch.autograd.profiler import record_function
from torch.futures import Future

try:
    from torch._C._profiler import _RecordFunctionFast
except ImportError:  # before torch 2.3
    _RecordFunctionFast = None

from .c_api import WeirError
from .callbacks import Callbacks
from .collectives import Collective
from .group import Group, Request
from .uncompiled import hide_methods
from .waiter import waiter

FOR_EVER = timedelta(0)  # torch's way to say so
MOST_KEPT = 1024

Outcome = Union[list[torch.Tensor], Exception]


def result_of(outcome: Outcome) -> list[torch.Tensor]:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class WeirWork(Work):
    """A call under way. Its future's value is the list of the call's tensors."""

    _kept: OrderedDict[int, WeirWork] = OrderedDict()

    def __init__(self, timeout: timedelta = FOR_EVER) -> None:
        """`timeout` is of a wait that names none."""
        super().__init__()
        self._timeout = timeout
        self._over = threading.Event()
        self._outcome: Outcome = []
        self.ending: Future = Future()
        # Python's set_exception stores a value, in which C++ sees no error. An exception out of `then` is one for both.
        self._result = self.ending.then(lambda ending: result_of(ending.value()))
        self._keep()

    def _keep(self) -> None:
        """C++ code holds the C++ half of a work alone, and would miss the methods below if the Python half were gone.
        So it stays until somebody has asked for the outcome; of works for which nobody asks, the oldest go."""
        self._kept[id(self)] = self
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _let_go(self) -> None:
        self._kept.pop(id(self), None)

    def end(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._over.set()

    def run_callbacks(self) -> None:
        """After end(): what callers have attached to the future runs here, and may wait for another call."""
        self.ending.set_result(self._outcome)

    def is_completed(self) -> bool:
        if self._over.is_set():
            self._let_go()
        return self._over.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and not isinstance(self._outcome, Exception)

    def exception(self) -> Optional[Exception]:
        return self._outcome if isinstance(self._outcome, Exception) else None

    def wait(self, timeout: timedelta = FOR_EVER) -> bool:
        timeout = self._timeout if timeout <= FOR_EVER else timeout
        if not self._over.wait(timeout.total_seconds() if timeout > FOR_EVER else None):
            raise RuntimeError(f"weir_torch: the call is not done after {timeout}; it goes on")
        self._let_go()
        result_of(self._outcome)
        return True

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Future:
        self._let_go()
        return self._result

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return result_of(self._outcome)


hide_methods(WeirWork, "wait", "synchronize", "get_future", "result", "is_completed", "is_success", "exception")


@dataclass(frozen=True)
class Call:
    collective: Collective
    request: Request
    work: WeirWork


@dataclass
class CallStatistics:
    """`calls` and `bytes` went through Weir. `seconds`: how long at least one of them was under way, the wait for the slowest
    rank included. `gloo_calls` went to the inner Gloo group."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    gloo_calls: int = 0


class Calls:
    """Starts the calls of a group. The library ends them in their order."""

    def __init__(self, group: Group, label: str) -> None:
        self._group, self._label = group, label
        self._lock = threading.Lock()  # guards what is below
        self._under_way: deque[Call] = deque()  # in the order of their starts
        self._busy_since = 0.0
        self._closed = self._aborted = False
        self._counted = CallStatistics()
        self._callbacks = Callbacks()
        self._descriptor = group.descriptor
        self._waiter = waiter()
        self._waiter.add(self._descriptor, self._look)

    def start(self, collective: Collective, timeout: timedelta = FOR_EVER) -> WeirWork:
        if not torch.autograd._profiler_enabled():
            return self._start(collective, timeout)
        with record_function(f"{self._label}:{collective.name}") as span:
            with self._told(collective):
                work = self._start(collective, timeout)
            span._call_end_callbacks_on_future(work.ending)  # and not at the end of this block
        return work

    def _told(self, collective: Collective) -> AbstractContextManager[object]:
        """A span beside the call's own with what that one cannot say."""
        if _RecordFunctionFast is None:
            return nullcontext()
        return _RecordFunctionFast(f"{self._label}:start", [], {"call": collective.name, "bytes": collective.bytes,
                                                                "way": self._group.algorithm})

    def _start(self, collective: Collective, timeout: timedelta) -> WeirWork:
        with self._lock:
            if self._closed:
                raise RuntimeError("weir_torch: the process group is closed")
            if self._aborted:
                raise WeirError("aborted", "this rank aborted the group")
            call = Call(collective, collective.start(self._group), WeirWork(timeout))
            if not self._under_way:
                self._busy_since = time.monotonic()
                self._waiter.watch(self._descriptor)
            self._under_way.append(call)
            self._counted.calls += 1
            self._counted.bytes += collective.bytes
        return call.work

    def _look(self) -> None:
        """In the waiter's thread."""
        with self._lock:
            if self._closed:
                return
            while self._under_way and not self._group.is_pending(self._under_way[0].request):
                self._end_first()
            if self._under_way:
                self._waiter.watch(self._descriptor)

    def _end_first(self) -> None:
        """Waits for it if need be."""
        call = self._under_way.popleft()
        outcome = self._outcome_of(call)
        if not self._under_way:
            self._counted.seconds += time.monotonic() - self._busy_since
        call.work.end(outcome)
        self._callbacks.run(call.work.run_callbacks)

    def _outcome_of(self, call: Call) -> Outcome:
        """Any error is the caller's: the thread goes on for the other calls."""
        try:
            self._group.wait(call.request)
            call.collective.finish()
        except Exception as error:  # noqa: BLE001 (of torch's there is no list)
            return error
        return call.collective.tensors

    def statistics(self) -> CallStatistics:
        with self._lock:
            since = time.monotonic() - self._busy_since if self._under_way else 0.0
            return CallStatistics(self._counted.calls, self._counted.bytes, self._counted.seconds + since)

    def abort(self) -> None:
        """The group is over on all ranks. No call that comes later can help others to the end of theirs."""
        with self._lock:
            self._aborted = True
        self._group.abort()

    def close(self) -> None:
        """Ends the group. Calls that are under way fail, on all ranks."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._waiter.remove(self._descriptor)
            if self._under_way:
                self._group.abort()
            while self._under_way:
                self._end_first()
        self._group.close()
