# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of another device's tensors, through memory of the CPU, piece by piece: while one piece is on the network, the next
comes from the device, and the one before goes back.

All of a call's copies are enqueued when it is made, as NCCL's kernels are. So the program's thread waits for nothing, and its
stream only for the call's last copy. The library starts a piece when the device has copied it, and opens a gate for the way
back: neither needs the device's driver, which a program may block meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Optional

import torch
from torch.futures import Future

from .collectives import Collective, Move
from .engines import Engine, Event
from .group import Group, Request

PIECE_BYTES = 4 << 20
SLOTS = 4


@dataclass
class Step:
    """A call of the library. Steps start in their order, each when it is ready; `end` comes in this order too, with the error."""

    start: Callable[[Group], Request]
    end: Callable[[Optional[Exception]], None]
    is_ready: bool = True
    has_started: bool = False
    request: Optional[Request] = None
    error: Optional[Exception] = None  # of the start


@dataclass
class Slot:
    """Memory of the CPU's for one piece."""

    memory: torch.Tensor
    free: Optional[Event] = None  # when the last piece has gone back


@dataclass
class Staged:
    """A call of which everything is enqueued."""

    end: Event
    future: Future
    wait: Callable[[], None]  # of the program's stream, for the end
    is_over: Callable[[], bool]


@dataclass
class Staging:
    """Of one group and device. One thread at a time stages; `enter` hands each step on, in their order."""

    engine: Engine
    device: torch.device
    rank: int
    enter: Callable[[Step], None]
    arrive: Callable[[Step], None]  # by another thread: the step's data are here
    _opened: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._up, self._down = self.engine.stream(self.device), self.engine.stream(self.device)
        self._gate = self.engine.gate()
        self.memories = [self.engine.memory(PIECE_BYTES) for _ in range(SLOTS)]
        self._slots = cycle([Slot(memory) for memory in self.memories])

    def stage(self, collective: Collective, ended: Callable[[Optional[Exception]], None]) -> Staged:
        """`ended` comes once, when the last step has ended, with the first error."""
        engine = self.engine
        engine.wait(self._up, engine.record(engine.current(self.device)))
        pieces = [(move, *piece) for move in collective.moves for piece in pieces_of(move)]
        ends = Ends(len(pieces), ended)
        for move, begin, count in pieces:
            self._add(move, begin, count, ends)
        for tensor in (*collective.data, *collective.tensors):
            engine.keep(tensor, self._up)
            engine.keep(tensor, self._down)
        engine.run(self._down, collective.finish)
        end = engine.record(self._down)
        return Staged(end, engine.future(self.device, self._down, collective.tensors),
                      lambda: engine.wait(engine.current(self.device), end), lambda: engine.is_over(end))

    def _add(self, move: Move, begin: int, count: int, ends: Ends) -> None:
        engine, slot = self.engine, next(self._slots)
        if slot.free is not None:
            engine.wait(self._up, slot.free)
        source, result = move.within(slot.memory, self.rank, count)
        engine.run(self._up, lambda: copy_rows(source, move.source_rows[:, begin:begin + count]))
        self._opened += 1
        number = self._opened
        step = Step(lambda group: move.begin(group, source.data_ptr(), result.data_ptr(), count),
                    partial(self._end, number, ends), is_ready=False)
        self.enter(step)
        engine.call(self._up, partial(self.arrive, step))
        engine.hold(self._down, self._gate, number)
        engine.run(self._down, lambda: copy_rows(move.result_rows[:, begin:begin + count], result))
        slot.free = engine.record(self._down)

    def _end(self, number: int, ends: Ends, error: Optional[Exception]) -> None:
        """Also after an error the streams go on. The group's next call says what was wrong."""
        ends.note(error)
        self._gate.open(number)


class Ends:
    """Of a call's steps."""

    def __init__(self, steps: int, ended: Callable[[Optional[Exception]], None]) -> None:
        self._left, self._ended = steps, ended
        self._error: Optional[Exception] = None

    def note(self, error: Optional[Exception]) -> None:
        self._left -= 1
        self._error = self._error or error
        if self._left == 0:
            self._ended(self._error)


def pieces_of(move: Move) -> Iterator[tuple[int, int]]:
    """Where each begins in the parts, and how many elements it has of each. A call without elements is one, too."""
    most = max(PIECE_BYTES // (move.parts * move.source.element_size()), 1)
    for begin in range(0, max(move.count, 1), most):
        yield begin, min(most, move.count - begin)


def copy_rows(to: torch.Tensor, source: torch.Tensor) -> None:
    """Row by row, because torch would copy several that have gaps by way of other memory."""
    for row, other in zip(to, source, strict=True):
        row.copy_(other, non_blocking=True)
