# SPDX-License-Identifier: BSD-3-Clause
"""Every status of weir.h, by the C API."""
from __future__ import annotations

from lab import Lab, smoke_test
from netns import veth
from test_worker import SUPPORT, Process
from weir import expect

EVERY_STATUS = SUPPORT / "every_status"
STATUSES = 14


@smoke_test("every-status")
def every_status(lab: Lab) -> None:
    """tests/support/every_status.c has the list of them and how each comes about."""
    space = lab.namespace()
    space.ip("link set lo up")
    space.ip("link add bridge type bridge")
    space.ip("link set bridge up")
    for rank in range(2):
        veth(space, f"port{rank}", space, f"host{rank}")
        space.ip(f"link set port{rank} master bridge")
    cut = "ip link set port0 down && ip link set port1 down"
    status, output = Process(lab, space, [EVERY_STATUS, "host0", "host1", cut]).wait()
    expect(status == 0 and f"every_status: {STATUSES} statuses" in output, f"{status}, {output}")
