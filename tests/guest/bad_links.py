# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios in which every guest's link loses, delays, reorders or damages frames."""

from __future__ import annotations

import re
from typing import Any

from allreduce import RETRIES, WORKER, run_job
from lab import Lab
from rings import FOUR, RINGS, SIX
from scenarios import expect, scenario
from switch import Weir


def over_bad_links(lab: Lab, settings: str, size: int) -> str:
    """Exact sums over four and six ranks with these settings on both directions of every link; returns losses and drops.

    Each frame crosses two links, and so does its acknowledgement.
    """
    for guest in lab.guests:
        guest.netem_both_ways(settings)
    said = meanwhile(lab, size)[1]
    lost = [lost_on(lab, device) for device in ("eth0", "ifb0")]
    if settings.startswith("loss"):
        expect(min(lost) > 0, f"netem lost {lost[0]} frames on the way to Weir and {lost[1]} on the way back")
    return f"{said}; lost: {lost[0]} to Weir, {lost[1]} from it"


def meanwhile(lab: Lab, size: int) -> tuple[dict[str, int], str]:
    """Exact sums over four and six ranks; Weir's drops during the run, by reason."""
    before = drops(lab.weir)
    options = f"--size {size} --ack-timeout-ms 250 --retries {RETRIES}"
    seconds = [run_job(lab, options, ring) for ring in (FOUR, SIX)]
    grown = {reason: count - before.get(reason, 0) for reason, count in drops(lab.weir).items()}
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


def drops(weir: Weir) -> dict[str, int]:
    rows: dict[str, Any] = weir.telemetry("/weir/drops")["drops"]
    return {str(row["reason"]): int(row["count"]) for row in rows.values()}


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_1_in_1000(lab: Lab) -> str:
    """With a larger tensor: of a smaller one's frames, perhaps none would be lost."""
    return over_bad_links(lab, "loss 0.1%", 1 << 20)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_1_percent(lab: Lab) -> str:
    return over_bad_links(lab, "loss 1%", 131072)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_5_percent(lab: Lab) -> str:
    return over_bad_links(lab, "loss 5%", 65536)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_10_percent(lab: Lab) -> str:
    return over_bad_links(lab, "loss 10%", 65536)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def reordering(lab: Lab) -> str:
    """One frame in twenty overtakes those that wait 5 ms."""
    return over_bad_links(lab, "delay 5ms reorder 5%", 65536)


@scenario(RINGS, needs_weir=True, programs=(WORKER,))
def loss_and_reordering(lab: Lab) -> str:
    return over_bad_links(lab, "loss 1% delay 5ms reorder 5%", 131072)


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
