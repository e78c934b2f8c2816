# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that forms its groups again and again, as a program that goes on after a failure does: nothing of a
group may outlive it until the garbage collector comes. Then what the profiler tells of a call. Ends with "torch_again:
exact" and status 0."""
from __future__ import annotations

import gc
import time
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

import weir_torch  # noqa: F401 (makes the backend known)

TIMES = 4
LATE_S = 0.2  # of the last rank


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"torch_again: {otherwise}")


def form_and_leave(time_number: int) -> None:
    dist.init_process_group("weir", timeout=timedelta(seconds=15))
    total = torch.ones(2)
    dist.all_reduce(total)
    expect(total.tolist() == [4, 4], f"time {time_number}: found {total.tolist()}")
    dist.barrier()
    group = weakref.ref(dist.distributed_c10d._get_default_group())
    dist.destroy_process_group()
    expect(group() is None, f"time {time_number}: something still has the group")


def profile_a_call() -> None:
    """Every rank's call lasts until the last rank has come."""
    dist.init_process_group("weir", timeout=timedelta(seconds=15))
    dist.barrier()
    with torch.profiler.profile() as profile:
        if dist.get_rank() == dist.get_world_size() - 1:
            time.sleep(LATE_S)
        dist.all_reduce(torch.ones(4))
    shown = {event.key: event for event in profile.key_averages()}
    expect("weir:all_reduce" in shown, f"the profiler has {sorted(shown)}")
    if dist.get_rank() == 0:
        took_s = shown["weir:all_reduce"].cpu_time_total / 1e6
        expect(took_s > LATE_S / 2, f"the call took {took_s} s for the profiler; the last rank came after {LATE_S} s")
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    torch.set_num_threads(1)
    gc.disable()
    for time_number in range(TIMES):
        form_and_leave(time_number)
    profile_a_call()
    print("torch_again: exact", flush=True)


main()
