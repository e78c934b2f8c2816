# SPDX-License-Identifier: BSD-3-Clause
"""What the log tells of a running switch: one line for each event that an operator wants to know of."""
from __future__ import annotations

import re
import time

from hosts import RANKS, Job, contributions, frame_of, ring_of_hosts
from lab import Lab, smoke_test
from test_incarnations import THIRD, complete, hold, with_header
from weir import ROOT, Weir, expect, wait_for

LATE_S = 10
MORE_LOOKS_S = 2.5
FOURTH = next(place for place, packet in enumerate(contributions()[0]) if packet.message == 4)
I32 = 1  # the capture's elements are f32


def wait_for_line(switch: Weir, line: str, seconds: float = 5) -> re.Match[str]:
    """A whole line of the log, given as a pattern."""
    wait_for(lambda: re.search(f"^weir: {line}$", switch.output(), re.MULTILINE) is not None, seconds,
             f"no line as {line}:\n{switch.output()}")
    found = re.search(f"^weir: {line}$", switch.output(), re.MULTILINE)
    assert found
    return found


@smoke_test("events")
def events(lab: Lab) -> None:
    """A job begins, waits for a rank and goes on, is refused a packet, and is given up; nothing else is told."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    wait_for_line(switch, rf"ring 7: a job of {RANKS} ranks has begun \[job_began ring=7 ranks={RANKS} epoch=\d+\]")
    Job(hosts, last=2).run()
    hold(switch, hosts, THIRD)
    late = rf"rank {RANKS - 1}"
    waited = wait_for_line(switch, rf"ring 7: has waited (\d+)\.\d s for {late}; `show ring 7 stuck` tells more "
                           rf"\[straggler ring=7 ranks={RANKS - 1} waited_s=.*\]", LATE_S + 5)
    expect(LATE_S <= int(waited[1]) <= LATE_S + 2, f"late or early: {waited[0]}")
    time.sleep(MORE_LOOKS_S)  # it still waits
    complete(hosts, THIRD)
    wait_for_line(switch, rf"ring 7: goes on; for .* s it had waited for {late} \[straggler_came ring=7 .*\]")
    hold(switch, hosts, FOURTH)
    hosts.send_raw(RANKS - 1, with_header(frame_of(RANKS - 1, FOURTH, hosts.incarnation), dtype=I32))
    wait_for_line(switch, r"ring 7: 1 packets dropped: .* \[ring_drops ring=7 reason=disagree_type packets=1\]")
    lines = re.findall(r"^weir: .*\]$", switch.output(), re.MULTILINE)
    expect(len(lines) == 4, f"other lines: {lines}")
    switch.stop()
