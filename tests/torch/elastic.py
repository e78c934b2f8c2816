# SPDX-License-Identifier: BSD-3-Clause
"""A rank that torchrun starts. The last one kills itself once, and leaves the file $TEMP_DIR/killed. Prints "elastic: exact"."""
from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import weir_torch  # noqa: F401 (makes the backend known)

KILLED = Path(os.environ["TEMP_DIR"]) / "killed"
CALLS = 20


def main() -> None:
    torch.set_num_threads(1)
    os.environ.pop("WEIR_RINGS", None)
    dist.init_process_group("weir", timeout=timedelta(seconds=30))
    ranks = dist.get_world_size()
    for call in range(CALLS):
        total = torch.full((1000,), dist.get_rank() + call)
        dist.all_reduce(total)
        due = ranks * call + ranks * (ranks - 1) // 2
        if not torch.equal(total, torch.full((1000,), due)):
            raise SystemExit(f"elastic: found {total[0]}, should be {due}")
        if dist.get_rank() == ranks - 1 and not KILLED.exists():
            KILLED.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    group = dist.distributed_c10d._get_default_group()
    if group.algorithm != "switch":
        raise SystemExit(f"elastic: reduced by {group.algorithm}")
    dist.destroy_process_group()
    print("elastic: exact", flush=True)


main()
