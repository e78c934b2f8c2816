# SPDX-License-Identifier: BSD-3-Clause
"""Regions by the host library: ranks in C, and a real switch."""
from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from cables import LossyCables
from hosts import RANKS, ring_7, ring_ports
from lab import Lab, smoke_test
from netns import Namespace, veth
from test_control import at_socket, said, socket_of
from test_held_rings import MODULE, room
from test_regions import MEMBERS, rooms
from test_worker import RENDEZVOUS, SUPPORT, Process
from weir import Weir, configuration, expect, wait_for

REGION_RANK = SUPPORT / "region_rank"

def ring_of_three() -> str:
    """Ring 7 without its last member."""
    return re.sub(rf"      - .*p{MEMBERS} .*\n", "", ring_7())


@dataclass(frozen=True)
class Job:
    lab: Lab
    outside: Namespace
    switch: Weir

    def start(self, *ways: str, program: Path = REGION_RANK, rank_0: dict[str, str] | None = None) -> list[Process]:
        """Only rank 0 is told of the switch."""
        told = {"WEIR_SWITCH": f"unix:{socket_of(self.lab)}", "WEIR_SWITCH_MODULE": str(MODULE)} if rank_0 is None else rank_0
        return [Process(self.lab, self.outside, [program, str(rank), str(MEMBERS), RENDEZVOUS, "7", f"host{rank}",
                                                 f"10.77.0.{rank + 1}", *ways],
                        **(told if rank == 0 else {})) for rank in range(MEMBERS)]

    def expect_all(self, ranks: list[Process], *due: str) -> None:
        for rank, (status, output) in enumerate([process.wait() for process in ranks]):
            expect(status == 0 and all(text in output for text in due), f"rank {rank}: {status}, {output}; due: {due}")

    def wait_until_open(self) -> None:
        wait_for(lambda: "open" in said(self.lab, "show region all"), 20, "it does not open")


def with_hosts(lab: Lab, config: str) -> Job:
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", outside, f"host{rank}")
    return Job(lab, outside, lab.ready_weir(fabric, at_socket(lab, config)))


def with_regions(lab: Lab, frames: int = 1024) -> Job:
    return with_hosts(lab, rooms(frames=frames) + room(lab, 1))


@smoke_test("host-regions")
def exact(lab: Lab) -> None:
    """Three ranks write with and without immediates, some megabytes too, and read sums: each byte as a plain computation has it."""
    job = with_regions(lab)
    for way in ("exact", "loopback", "large"):
        job.expect_all(job.start(way, "thread"), "region_rank: exact\n")
    job.switch.stop()


@smoke_test("host-regions-with-loss")
def with_loss(lab: Lab) -> None:
    """The same where a frame in thirty is lost on each of a host's cables, in both directions."""
    fabric, outside, lossy = lab.namespace(), lab.namespace(), LossyCables(lab.namespace(), 0.03)
    for rank in range(RANKS):
        lossy.connect(fabric, f"tap{rank}", outside, f"host{rank}")
    job = Job(lab, outside, lab.ready_weir(fabric, at_socket(lab, rooms() + room(lab, 1))))
    job.expect_all(job.start("loopback", "thread"), "region_rank: exact\n")
    expect(lossy.lost() > 20, f"lost {lossy.lost()}")
    job.switch.stop()


@smoke_test("host-regions-without-a-thread")
def without_a_thread(lab: Lab) -> None:
    """The same where the program's calls alone drive the group."""
    job = with_regions(lab)
    job.expect_all(job.start("exact", "caller"), "region_rank: exact\n")
    job.switch.stop()


@smoke_test("host-regions-range")
def leave_the_range(lab: Lab) -> None:
    """What does not lie within the region, or is no view, is refused before anything is sent; the region goes on."""
    job = with_regions(lab)
    size = 20008 + 4 * 3000
    ranks = job.start("range", "thread")
    job.expect_all(ranks, *(f"region_rank: invalid_argument: {text}\n" for text in (
        f"bytes: found 8 from offset {size - 7}; allowed: up to {size}, where the region ends",
        "immediate: found 16777216; allowed: 0 .. 16777215, or none",
        f"bytes: found 16 from offset {size - 8}; allowed: up to {size}, where the region ends",
        "bytes: found 8 from offset 20012; allowed in one read: multiples of 8, up to 268435456 bytes",
        "view: found 2; allowed: 0 .. 1",
        "views: found operation 255 of type 0; allowed: those of which weir_is_reducible says 1",
        "loopback: found 2; allowed: 0, 1")), "region_rank: mismatch: rank 1 makes a region of 16 bytes and rank 0 one of 24; ")
    job.switch.stop()


