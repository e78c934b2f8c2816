# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of its backends, torch.testing._internal.distributed, as checks: unchanged, and where they ask for Gloo
they get Weir. The suite makes those of judged.txt: all that pass with Gloo on CPUs, but for the exceptions of
docs/pytorch.md."""
from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist

import weir_torch
from ranks import BACKEND, CHECKS, RANK, RANKS, SCOPE, Skipped, expect, world

os.environ.update(BACKEND="gloo", INIT_METHOD="env://")

from torch.testing._internal.common_distributed import TEST_SKIPS  # noqa: E402
from torch.testing._internal.common_utils import set_rng_seed  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

SEED = 1234
BARRIERS = 1000  # more than a test has
REASONS = {skip.exit_code: skip.message for skip in TEST_SKIPS.values()}


class InPlaceOfGloo(weir_torch.ProcessGroupWeir):
    """torch makes it where it would make a ProcessGroupGloo."""

    class Settings:
        """What torch writes into a Gloo group's options."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(store, rank, size, timeout, None)
        self.options = self.Settings()

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "gloo"


class Judge(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    pass


def make(name: str) -> None:
    """As unittest and torch's own processes would."""
    distributed_test.Barrier.barrier_id = BARRIERS * list(CHECKS).index(name)  # the same on all ranks
    test = Judge(name)
    test.rank = RANK
    method = getattr(test, name)
    if getattr(method, "__unittest_skip__", False):
        raise Skipped(method.__unittest_skip_why__)
    set_rng_seed(SEED)
    try:
        method()
    except unittest.SkipTest as reason:
        raise Skipped(str(reason)) from None
    except SystemExit as end:
        if end.code in REASONS:
            raise Skipped(REASONS[end.code]) from None
        raise
    distributed_test.Barrier.sync()


def as_check(name: str) -> Callable[[], None]:
    def body() -> None:
        expect(BACKEND == "gloo" or isinstance(world(), InPlaceOfGloo) and world().size() == RANKS, f"judges {world()}")
        make(name)
    body.backend = "gloo"
    return body


# Its tests of the profiler look for shapes of tensors, which a span of Python has not.
distributed_test.PROFILING_SUPPORTED_BACKENDS.remove("gloo")
if BACKEND == "weir":
    dist.distributed_c10d.ProcessGroupGloo = InPlaceOfGloo
all_names = [name for name in sorted(dir(Judge)) if name.startswith("test_")]
judged = (Path(__file__).parent / "judged.txt").read_text().split()
for each in all_names if SCOPE == "all" else judged:
    CHECKS[each] = as_check(each)
