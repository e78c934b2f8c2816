# SPDX-License-Identifier: BSD-3-Clause
"""The backend "weir" of torch.distributed: collectives through a Weir switch. docs/pytorch.md is its manual.

    import torch.distributed as dist
    import weir_torch

    dist.init_process_group("weir")
"""

import inspect

from torch.distributed import Backend

from .c_api import WeirError
from .operators import Operator
from .options import Options
from .process_group import ProcessGroupWeir, create_group
from .tracer import Record, f, operator
from .training import sum_by

__all__ = ["Operator", "Options", "ProcessGroupWeir", "Record", "WeirError", "f", "operator", "sum_by"]

_knows_devices = "devices" in inspect.signature(Backend.register_backend).parameters  # since torch 2.0
Backend.register_backend("weir", create_group, extended_api=True, **({"devices": ["cpu", "cuda"]} if _knows_devices else {}))