@smoke_test("host-regions-end")
def end(lab: Lab) -> None:
    """The switch's reason reaches every rank's calls; a rank's death does by its group, at once."""
    for progress in ("thread", "caller"):
        job = with_regions(lab)
        ranks = job.start("write", progress)
        job.wait_until_open()
        expect(said(lab, "withdraw region 1") == "region 1: withdrawn\n", "withdraw")
        job.expect_all(ranks, f"region_rank: no_region: switch unix:{socket_of(lab)} ended the region: region 1 has ended: "
                              "it was withdrawn\n")
        job.switch.stop()


@smoke_test("host-regions-silent")
def silent(lab: Lab) -> None:
    """A rank that stands still: the switch ends the region when its patience is over, and the others hear who it was."""
    job = with_regions(lab)
    ranks = job.start("write", "thread")
    job.wait_until_open()
    ranks[2].process.send_signal(signal.SIGSTOP)
    job.expect_all(ranks[:2], "region_rank: no_region: ", "member 2 (10.77.0.3) owes an acknowledgement and was silent for 3 s\n")
    job.switch.stop()


@smoke_test("host-regions-death")
def death(lab: Lab) -> None:
    """A rank that dies ends the group, and the region with it, at once; of rank 0 the switch learns by the call's end."""
    for dead in (2, 0):
        job = with_regions(lab)
        ranks = job.start("write", "thread")
        job.wait_until_open()
        began = time.monotonic()
        ranks[dead].kill()
        job.expect_all([process for process in ranks if process != ranks[dead]], f"region_rank: peer_died: rank {dead} died")
        expect(time.monotonic() - began < 5, "that takes as long as the switch's patience")
        wait_for(lambda: '"ended"' not in said(lab, "show region all"), 5, "it outlives rank 0")
        job.switch.stop()


@smoke_test("host-regions-switch-dies")
def switch_dies(lab: Lab) -> None:
    """Ring and region end together, and either says so first."""
    job = with_regions(lab)
    ranks = job.start("write", "thread")
    job.wait_until_open()
    job.switch.process.kill()
    began = time.monotonic()
    job.expect_all(ranks, f"switch unix:{socket_of(lab)} ended the r", ": no answer: ")
    expect(time.monotonic() - began < 5, "nobody waits for a time limit")


@smoke_test("host-regions-refused")
def refused(lab: Lab) -> None:
    """What the switch says reaches all ranks, and the group goes on."""
    job = with_regions(lab, frames=3 * 16)
    job.expect_all(job.start("fail", "thread"), f"region_rank: no_region: switch unix:{socket_of(lab)}: ", "needs 72 frames, 48 are free")
    job.switch.stop()
    job = with_hosts(lab, configuration(ring_ports()) + room(lab, 1))
    job.expect_all(job.start("fail", "thread"), "this switch has no regions; allowed: a configuration with regions:\n")
    job.switch.stop()
    job = with_hosts(lab, configuration(ring_ports(), rings=ring_of_three()))
    job.expect_all(job.start("fail", "thread", rank_0={}), "switch_address: found none; allowed: the control service of the switch")
    job.switch.stop()


@smoke_test("host-regions-example")
def example(lab: Lab) -> None:
    """docs/examples/region_of_group.c."""
    job = with_hosts(lab, rooms(frames=8192) + room(lab, 1, window=8, packets=64))
    ranks = [Process(lab, job.outside, [SUPPORT / "example_region_of_group", str(rank), str(MEMBERS), RENDEZVOUS,
                                        f"unix:{socket_of(lab)}" if rank == 0 else "", f"host{rank}", f"10.77.0.{rank + 1}"],
                     WEIR_SWITCH_MODULE=str(MODULE)) for rank in range(MEMBERS)]
    job.expect_all(ranks[:1], "the losses are 6 together\n")
    job.expect_all(ranks[1:], "rank 0 gave the weight 0.5\n")
    job.switch.stop()


@smoke_test("host-regions-in-cpp")
def in_cpp(lab: Lab) -> None:
    """The same by weir/weir.hpp."""
    job = with_regions(lab)
    job.expect_all(job.start(program=SUPPORT / "region_rank_cpp"), "region_rank_cpp: view: found 2; allowed: 0 .. 1\n",
                   "region_rank_cpp: 6 of 3\n")
    job.switch.stop()
