# SPDX-License-Identifier: BSD-3-Clause
"""Groups that are split from one whose rings the switch makes."""
from __future__ import annotations

import os

from hosts import RANKS
from lab import Lab, smoke_test
from test_control import socket_of
from test_held_rings import MODULE, switch_and_hosts, wait_for_rings, with_room
from test_worker import RENDEZVOUS, Process
from weir import BUILD, expect

SPLIT_RANK = BUILD / "tests/support/split_rank"
GROUPS = int(os.environ.get("WEIR_SPLIT_GROUPS", "3"))  # more, to measure


@smoke_test("split-groups")
def split_groups(lab: Lab) -> None:
    """Halves of a group and copies of it have rings of their own, from the switch that rank 0 alone knows."""
    rings = {"form": GROUPS, "dup": GROUPS, "halves": 2 * GROUPS - 1}
    switch, outside = switch_and_hosts(lab, with_room(lab, max(rings.values())))
    for way in os.environ.get("WEIR_SPLIT_WAYS", "dup,halves").split(","):
        ranks = [Process(lab, outside, [SPLIT_RANK, str(rank), str(RANKS), RENDEZVOUS, f"unix:{socket_of(lab)}", f"host{rank}",
                                        f"10.77.0.{rank + 1}", str(GROUPS), way], WEIR_SWITCH_MODULE=str(MODULE))
                 for rank in range(RANKS)]
        for rank, process in enumerate(ranks):
            status, output = process.wait()
            expect(status == 0 and "split_rank: exact" in output, f"{way}: rank {rank}: {status}, {output}")
            if "WEIR_SPLIT_GROUPS" in os.environ and rank < 2:
                print(f"{way}, rank {rank}:\n{output}")
        wait_for_rings(lab, 7)
    switch.stop()
