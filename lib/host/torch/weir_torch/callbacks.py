# SPDX-License-Identifier: BSD-3-Clause
"""Who runs what callers have attached to futures."""

from __future__ import annotations

import dis
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from queue import SimpleQueue
from types import FrameType
from typing import Optional

LOOK_S = 0.01  # how often a callback looks whether the one before it waits
LONGEST_CALLBACK_S = 10.0  # for one that waits in a way that nobody knows

BETWEEN_NAME_AND_CALL = ("CACHE", "PRECALL", "PUSH_NULL")  # by version of Python

Job = Callable[[], None]


class Threads:
    """Idle ones are kept for ever: torch's profiler, which records what callbacks do, crashes now and then at the end of a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Job]] = []

    def run(self, job: Job) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._attend, args=(inbox,), name="weir_torch callbacks", daemon=True).start()
        inbox.put(job)

    def _attend(self, inbox: SimpleQueue[Job]) -> None:
        while True:
            inbox.get()()
            with self._lock:
                self._idle.append(inbox)


@cache
def threads_of(_: int) -> Threads:
    """A process made by fork has none yet, and another number."""
    return Threads()


class Turn:
    """Of one work's callbacks."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.thread: Optional[int] = None  # that runs them

    def run(self, before: Optional[Turn], callbacks: Job) -> None:
        try:
            if before is not None:
                before.wait_until_it_gives_way()
            self.thread = threading.get_ident()
            callbacks()
        finally:
            self.over.set()

    def wait_until_it_gives_way(self) -> None:
        deadline = time.monotonic() + LONGEST_CALLBACK_S
        while not self.over.wait(LOOK_S) and not self._waits() and time.monotonic() < deadline:
            pass

    def _waits(self) -> bool:
        """The methods that wait for a future or a work are all named so, in Python and in C++."""
        frame = sys._current_frames().get(self.thread) if self.thread is not None else None
        return frame is not None and "wait" in (frame.f_code.co_name, method_called_in(frame)) and not self.over.is_set()


def method_called_in(frame: FrameType) -> str:
    """Without arguments, of C++: it has no frame of its own. "": something else is under way."""
    name = ""
    for step in dis.get_instructions(frame.f_code):
        if step.offset >= frame.f_lasti:
            break
        if step.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            name = step.argval
        elif step.opname not in BETWEEN_NAME_AND_CALL:
            name = ""
    return name


class Callbacks:
    """Runs the callbacks of works in the works' order, because they may start calls, whose order all ranks share. One that
    waits for another call gives way: the other's future would wait behind it for ever. One that is only slow does not."""

    def __init__(self) -> None:
        self._last: Optional[Turn] = None

    def run(self, callbacks: Job) -> None:
        before, self._last = self._last, Turn()
        threads_of(os.getpid()).run(partial(self._last.run, before, callbacks))
