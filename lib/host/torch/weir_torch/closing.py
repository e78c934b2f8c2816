# SPDX-License-Identifier: BSD-3-Clause
"""The ends of groups. The library's end waits for ranks that still need this one, and ranks may end their groups in any
order: so each group ends in a thread of its own. The default group is the last one, and its end waits: who forms it again at
once would find the store of the old one."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Optional

from .calls import Calls

OWN_THREADS = "weir_torch"  # how their names begin; the garbage collector may come in them, and they must go on
LONGEST_WAIT_S = 3.0  # of a new group, for the rings of those that end

_ending: set[threading.Thread] = set()


def end(calls: Calls, process: int) -> Optional[threading.Thread]:
    """In the process that made the group, not in one that it forked. The program's end waits for it."""
    if os.getpid() != process:
        return None
    if error := uncaught_error():
        calls.abort(error)
    if not threading.main_thread().is_alive():  # threads of Python have ended, and none would be waited for
        calls.close()
        return None
    thread = threading.Thread(target=_close, args=(calls,), name="weir_torch close")
    _ending.add(thread)
    thread.start()
    return thread


def uncaught_error() -> str:
    """By which the program ends; "": it does not. At a person's prompt it goes on."""
    error = getattr(sys, "last_value", None)
    if error is None or hasattr(sys, "ps1"):
        return ""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 (its text is the program's own)
        return type(error).__name__


def end_and_wait(calls: Calls, process: int) -> None:
    thread = end(calls, process)
    if thread is not None and not threading.current_thread().name.startswith(OWN_THREADS):
        thread.join()


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
