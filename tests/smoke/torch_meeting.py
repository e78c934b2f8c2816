# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that meet by a Store again and again, and one of them comes wrongly or not at all. Ends with
"torch_meeting: exact" and status 0."""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist

import weir_torch

RANK, RANKS, WRONG = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 2
LONG, SHORT = timedelta(seconds=60), timedelta(seconds=2)
SOON_S = 20.0  # far less than LONG, which waits for a rank that does not come
OPTIONS = replace(weir_torch.Options.from_environment(), fallback="ring")


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"torch_meeting: rank {RANK}: {otherwise}")


class BrokenStore:
    def set(self, *_: object) -> None:
        raise ZeroDivisionError("the store is broken")


def error_of(call: Callable[[], object]) -> BaseException:
    started = time.monotonic()
    try:
        call()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        expect(time.monotonic() - started < SOON_S, f"told after {time.monotonic() - started:.0f} s: {error}")
        return error
    raise SystemExit(f"torch_meeting: rank {RANK}: a group without rank {WRONG}")


def form(store: object, timeout: timedelta, options: weir_torch.Options | None = OPTIONS) -> weir_torch.ProcessGroupWeir:
    return weir_torch.ProcessGroupWeir(store, RANK, RANKS, timeout, options)


def expect_cannot_come(error: BaseException, why: str) -> None:
    expect(isinstance(error, weir_torch.WeirError) and error.rank == WRONG and error.status == "transport_failure"
           and f"rank {WRONG} cannot come: " in str(error) and why in str(error), f"{error!r}; should say {why}")


def mistake_an_option(store: dist.Store) -> None:
    """Before the library is called at all."""
    with patch.dict(os.environ, {"WEIR_WINDOW": "many"} if RANK == WRONG else {}):
        error = error_of(lambda: form(store, LONG, options=None))
    if RANK == WRONG:
        expect(isinstance(error, ValueError), f"{error!r}")
    else:
        expect_cannot_come(error, "ValueError: weir_torch: WEIR_WINDOW: found 'many'; allowed: a number from 0 to 4294967295")


def mistake_a_limit(store: dist.Store) -> None:
    """The library refuses it before its all-gather."""
    error = error_of(lambda: form(store, LONG, replace(OPTIONS, window=0) if RANK == WRONG else OPTIONS))
    if RANK == WRONG:
        expect(isinstance(error, weir_torch.WeirError) and error.status == "invalid_argument", f"{error!r}")
    else:
        expect_cannot_come(error, "window: found 0; allowed: ")


def lack_a_device(store: dist.Store) -> None:
    """The library tells the others by its all-gather."""
    error = error_of(lambda: form(store, LONG, replace(OPTIONS, device="nowhere") if RANK == WRONG else OPTIONS))
    if RANK == WRONG:
        expect("interface nowhere: not found" in str(error), f"{error!r}")
    else:
        expect_cannot_come(error, "interface nowhere: not found")


def break_the_store(store: dist.Store) -> None:
    """An exception in the library's callback comes out of the call. The rank can tell nobody."""
    error = error_of(lambda: form(BrokenStore() if RANK == WRONG else store, SHORT))
    if RANK == WRONG:
        expect(isinstance(error, ZeroDivisionError), f"{error!r}")
    else:
        expect_did_not_come(error)


def stay_away(store: dist.Store) -> None:
    if RANK != WRONG:
        expect_did_not_come(error_of(lambda: form(store, SHORT)))


def expect_did_not_come(error: BaseException) -> None:
    expect(isinstance(error, weir_torch.WeirError) and error.status == "rendezvous_timeout" and error.rank == WRONG
           and f"rank {WRONG} of {RANKS} did not come within 0:00:02" in str(error), f"{error!r}")


def is_in(store: dist.Store, key: str) -> bool:
    try:
        store.wait([key], timedelta(milliseconds=10))
    except RuntimeError:
        return False
    return True


def meet(store: dist.Store, rendezvous: str) -> None:
    """No port is agreed. What the ranks said, and so the secret, is not in the store any more."""
    group = form(store, LONG, replace(OPTIONS, rendezvous=rendezvous))
    total = torch.full((3,), float(RANK))
    group.allreduce([total]).wait()
    expect(total.tolist() == [6.0] * 3, f"{total}")
    group.barrier().wait()
    for rank in range(RANKS):
        expect(not is_in(store, f"weir/{rank}"), f"the store still has what rank {rank} said")
    group.close()


def main() -> None:
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANKS, RANK == 0, LONG)
    for number, scene in enumerate((mistake_an_option, mistake_a_limit, lack_a_device, break_the_store, stay_away)):
        scene(dist.PrefixStore(str(number), store))
    meet(dist.PrefixStore("any", store), "")
    meet(dist.PrefixStore("v6", store), "[::1]:0")
    store.set(f"done {RANK}", "")
    store.wait([f"done {rank}" for rank in range(RANKS)], LONG)  # rank 0 holds the store
    print("torch_meeting: exact", flush=True)


main()
