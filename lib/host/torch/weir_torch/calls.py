# SPDX-License-Identifier: BSD-3-Clause
"""Calls under way: who waits for them, and what a caller gets in the meantime."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
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
from .collectives import Collective, memory_of
from .engines import ENGINES
from .group import Group
from .staging import Staged, Staging, Step
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
        self.arrival: Future = Future()  # of the outcome, before anybody hears of it
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
        self.arrival.set_result(None)
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


class DeviceWork(WeirWork):
    """Of tensors of another device: its stream waits, and the program's thread does not. So an error is seen here only if it has
    come already; else the group's next call has it."""

    staged: Staged

    def is_completed(self) -> bool:
        return super().is_completed() and (self.exception() is not None or self.staged.is_over())

    def wait(self, timeout: timedelta = FOR_EVER) -> bool:
        self._let_go()
        result_of(self._outcome)
        self.staged.wait()
        return True

    def get_future(self) -> Future:
        self._let_go()
        return self.staged.future


hide_methods(WeirWork, "wait", "synchronize", "get_future", "result", "is_completed", "is_success", "exception")
hide_methods(DeviceWork, "wait", "get_future", "is_completed")


@dataclass
class CallStatistics:
    """`calls` and `bytes` went through Weir. `seconds`: how long at least one of them was under way, the wait for the slowest
    rank included. `gloo_calls` went to the inner Gloo group."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    gloo_calls: int = 0


class Calls:
    """Starts the calls of a group in the program's order, which is the same on all ranks. The library ends them in this order."""

    def __init__(self, group: Group, rank: int, label: str, explain: Callable[[WeirError], str]) -> None:
        """`explain` says more of an error that ended a call, or "". It may wait for a moment."""
        self._group, self._rank, self._label, self._explain = group, rank, label, explain
        self._order = threading.Lock()  # of those who make calls; held while a device's driver may wait
        self._lock = threading.Lock()  # guards what is below, for a moment
        self._under_way: deque[Step] = deque()  # in the order of their starts, which some of them wait for
        self._busy_since = 0.0
        self._closed = self._aborted = False
        self._failure: Optional[Exception] = None  # of a call; the group is over then
        self._is_explained = False
        self._counted = CallStatistics()
        self._callbacks = Callbacks()
        self._stagings: dict[torch.device, Staging] = {}
        self._descriptor = group.descriptor
        self._waiter = waiter()
        self._waiter.add(self._descriptor, self._look)

    def start(self, collective: Collective, timeout: timedelta = FOR_EVER) -> WeirWork:
        if not torch.autograd._profiler_enabled():
            return self._start(collective, timeout)
        with record_function(f"{self._label}:{collective.name}") as span:
            with self._told(collective):
                work = self._start(collective, timeout)
            # The span ends with the call, not with this block; and before anybody hears that the call has ended, for whoever stops
            # the profiler then has it free the span's memory, to which it would still write the end.
            span._call_end_callbacks_on_future(work.arrival)
        return work

    def _told(self, collective: Collective) -> AbstractContextManager[object]:
        """A span beside the call's own with what that one cannot say."""
        if _RecordFunctionFast is None:
            return nullcontext()
        return _RecordFunctionFast(f"{self._label}:start", [], {"call": collective.name, "bytes": collective.bytes,
                                                                "way": self._group.algorithm})

    def _start(self, collective: Collective, timeout: timedelta) -> WeirWork:
        with self._order:
            work = self._start_of_host(collective, timeout) if staging_device(collective) is None else self._stage(collective)
        with self._lock:
            self._counted.calls += 1
            self._counted.bytes += collective.bytes
        return work

    def _start_of_host(self, collective: Collective, timeout: timedelta) -> WeirWork:
        work = WeirWork(timeout)
        step = Step(collective.start, lambda error: self._end_of_host(work, collective, error))
        self._register(collective.data)
        with self._lock:
            self._refuse_at_end()
            if all(other.has_started for other in self._under_way):
                step.request, step.has_started = step.start(self._group), True  # an error is the caller's
            self._enter(step)
        return work

    def _register(self, tensors: Sequence[torch.Tensor]) -> None:
        if self._group.registrations is not None:
            for tensor in tensors:
                self._group.registrations.use(memory_of(tensor))

    def _end_of_host(self, work: WeirWork, collective: Collective, error: Optional[Exception]) -> None:
        """Any error is the caller's: the thread goes on for the other calls."""
        try:
            if error is None:
                collective.finish()
        except Exception as mistake:  # noqa: BLE001 (of torch's there is no list)
            error = mistake
        self._end(work, error or collective.tensors)

    def _end(self, work: WeirWork, outcome: Outcome) -> None:
        if isinstance(outcome, WeirError) and not self._is_explained and not (self._closed or self._aborted):
            self._is_explained = True  # one is enough, and it may take a moment
            self._callbacks.run(lambda: self._end_with_error(work, outcome))
            return
        work.end(outcome)
        self._callbacks.run(work.run_callbacks)

    def _end_with_error(self, work: WeirWork, error: WeirError) -> None:
        try:
            error.add(self._explain(error))
        finally:
            work.end(error)
            work.run_callbacks()

    def _stage(self, collective: Collective) -> DeviceWork:
        with self._lock:
            self._refuse_at_end()
            result_of(self._failure or [])  # the library would say so only when the data have come
        work = DeviceWork()
        work.staged = self._staging_for(staging_device(collective)).stage(
            collective, lambda error: self._end(work, error or collective.tensors))
        return work

    def _staging_for(self, device: torch.device) -> Staging:
        if device not in self._stagings:
            staging = Staging(ENGINES[device.type], device, self._rank, self._enter_staged, self._arrive)
            for _ in range(2):  # memory that comes again
                self._register(staging.memories)
            self._stagings[device] = staging
        return self._stagings[device]

    def _enter_staged(self, step: Step) -> None:
        with self._lock:
            self._enter(step)

    def _refuse_at_end(self) -> None:
        if self._closed:
            raise RuntimeError("weir_torch: the process group is closed")
        if self._aborted:
            raise WeirError("aborted", "this rank aborted the group")

    def _enter(self, step: Step) -> None:
        if not self._under_way:
            self._busy_since = time.monotonic()
            self._waiter.watch(self._descriptor)
        self._under_way.append(step)

    def _arrive(self, step: Step) -> None:
        """In a thread of the device's driver. The group may be closed."""
        with self._lock:
            step.is_ready = True
            self._start_ready()

    def _start_ready(self) -> None:
        for step in self._under_way:
            if not step.has_started:
                if not step.is_ready:
                    return
                self._start_late(step)
        self._end_first_ones()

    def _start_late(self, step: Step) -> None:
        step.has_started = True
        try:
            step.request = step.start(self._group)
        except Exception as error:  # noqa: BLE001 (whatever it is, the call's work has it)
            step.error = error

    def _look(self) -> None:
        """In the waiter's thread."""
        with self._lock:
            if self._closed:
                return
            self._end_first_ones()
            if self._under_way:
                self._waiter.watch(self._descriptor)

    def _end_first_ones(self) -> None:
        while self._under_way and self._is_over(self._under_way[0]):
            self._end_first()

    def _is_over(self, step: Step) -> bool:
        return step.has_started and (step.request is None or not self._group.is_pending(step.request))

    def _end_first(self) -> None:
        """Waits for it if need be."""
        step = self._under_way.popleft()
        error = self._error_of(step)
        self._failure = self._failure or error
        if not self._under_way:
            self._counted.seconds += time.monotonic() - self._busy_since
        step.end(error)

    def _error_of(self, step: Step) -> Optional[Exception]:
        if not step.has_started:
            return RuntimeError("weir_torch: the process group was closed before the call's data had come")
        if step.request is None:
            return step.error
        try:
            self._group.wait(step.request)
        except Exception as error:  # noqa: BLE001
            return error
        return None

    def failure(self) -> Optional[WeirError]:
        """What has ended the group, also where no call of this rank was under way."""
        with self._lock:
            return None if self._closed else self._group.failure()

    def statistics(self) -> CallStatistics:
        with self._lock:
            since = time.monotonic() - self._busy_since if self._under_way else 0.0
            return CallStatistics(self._counted.calls, self._counted.bytes, self._counted.seconds + since)

    def abort(self, why: str = "") -> None:
        """The group is over on all ranks, which hear why. No call that comes later can help others to the end of theirs."""
        with self._lock:
            self._aborted = True
        self._group.abort(why)

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


def staging_device(collective: Collective) -> Optional[torch.device]:
    """None: the library reads and writes the memory by itself."""
    device = collective.moves[0].source.device if collective.moves else None
    return device if device is not None and device.type in ENGINES else None
