# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of DistributedDataParallel by an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch.distributed import distributed_c10d

from .process_group import ProcessGroupWeir


def sum_by(operator: str, group: Optional[ProcessGroupWeir] = None) -> Callable[[Any, Any], torch.futures.Future]:
    """For `model.register_comm_hook(None, sum_by("mxfp8-e4m3-sum"))`: each bucket goes packed, is summed by the operator of the
    group's options, and is divided by the number of ranks, as without a hook."""
    def reduce(_state, bucket):  # noqa: ANN001, ANN202 (torch takes its own classes as annotations, or none)
        over = group or distributed_c10d._get_default_group()
        backend = over if isinstance(over, ProcessGroupWeir) else over._get_backend(bucket.buffer().device)
        work = backend.all_reduce_by(bucket.buffer(), operator)
        return work.get_future().then(lambda done: done.value()[0] / over.size())
    return reduce
