# SPDX-License-Identifier: BSD-3-Clause
"""The backend "weir" of torch.distributed: collectives through a Weir switch. docs/pytorch.md is its manual.

    import torch.distributed as dist
    import weir_torch

    dist.init_process_group("weir")
"""

from torch.distributed import Backend

from .c_api import WeirError
from .options import Options
from .process_group import ProcessGroupWeir, create_group

__all__ = ["Options", "ProcessGroupWeir", "WeirError"]

Backend.register_backend("weir", create_group, extended_api=True)
