# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks that use two groups in different orders: in each group one of them waits for the other, which looks like a rank that is
late. Who sees both says so."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from torch.distributed.distributed_c10d import get_process_group_ranks

from .c_api import WeirError

LONGEST_SKEW_S = 1.0  # between the ends of the two groups, whose ranks began to wait at about the same time
LOOK_S = 0.01
LATE = re.compile(r"ranks? ([\d, ]+) did not make it within ")  # the library's words

_lock = threading.Lock()
_groups: weakref.WeakSet[Any] = weakref.WeakSet()


def know(group: Any) -> None:
    with _lock:
        _groups.add(group)


def others_than(own: Any) -> list[Any]:
    with _lock:
        return [group for group in _groups if group is not own]


def ranks_of(group: Any) -> Sequence[int]:
    """Among all ranks; none once torch has forgotten the group."""
    try:
        return get_process_group_ranks(group)
    except (KeyError, ValueError):
        return ()


def name_of(group: Any) -> str:
    given = (getattr(group, attribute, "") for attribute in ("group_desc", "group_name"))  # not of torch 1.13
    name = next((name for name in given if name not in ("", "undefined")), "")
    return f"{name} of ranks {', '.join(map(str, ranks_of(group)))}".lstrip()


def late_ranks(group: Any, error: WeirError) -> set[int]:
    """Those that have not made a call in time, among all ranks. Empty: the error is another."""
    found = LATE.search(str(error)) if error.status == "timeout" else None
    return among_all(group, map(int, found[1].split(", ")) if found else ())


def among_all(group: Any, numbers: Any) -> set[int]:
    ranks = ranks_of(group)
    return {ranks[number] for number in numbers if number < len(ranks)}


def crossing(own: Any, error: WeirError) -> str:
    """What else to say of the error that ended a call of this group: who did not come waits for this rank in another group. "": nobody
    does. It may wait for a moment."""
    absent = late_ranks(own, error) or among_all(own, () if error.rank is None else (error.rank,))
    others = [group for group in others_than(own) if absent & {*ranks_of(group)}]
    deadline = time.monotonic() + (LONGEST_SKEW_S if error.status == "timeout" else 0)
    while True:
        ends = {group: group.failure() for group in others}
        for group, end in ends.items():
            if end is not None and (text := crossing_with(own, absent, group, end)):
                return text
        if all(ends.values()) or time.monotonic() >= deadline:
            return ""
        time.sleep(LOOK_S)


def crossing_with(own: Any, absent: set[int], other: Any, end: WeirError) -> str:
    late = late_ranks(other, end)
    waiting = absent & {*ranks_of(other)} - late
    if not waiting or not late & among_all(own, (own.rank(),)):
        return ""
    why = str(end).partition("weir: timeout: ")[2]
    return (f"this rank waited in group {name_of(own)}, and rank {min(waiting)} for this one in group {name_of(other)} ({why}); right is the "
            "same order of groups on all ranks")
