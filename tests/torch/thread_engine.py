# SPDX-License-Identifier: BSD-3-Clause
"""An engine whose streams are threads, and whose device memory is the CPU's: what CUDA does, as its manual has it, at random speed."""
from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch

import torch
from torch.futures import Future

from weir_torch import engines, staging

LONGEST_DELAY_S = 0.002
SMALL_PIECE = 4096  # bytes, so that small tensors have several


class ThreadStream:
    """Does what is put there, in its order, some time later."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], object]] = SimpleQueue()
        threading.Thread(target=self._attend, daemon=True).start()

    def put(self, work: Callable[[], object]) -> None:
        self._work.put(work)

    def _attend(self) -> None:
        while True:
            work = self._work.get()
            time.sleep(random.uniform(0, LONGEST_DELAY_S))  # as long as a device may take
            work()


class EagerStream:
    """Of a program that puts nothing there: its tensors are computed before the next call."""

    def put(self, work: Callable[[], object]) -> None:
        work()


class ThreadGate:
    def __init__(self) -> None:
        self._number = 0
        self._changed = threading.Condition()

    def open(self, number: int) -> None:
        with self._changed:
            self._number = max(self._number, number)
            self._changed.notify_all()

    def wait_for(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._number >= number)


class ThreadEngine:
    def __init__(self, program: ThreadStream | EagerStream) -> None:
        self.program = program  # its stream
        self.has_arrived = threading.Event()  # a piece, and the backend knows of it
        self.pieces = 0

    def stream(self, _: torch.device) -> ThreadStream:
        return ThreadStream()

    def current(self, _: torch.device) -> ThreadStream | EagerStream:
        return self.program

    def memory(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8)

    def gate(self) -> ThreadGate:
        return ThreadGate()

    def run(self, stream: ThreadStream, work: Callable[[], object]) -> None:
        stream.put(work)

    def record(self, stream: ThreadStream) -> threading.Event:
        event = threading.Event()
        stream.put(event.set)
        return event

    def wait(self, stream: ThreadStream, event: threading.Event) -> None:
        stream.put(event.wait)

    def is_over(self, event: threading.Event) -> bool:
        return event.is_set()

    def call(self, stream: ThreadStream, function: Callable[[], None]) -> None:
        self.pieces += 1
        stream.put(function)
        stream.put(self.has_arrived.set)

    def hold(self, stream: ThreadStream, gate: ThreadGate, number: int) -> None:
        stream.put(lambda: gate.wait_for(number))

    def keep(self, tensor: torch.Tensor, stream: ThreadStream) -> None:
        pass  # the streams' work has it

    def future(self, _: torch.device, stream: ThreadStream, value: Any) -> Future:
        future: Future = Future()
        stream.put(lambda: future.set_result(value))
        return future

    def soon(self, work: Callable[[], object]) -> None:
        """The program's own work, as a kernel."""
        self.run(self.program, work)

    def synchronize(self) -> None:
        self.record(self.program).wait()


@contextmanager
def engine_of_threads(program: ThreadStream | EagerStream) -> Iterator[ThreadEngine]:
    """All tensors are the device's meanwhile."""
    engine = ThreadEngine(program)
    with patch.dict(engines.ENGINES, {"cpu": engine}), patch.object(staging, "PIECE_BYTES", SMALL_PIECE):
        yield engine
