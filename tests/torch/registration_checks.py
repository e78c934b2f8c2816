# SPDX-License-Identifier: BSD-3-Clause
"""Which memory a NIC is given, and that none is left with it whose pages have gone. The NIC is a list here."""
from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist

from weir_torch import registrations
from weir_torch.registrations import Range, Registrations

from ranks import check, expect, world

SIZE = 1 << 20  # bytes
PRIVATE, ANONYMOUS, FIXED = 2, 0x20, 0x10  # <sys/mman.h>
READ_AND_WRITE = 3

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class Nic:
    def __init__(self) -> None:
        self.known: list[Range] = []
        self.times = 0

    def register(self, address: int, size: int) -> Range:
        self.known.append((address, size))
        self.times += 1
        return address, size

    def made(self) -> Registrations:
        return Registrations(self.register, self.known.remove)


def pages_at(address: int = 0, size: int = SIZE) -> int:
    """New ones: with an address, in place of what is there."""
    return libc.mmap(address or None, size, READ_AND_WRITE, PRIVATE | ANONYMOUS | (FIXED if address else 0), -1, 0)


@contextmanager
def pages() -> Iterator[int]:
    address = pages_at()
    yield address
    libc.munmap(address, SIZE)


@check
def registered_is_what_comes_again() -> None:
    nic = Nic()
    made = nic.made()
    with pages() as address:
        made.use((address, SIZE))
        expect(not nic.known, "what was used once is registered")
        for _ in range(3):
            made.use((address, SIZE))
        expect(nic.known == [(address, SIZE)] and nic.times == 1, f"{nic.times} times, {nic.known}")
        for _ in range(3):
            made.use((address, registrations.LEAST_BYTES - 1))
        expect(nic.times == 1, "small memory is registered")
        made.close()
        expect(not nic.known, "the NIC has memory of a group that is closed")


@check
def pages_that_have_gone_are_not_registered() -> None:
    """All at once, at the end of the range, and those around what is used now."""
    for place, size in ((0, SIZE), (SIZE - mmap.PAGESIZE, mmap.PAGESIZE)):
        nic = Nic()
        made = nic.made()
        with pages() as address:
            for _ in range(2):
                made.use((address, SIZE))
            pages_at(address + place, size)
            made.use((address + mmap.PAGESIZE, SIZE // 2))
            expect(not nic.known, f"old pages are registered, from {place} on")
            for _ in range(2):
                made.use((address, SIZE))
            expect(nic.times == 2 and len(nic.known) == 1, "the new pages are not registered")
            made.close()


@check
def no_more_is_registered_than_there_may_be() -> None:
    nic = Nic()
    with patch.object(registrations, "MOST_RANGES", 1), pages() as first, pages() as second:
        made = nic.made()
        for address in (first, first, second, second):
            made.use((address, SIZE))
        expect(nic.known == [(first, SIZE)], f"{nic.known}")
        pages_at(first)
        made.use((second, SIZE))
        expect(nic.known == [(second, SIZE)], f"no room is made by pages that have gone: {nic.known}")
        made.close()


@check
def a_nic_that_refuses_is_not_asked_again() -> None:
    def refuse(_: int, __: int) -> None:
        asked.append(1)
        raise RuntimeError("RLIMIT_MEMLOCK")
    asked: list[int] = []
    made = Registrations(refuse, asked.remove)
    with pages() as address:
        for _ in range(4):
            made.use((address, SIZE))
    expect(len(asked) == 1, f"asked {len(asked)} times")


@check
def calls_register_their_tensors() -> None:
    """What the library works on, whole: an all-reduce has one range, an all-gather two."""
    nic = Nic()
    world()._group.registrations = nic.made()
    bucket, part = torch.ones(SIZE // 4), torch.ones(SIZE // 4)
    whole = torch.empty(dist.get_world_size() * SIZE // 4)
    for _ in range(2):
        dist.all_reduce(bucket[:100])
        dist.all_gather_into_tensor(whole, part)
    due = {(tensor.data_ptr(), tensor.numel() * 4) for tensor in (bucket, part, whole)}
    expect(set(nic.known) == due, f"{nic.known}, should be {due}")
    world().close()
    expect(not nic.known, "the NIC has memory of a group that is closed")
