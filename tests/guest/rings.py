# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with several rings over six guests: numbers of ranks, MTUs, message lengths, two at once."""

from __future__ import annotations

import dataclasses
import time

from allreduce import WORKER, finish_job, run_job, start_job
from capture import is_rocev2, read_frames
from fabric import Setup
from lab import Lab
from preload import preloaded
from scenarios import expect, scenario
from switch import Ring

ALL = (0, 1, 2, 3, 4, 5)
TWO = Ring((0, 1), 20, window=8, max_message_bytes=256, mtu=256)  # one packet
THREE = Ring((5, 0, 3), 30, window=2, max_message_bytes=64 * 256, mtu=256)
FOUR = Ring((2, 3, 4, 5), 40, window=4, max_message_bytes=16 * 1024, mtu=1024)
SIX = Ring(ALL, 60, window=2, max_message_bytes=64 * 1024, mtu=1024)
SIX_SHORT = Ring(ALL, 61, window=8, max_message_bytes=256, mtu=256)
RINGS = Setup(guests=6, rings=(TWO, THREE, FOUR, SIX, SIX_SHORT))

FIRST_PSN = 0xFFFFE0
PSN_OFFSET = 14 + 20 + 8 + 9  # after Ethernet, IPv4 and UDP headers, in the BTH


def title(ring: Ring) -> str:
    return f"{len(ring.guests)} ranks, MTU {ring.mtu}, {ring.max_message_bytes // ring.mtu} packets"


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def ranks_and_messages(lab: Lab) -> str:
    """2, 3, 4 and 6 ranks; messages of 1, 16 and 64 packets, each job's last one shorter; ranks in another order."""
    said = []
    for ring in lab.setup.rings:
        size = 8004 if ring.max_message_bytes == ring.mtu else 150004
        run_job(lab, f"--size {size} --type i32 --repeat 2", ring)
        said.append(title(ring))
    return f"exact: {'; '.join(said)}"


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def two_rings_at_once(lab: Lab) -> str:
    """Two disjoint rings at once, then two that share guests."""
    for one, other in ((TWO, FOUR), (THREE, FOUR)):
        jobs = (start_job(lab, "--size 40000 --repeat 3", one), start_job(lab, "--size 200000 --repeat 3", other))
        for started in jobs:
            finish_job(started)
    return "exact: members 0 1 beside 2 3 4 5; 5 0 3 beside 2 3 4 5"


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def without_the_switch(lab: Lab) -> str:
    """Rings that Weir does not know: the workers reduce, by the type's schedule, and print it."""
    said = []
    for ring, kind, schedule in ((TWO, "i64", "reduce-scatter"), (THREE, "f32", "chain"), (FOUR, "bf16", "chain"),
                                 (SIX, "i32", "reduce-scatter"), (SIX, "f64", "chain")):
        unknown = dataclasses.replace(ring, ring_id=ring.ring_id + 100)
        jobs = start_job(lab, f"--size 120008 --type {kind} --fallback ring", unknown)
        finish_job(jobs)
        for job in jobs:
            expect(f"algorithm=ring schedule={schedule} reason=" in job.output, job.output)
        said.append(f"{kind} over {len(ring.guests)}")
    return f"exact: {', '.join(said)}"


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def psn_wrap(lab: Lab) -> str:
    """All connections start 32 packets before the largest PSN. The frames must show that they passed it."""
    preload = preloaded(lab, THREE, "fixed_psn")
    capture = lab.fabric.capture(THREE.guests[1], "in")
    jobs = start_job(lab, "--size 50000", THREE, lambda _: f"{preload} WEIR_FIRST_PSN={FIRST_PSN:#x}")
    finish_job(jobs)
    time.sleep(1.0)  # time for tcpdump to read the rest
    capture.stop()
    numbers = [int.from_bytes(frame[PSN_OFFSET:PSN_OFFSET + 3], "big")
               for frame in read_frames(capture.file) if is_rocev2(frame)]
    before, behind = (sum(number >= FIRST_PSN for number in numbers), sum(number < FIRST_PSN for number in numbers))
    expect(before > 0 and behind > 0 and max(number for number in numbers if number < FIRST_PSN) < 1000,
           f"no wrap from {FIRST_PSN:#x}: {before} PSNs before 0, {behind} behind")
    return f"exact; one rank's frames: {before} before PSN 0, {behind} from it on"
