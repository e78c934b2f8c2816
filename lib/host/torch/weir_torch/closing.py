# SPDX-License-Identifier: BSD-3-Clause
"""The ends of groups. The library's end waits for ranks that still need this one, and ranks may end their groups in any
order: so each group ends in a thread of its own."""

from __future__ import annotations

import os
import threading
import time

from .calls import Calls

LONGEST_WAIT_S = 3.0  # of a new group, for the rings of those that end

_ending: set[threading.Thread] = set()


def end(calls: Calls, process: int) -> None:
    """In the process that made the group, not in one that it forked. The program's end waits for it."""
    if os.getpid() != process:
        return
    if not threading.main_thread().is_alive():  # threads of Python have ended, and none would be waited for
        calls.close()
        return
    thread = threading.Thread(target=_close, args=(calls,), name="weir_torch close")
    _ending.add(thread)
    thread.start()


def _close(calls: Calls) -> None:
    try:
        calls.close()
    finally:
        _ending.discard(threading.current_thread())


def wait_for_ends() -> None:
    """A new group may use the same rings. It does not wait for ever: another rank may end its group after it."""
    deadline = time.monotonic() + LONGEST_WAIT_S
    for thread in list(_ending):
        thread.join(max(deadline - time.monotonic(), 0))
