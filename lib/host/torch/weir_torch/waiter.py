# SPDX-License-Identifier: BSD-3-Clause
"""One thread that sleeps until a call of any group is done."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from functools import cache


class Waiter:
    """A descriptor of weir_group_descriptor stays readable after an error. So it is watched for one event at a time."""

    def __init__(self) -> None:
        self._ready = select.epoll()
        self._looks: dict[int, Callable[[], None]] = {}
        threading.Thread(target=self._attend, name="weir_torch", daemon=True).start()

    def add(self, descriptor: int, look: Callable[[], None]) -> None:
        self._looks[descriptor] = look
        self._ready.register(descriptor, select.EPOLLONESHOT)

    def watch(self, descriptor: int) -> None:
        """`look` runs in the thread when the descriptor is readable, once."""
        self._ready.modify(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def remove(self, descriptor: int) -> None:
        self._ready.unregister(descriptor)
        del self._looks[descriptor]

    def _attend(self) -> None:
        while True:
            for descriptor, _ in self._ready.poll():
                if look := self._looks.get(descriptor):
                    look()


@cache
def waiter_of(_: int) -> Waiter:
    """A process made by fork has no thread yet, and another number."""
    return Waiter()


def waiter() -> Waiter:
    return waiter_of(os.getpid())
