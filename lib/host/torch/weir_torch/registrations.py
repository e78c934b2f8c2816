# SPDX-License-Identifier: BSD-3-Clause
"""Memory that a NIC reads and writes by itself: that of tensors which come again, such as DistributedDataParallel's buckets.

A NIC keeps the pages that it was given. If torch gives memory back to the system and later has the same addresses with other
pages, the NIC would use the old ones. Nobody tells us when that happens. So registered pages are locked too, which the kernel
forgets when they go, and before each use it is asked whether they still are.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
from collections import OrderedDict
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_void_p
from typing import Any

LEAST_BYTES = 64 << 10  # a smaller copy costs less than to look
MOST_RANGES = 256
MOST_SEEN = 4096  # ranges that were used once
MS_INVALIDATE = 2  # of <sys/mman.h>: msync(2) then fails with EBUSY for locked pages, and else does nothing to memory of no file

Range = tuple[int, int]  # address and bytes


class Pages:
    """Of this process."""

    def __init__(self) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        for name in ("mlock", "munlock"):
            getattr(self._c, name).argtypes = (c_void_p, c_size_t)
        self._c.msync.argtypes = (c_void_p, c_size_t, c_int)

    def lock(self, place: Range) -> bool:
        return self._c.mlock(*place) == 0

    def unlock(self, place: Range) -> None:
        self._c.munlock(*place)

    def are_locked(self, place: Range) -> bool:
        """The first and the last one, because memory is given back as a whole, or at its end."""
        address, size = place
        return all(self._is_locked(at - at % mmap.PAGESIZE) for at in (address, address + size - 1))

    def _is_locked(self, page: int) -> bool:
        return self._c.msync(page, mmap.PAGESIZE, MS_INVALIDATE) != 0 and ctypes.get_errno() == errno.EBUSY

    def tell(self) -> bool:
        """Whether locks say something. Not if the program has all of its memory locked, also what is to come."""
        fresh = mmap.mmap(-1, mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(fresh))
        return not self._is_locked(address)


class Registrations:
    """`register` makes one, and raises an exception if it cannot; `release` ends it. One thread at a time uses it."""

    def __init__(self, register: Callable[[int, int], Any], release: Callable[[Any], None]) -> None:
        self._register, self._release = register, release
        self._pages = Pages()
        self._is_possible = self._pages.tell()
        self._made: dict[Range, Any] = {}
        self._seen: OrderedDict[Range, None] = OrderedDict()

    def use(self, place: Range) -> None:
        """Before a call that uses this memory, or part of it. The second one is not copied, if it can be had."""
        if place[1] < LEAST_BYTES or not self._is_possible:
            return
        self._forget_pages_that_have_gone(place)
        if place in self._seen:
            self._make(place)
        elif place not in self._made:
            self._seen[place] = None
            if len(self._seen) > MOST_SEEN:
                self._seen.popitem(last=False)

    def _forget_pages_that_have_gone(self, place: Range) -> None:
        """Also those of a larger range around the place, in which the library would find it."""
        address, size = place
        self._end_without_pages([other for other in self._made if other[0] < address + size and address < sum(other)])

    def _end_without_pages(self, places: list[Range]) -> None:
        for place in places:
            if not self._pages.are_locked(place):
                self._end(place)

    def _make(self, place: Range) -> None:
        if len(self._made) >= MOST_RANGES:
            self._end_without_pages(list(self._made))
        if len(self._made) >= MOST_RANGES:
            return  # none is let go while its pages are there: a call may be using them
        del self._seen[place]
        if not self._pages.lock(place):
            self._is_possible = False  # RLIMIT_MEMLOCK; what is there stays
            return
        try:
            self._made[place] = self._register(*place)
        except RuntimeError:
            self._pages.unlock(place)
            self._is_possible = False

    def _end(self, place: Range) -> None:
        self._release(self._made.pop(place))
        self._pages.unlock(place)  # of a range that has gone there may be nothing

    def close(self) -> None:
        for place in list(self._made):
            self._end(place)
