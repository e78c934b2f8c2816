# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks of a training without end, until its group has an error. Rank 0 prints the steps. Each prints "status: " and
the error's status, and ends."""
from __future__ import annotations

import re
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import weir_torch  # noqa: F401 (makes the backend known)

TIMEOUT = timedelta(seconds=5)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("weir", timeout=TIMEOUT)
    net = DistributedDataParallel(torch.nn.Linear(64, 64))
    step = 0
    try:
        while True:
            step += 1
            net(torch.ones(1, 64)).sum().backward()
            if dist.get_rank() == 0:
                print(f"step {step}", flush=True)
    except RuntimeError as error:  # out of the backward pass it has lost its class
        status = re.search(r"weir: (\w+): .*", str(error))
        print(f"status: {status[1] if status else error}\n{status[0] if status else ''}", flush=True)


main()
