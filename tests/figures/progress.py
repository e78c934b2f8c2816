# SPDX-License-Identifier: BSD-3-Clause
"""The progress of a long computation: one changing line on a terminal, else a line for each figure."""

from __future__ import annotations

import threading
import time
from typing import TextIO

WIDTH = 30
WIPE = "\r\033[K"
SECOND = 1.0


class Progress:
    """Counts figures that are done. Several threads may use it. As a context, it clears the line at its end."""

    def __init__(self, total: int, out: TextIO) -> None:
        self._total = total
        self._out = out
        self._is_terminal = out.isatty()
        self._done = 0
        self._begun: dict[str, float] = {}  # those that run, with their start times
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        if self._is_terminal:
            self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._is_terminal:
            self._clock.join()
            self._out.write(WIPE)
            self._out.flush()

    def begin(self, name: str) -> None:
        with self._lock:
            self._begun[name] = time.monotonic()

    def finish(self, name: str) -> None:
        with self._lock:
            self._done += 1
            seconds = time.monotonic() - self._begun.pop(name)
            if not self._is_terminal:
                print(f"figures: {name} computed in {seconds:.1f} s, {self._done} of {self._total}", file=self._out,
                      flush=True)

    def line(self) -> str:
        """What a terminal shows now."""
        with self._lock:
            filled = WIDTH * self._done // self._total if self._total else WIDTH
            now = time.monotonic()
            under_way = ", ".join(f"{name} {now - begun:.0f} s" for name, begun in self._begun.items())
            return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {self._done}/{self._total} {under_way}"

    def _tick(self) -> None:
        """Updates the times also while nothing finishes."""
        while not self._is_over.wait(SECOND):
            self._out.write(WIPE + self.line())
            self._out.flush()
