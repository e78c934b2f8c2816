# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that run one check after the other, each in a default group of its own, because it costs seconds to import torch.

Arguments: the modules that have the checks, with commas between them, and patterns of the checks' names. The first
$CHECKS_DONE are over. A rank prints all names, and a line of JSON for each check that is over.
"""
from __future__ import annotations

import ctypes
import faulthandler
import fnmatch
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

import weir_torch

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BACKEND = os.environ["CHECKED_BACKEND"]
SCOPE = os.environ["CHECKED_SCOPE"]
TIMEOUT = timedelta(seconds=30)
LONGEST_S = 60.0  # of a check; then it says where it hangs
dist.distributed_c10d.default_pg_timeout = TIMEOUT  # of groups that name none: PyTorch's half hour is longer than a check
CHECKS: dict[str, Callable[[], None]] = {}


# Workers that load data end with their rank, or they would hold its output open. By linux/prctl.h.
PR_SET_PDEATHSIG, SIGKILL = 1, 9
os.register_at_fork(after_in_child=partial(ctypes.CDLL(None).prctl, PR_SET_PDEATHSIG, SIGKILL))


class Skipped(Exception):
    """Why a check cannot be made."""


def check(body: Callable[[], None]) -> Callable[[], None]:
    """Adds a check. It raises an exception on failure."""
    CHECKS[body.__name__.replace("_", "-")] = body
    return body


def expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def world() -> weir_torch.ProcessGroupWeir:
    return dist.distributed_c10d._get_default_group()


class Meeting:
    """Of the ranks before and after each check. It needs no group."""

    def __init__(self) -> None:
        self.store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANKS, RANK == 0, TIMEOUT)
        self._number = 0

    def sync(self, patience: timedelta = timedelta(seconds=LONGEST_S)) -> None:
        self._number += 1
        self.store.set(f"{self._number}/{RANK}", "")
        self.store.wait([f"{self._number}/{rank}" for rank in range(RANKS)], patience)


def run(name: str, meeting: Meeting) -> tuple[str, str]:
    """Verdict and reason."""
    try:
        dist.init_process_group(getattr(CHECKS[name], "backend", BACKEND), store=dist.PrefixStore(name, meeting.store),
                                rank=RANK, world_size=RANKS, timeout=TIMEOUT)
        CHECKS[name]()
        dist.destroy_process_group()
    except Skipped as reason:
        return "skipped", str(reason)
    except BaseException:  # noqa: BLE001 (also what torch's tests raise to be skipped)
        return "failed", traceback.format_exc()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return "passed", ""


def tell(what: str, **told: object) -> None:
    print(json.dumps({"weir_torch": what, **told}), flush=True)


def main() -> None:
    torch.set_num_threads(1)
    os.environ.pop("WEIR_RINGS", None)  # the switch makes one for each group
    for module in sys.argv[1].split(","):
        importlib.import_module(module)
    names = [name for name in CHECKS if any(fnmatch.fnmatch(name, pattern) for pattern in sys.argv[2:])]
    tell("names", names=names)
    meeting = Meeting()
    for name in names[int(os.environ["CHECKS_DONE"]):]:
        faulthandler.dump_traceback_later(LONGEST_S, exit=True)
        meeting.sync()
        started = time.monotonic()
        verdict, why = run(name, meeting)
        tell("verdict", check=name, verdict=verdict, why=why, seconds=time.monotonic() - started)
        meeting.sync()
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    sys.modules["ranks"] = sys.modules["__main__"]
    main()
