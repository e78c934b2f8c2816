# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group find one another: the library's all-gather, by way of torch's Store."""

from __future__ import annotations

import ctypes
import hashlib
import time
from datetime import timedelta
from types import TracebackType
from typing import Any, Optional

from .c_api import ALL_GATHER_FUNCTION, WeirError

COMES, CANNOT_COME = b"+", b"-"  # the first byte of what a rank says
MOST_TEXT = 2000  # bytes of what follows


class Meeting:
    """The library calls `all_gather` once. Leave the block with an error before that, and the other ranks are told."""

    def __init__(self, store: Any, rank: int, world: int, timeout: timedelta) -> None:
        self.rank, self.world, self.timeout = rank, world, timeout
        self._store = store
        self._deadline = time.monotonic() + timeout.total_seconds()
        self._has_spoken = False
        self.error: Optional[BaseException] = None  # why the all-gather failed
        self.name = ""  # on all ranks the same, and of no other meeting by this store: what was said has rank 0's secret
        self.all_gather = ALL_GATHER_FUNCTION(self._fill)

    def __enter__(self) -> Meeting:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 _: Optional[TracebackType]) -> None:
        # It has a reference to this, and with it to the store, which would stay until Python looks for cycles: rank 0's
        # store listens where the next one's will.
        del self.all_gather
        if error is None:
            # All have read it, or there would be no group. Rank 0's holds the group's secret.
            self._store.delete_key(key_of(self.rank))
        elif not self._has_spoken:
            self._say(CANNOT_COME + f"{type(error).__name__}: {error}".encode())

    def _fill(self, _: Any, own: int, size: int, out: int) -> int:
        """ctypes would swallow an exception, and the library would see a success."""
        try:
            self._say(COMES + ctypes.string_at(own, size))
            notes = b"".join(self._read(rank) for rank in range(self.world))
            self.name = hashlib.sha256(notes).hexdigest()
            ctypes.memmove(out, notes, size * self.world)
        except BaseException as error:  # noqa: BLE001 (also the user's Ctrl-C)
            self.error = error
            return 1
        return 0

    def _say(self, words: bytes) -> None:
        self._has_spoken = True
        self._store.set(key_of(self.rank), words)

    def _read(self, rank: int) -> bytes:
        left = max(self._deadline - time.monotonic(), 0.001)  # the store takes 0 for ever
        try:
            self._store.wait([key_of(rank)], timedelta(seconds=left))
            said = self._store.get(key_of(rank))
        except RuntimeError as error:
            if time.monotonic() < self._deadline:
                raise WeirError("transport_failure", f"the store of torch: {error}") from error
            raise WeirError("rendezvous_timeout", f"rank {rank} of {self.world} did not come within {self.timeout}",
                            rank) from error
        if said.startswith(CANNOT_COME):
            raise WeirError("transport_failure", f"rank {rank} cannot come: {printable(said[1:])}", rank)
        return said[1:]


def printable(said: bytes) -> str:
    """Another process's text as it may go to terminals and logs."""
    text = said[:MOST_TEXT].decode(errors="replace")
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)


def key_of(rank: int) -> str:
    return f"weir/{rank}"
