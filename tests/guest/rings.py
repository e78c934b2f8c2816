# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with several rings over six guests: numbers of ranks, MTUs, message lengths, two at once, bad links."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from allreduce import WORKER, finish_job, run_job, start_job
from capture import is_rocev2, read_frames
from lab import Lab, Setup
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
    shim = build_shim()
    for member in THREE.guests:
        lab.guests[member].put("/tmp/fixed_psn.so", shim)
    capture = lab.fabric.capture(THREE.guests[1], "in")
    jobs = start_job(lab, "--size 50000", THREE, f"LD_PRELOAD=/tmp/fixed_psn.so WEIR_FIRST_PSN={FIRST_PSN:#x}")
    finish_job(jobs)
    time.sleep(1.0)  # time for tcpdump to read the rest
    capture.stop()
    numbers = [int.from_bytes(frame[PSN_OFFSET:PSN_OFFSET + 3], "big")
               for frame in read_frames(capture.file) if is_rocev2(frame)]
    before, behind = (sum(number >= FIRST_PSN for number in numbers), sum(number < FIRST_PSN for number in numbers))
    expect(before > 0 and behind > 0 and max(number for number in numbers if number < FIRST_PSN) < 1000,
           f"no wrap from {FIRST_PSN:#x}: {before} PSNs before 0, {behind} behind")
    return f"exact; one rank's frames: {before} before PSN 0, {behind} from it on"


def build_shim() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "fixed_psn.so"
        source = Path(__file__).with_name("fixed_psn.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-s", "-o", target, source, "-ldl"], check=True)
        return target.read_bytes()


# -- bad networks: every guest's link


def over_bad_links(lab: Lab, settings: str, size: int) -> str:
    """Exact sums over four and six ranks with these settings on both directions of every link; returns losses and drops."""
    for guest in lab.guests:
        guest.netem_both_ways(settings)
    said = meanwhile(lab, size)[1]
    lost = [lost_on(lab, device) for device in ("eth0", "ifb0")]
    if settings.startswith("loss"):
        expect(min(lost) > 0, f"netem lost {lost[0]} frames on the way to Weir and {lost[1]} on the way back")
    return f"{said}; lost: {lost[0]} to Weir, {lost[1]} from it"


def meanwhile(lab: Lab, size: int) -> tuple[dict[str, int], str]:
    """Exact sums over four and six ranks; Weir's drops during the run, by reason."""
    before = drops(lab)
    options = f"--size {size} --ack-timeout-ms 250"
    seconds = [run_job(lab, options, ring) for ring in (FOUR, SIX)]
    grown = {reason: count - before.get(reason, 0) for reason, count in drops(lab).items()}
    grown = {reason: count for reason, count in grown.items() if count > 0}
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(grown.items())) or "nothing"
    return grown, f"exact, 4 ranks in {seconds[0]:.2f} s, 6 in {seconds[1]:.2f} s; dropped by Weir: {counted}"


def lost_on(lab: Lab, device: str) -> int:
    """Frames that netem lost on this device of all guests. ScenarioFailed when netem has seen no frame of a guest."""
    lost = 0
    for guest in lab.guests:
        said = guest.run(f"tc -s qdisc show dev {device} root").output
        found = re.search(r"netem .*\n Sent \d+ bytes (\d+) pkt \(dropped (\d+)", said)
        expect(found is not None and int(found[1]) > 0, f"{guest.who.name}: no netem at work on {device}:\n{said}")
        assert found is not None
        lost += int(found[2])
    return lost


def drops(lab: Lab) -> dict[str, int]:
    rows: dict[str, Any] = lab.weir.telemetry("/weir/drops")["drops"]
    return {str(row["reason"]): int(row["count"]) for row in rows.values()}


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_1_percent(lab: Lab) -> str:
    return over_bad_links(lab, "loss 1%", 131072)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_5_percent(lab: Lab) -> str:
    return over_bad_links(lab, "loss 5%", 65536)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def reordering(lab: Lab) -> str:
    """One frame in twenty overtakes those that wait 5 ms."""
    return over_bad_links(lab, "delay 5ms reorder 5%", 65536)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def corruption(lab: Lab) -> str:
    """One bit in one frame of a hundred on its way to Weir, which must have noticed those that came as RoCE. Not on the way
    back: a guest's GRO checks TCP checksums before its netem flips the bit, so the rendezvous would read wrong data. ARP
    has no checksum at all. On a real link the FCS protects both."""
    for guest in lab.guests:
        guest.ask_nobody([other.who for other in lab.guests])
        guest.netem("corrupt 1%")
    grown, said = meanwhile(lab, 131072)
    expect(grown.get("bad_icrc", 0) > 0, f"Weir has counted no bad ICRC: {said}")
    return said
