# SPDX-License-Identifier: BSD-3-Clause
"""Rings that go by themselves: dead jobs, drained rings, and a switch that drains before it stops."""
from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from typing import Any
from unittest import mock

from hosts import MESSAGES, RANKS, Hosts, Job, frame_of, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from terminal import Terminal
from test_control import at_socket, socket_of, weirctl
from test_incarnations import complete, drops, hold, ring_row, told, wait_for_drops
from test_metrics import LISTEN, scrape
from test_rings import added, rings_of, spare
from test_worker import start_workers
from weir import Totals, Weir, configuration, expect, wait_for

PATIENCE_S, LEASE_S = 1, 2
LONG_S = 30.0  # for what takes seconds
REPEATS_S = 2.5 * LEASE_S
PLACE = 1  # of the first data packet


def ring_with_lease() -> str:
    return ring_7().replace("mtu: 1024\n", f"mtu: 1024\n    patience: {PATIENCE_S}\n    lease: {LEASE_S}\n")


def reclaimed(terminal: Terminal) -> dict[str, Any]:
    """Both tables of `show reclaimed`."""
    return dict(json.loads(terminal.ask("show reclaimed json")))


def counts(terminal: Terminal) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in reclaimed(terminal)["reclaims"]}


@smoke_test("lease-dead-job")
def dead_job(lab: Lab) -> None:
    """A job's processes are killed: its ring goes and says why, its memory is back, and another job works exactly."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, spare(lab.directory / "state", rings=1) + f'metrics: {{ listen: "{LISTEN}" }}\n')
    before = terminal.ask("show memory")
    expect(added(lab, terminal, ring_with_lease()) == "added: ring 7\n", "`add ring`")
    workers = start_workers(lab, hosts.namespace, "7", "--size", "16MiB", "--repeat", "1000", "--no-verify")
    wait_for(lambda: ring_row(terminal.switch)["results"] > 1000, LONG_S, "the job does not work")
    for worker in workers:
        worker.kill()
    said = terminal.event("ring_reclaimed", LONG_S)
    expect(re.search(r"weir: ring 7: reclaimed: its members were silent for \d+ s; \d+ frames given back "
                     r"\[ring_reclaimed ring=7 reason=lease fate=withdrawn frames=\d+\]", said), said)
    expect(rings_of(terminal.switch) == [], "the ring is still there")
    rows = reclaimed(terminal)
    expect([(row["ring"], row["reason"], row["fate"]) for row in rows["reclaimed"]] == [(7, "lease", "withdrawn")], f"{rows}")
    expect(counts(terminal) == {"lease": 1, "drained": 0, "owner_gone": 0}, f"{rows}")
    expect('\nweir_rings_reclaimed_total{reason="lease"} 1\n' in scrape(fabric), "the metric")
    expect(terminal.ask("show memory") == before, "memory has gone")
    expect(added(lab, terminal, ring_with_lease()) == "added: ring 7\n", "`add ring` in the room of the dead one")
    for worker in start_workers(lab, hosts.namespace, "7", "--size", "160000", "--repeat", "3"):
        status, output = worker.wait()
        expect(status == 0 and "algorithm=switch verified=every_element" in output, f"{status}, {output}")
    told(terminal)


@smoke_test("lease-configured-ring")
def configured_ring(lab: Lab) -> None:
    """A configured ring gives back what it holds, and starts anew; one that is heard keeps it."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, configuration(ring_ports(), rings=ring_with_lease()))
    hosts.say_hello()
    hold(switch, hosts, PLACE)
    began = time.monotonic()
    while time.monotonic() - began < REPEATS_S:  # the others are silent
        hosts.send(0, PLACE)
        time.sleep(0.1)
    expect(ring_row(switch)["held"] == RANKS - 1, "a ring was reclaimed that was in use")
    wait_for(lambda: ring_row(switch)["connected"] == 0, LONG_S, "the ring is not reclaimed")
    expect(ring_row(switch)["held"] == 0, f"{ring_row(switch)}")
    hosts.incarnation = hosts.incarnation.again(epoch=hosts.incarnation.epoch - 1)
    hosts.say_hello()
    Job(hosts, last=1).run()
    totals = switch.stop()
    expect(totals.drops["ring_reset"] == RANKS - 1, f"{totals}")
    line = (rf"weir: ring 7: reclaimed: its members were silent for \d+ s; {RANKS - 1} frames given back; it is configured: "
            r"new hellos start it anew \[ring_reclaimed ring=7 reason=lease fate=reset frames=\d+\]\n")
    expect(re.search(line, switch.output()), switch.output())


@smoke_test("drain-ring")
def drain_ring(lab: Lab) -> None:
    """A job ends while its ring drains, a new one is refused by name, and the ring goes."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, spare(lab.directory / "state"))
    expect(added(lab, terminal, ring_7()) == "added: ring 7\n", "`add ring`")
    hosts.say_hello()
    hold(terminal.switch, hosts, PLACE)
    for line, answer in (("drain ring 7", "10 s\n"), ("drain ring 7 2", "2 s\n")):
        said = terminal.ask(line)
        expect(said == "ring 7: drains; it goes when its members have been silent for " + answer, said)
    complete(hosts, PLACE)
    refused = hosts.incarnation.again()
    for rank in range(RANKS):
        hosts.send_raw(rank, frame_of(rank, 0, refused))
    wait_for_drops(terminal.switch, {"ring_draining": RANKS})
    Job(hosts, first=PLACE + 1, last=MESSAGES).run()
    said = terminal.event("ring_reclaimed", LONG_S)
    expect(re.search(r"it was drained, and its members were silent for \d+ s; 0 frames given back", said), said)
    expect(rings_of(terminal.switch) == [] and counts(terminal) == {"lease": 0, "drained": 1, "owner_gone": 0}, "the ring is still there")
    told(terminal)


@smoke_test("drain-ring-refused")
def drain_refused(lab: Lab) -> None:
    """What cannot be drained is told in words; a hello that waits is given up, and `show ring` says that the ring drains."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, configuration(ring_ports(), rings=ring_7()))
    rows = (("drain ring 9", "found '9'; allowed: 7"), ("drain ring 7 0", "seconds: found '0'; allowed: 1 .. 86400"),
            ("drain ring 7 x", "seconds: found 'x'"), ("drain ring 7 86401", "seconds: found '86401'"))
    for line, found in rows:
        said = terminal.ask(line)
        expect(found in said and said.count("\n") == 1, f"{line}: {said}")
    expect(ring_row(terminal.switch)["draining_s"] == "-", f"{ring_row(terminal.switch)}")
    hosts.send(0, 0)
    wait_for(lambda: terminal.switch.ask("/weir/accounting")["accounting"]["0"]["held"] == 1, 5, "the hello does not wait")
    terminal.ask("drain ring 7")
    expect(isinstance(ring_row(terminal.switch)["draining_s"], int), f"{ring_row(terminal.switch)}")
    wait_for_drops(terminal.switch, {"ring_draining": 1})
    told(terminal)


def switch_at_work(lab: Lab, drain_s: int, more: str = "") -> tuple[Weir, Hosts]:
    """One packet of ring 7 waits for its last rank."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, configuration(ring_ports(), rings=ring_7()) + f"drain_s: {drain_s}\n{more}")
    hosts.say_hello()
    hold(switch, hosts, PLACE)
    return switch, hosts


def drains(switch: Weir) -> None:
    switch.process.send_signal(signal.SIGTERM)
    wait_for(lambda: "for collectives of ring 7; a second signal stops at once [stop_waits]\n" in switch.output(), 10, "it does not drain")


CUT_OFF = f"weir: ring 7: cut off: 1 of its slots waited, the oldest for rank {RANKS - 1} [ring_cut_off ring=7]\n"


@smoke_test("stop-drains")
def stop_drains(lab: Lab) -> None:
    """A switch that is to stop lets the running collective end, and no job begin. systemd hears what takes so long."""
    path = lab.directory / "notify"
    room = f"spare: {{ rings: 1, members: 2, frames: 64 }}\nstate_directory: {lab.directory / 'state'}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(10)
        with mock.patch.dict(os.environ, {"NOTIFY_SOCKET": str(path)}):
            switch, hosts = switch_at_work(lab, 60, at_socket(lab, room))
        drains(switch)
        heard = [listener.recv(4096).decode() for _ in range(4)]
    expect(heard == ["READY=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=70000000",
                     "STATUS=drains: collectives of ring 7 are under way"], f"{heard}")
    refused = hosts.incarnation.again()
    hosts.send_raw(0, frame_of(0, 0, refused))
    wait_for_drops(switch, {"ring_draining": 1})
    ring = "  - { id: 8, window: 1, max_message_bytes: 256, mtu: 256, members: [{ ip: 10.9.0.1 }, { ip: 10.9.0.2 }] }\n"
    ended = weirctl("add", "ring", lab.file("ring.yaml", ring), server=socket_of(lab))
    expect(ended.status == 1 and "ring 8: this switch is about to stop" in ended.errors, f"{ended}")
    complete(hosts, PLACE)
    ended = switch.wait()
    expect(ended.status == 0 and "cut off" not in ended.output, ended.output)
    Totals.read(ended.output)


@smoke_test("stop-cuts-off")
def stop_cuts_off(lab: Lab) -> None:
    """What has not ended by then is cut off, and the log says what: after drain_s, or at a second signal."""
    switch, _ = switch_at_work(lab, drain_s=1)
    drains(switch)
    expect(CUT_OFF in switch.wait().output, switch.output())
    switch, _ = switch_at_work(lab, drain_s=3600)
    drains(switch)
    switch.process.send_signal(signal.SIGTERM)
    ended = switch.wait()
    expect(CUT_OFF in ended.output and Totals.read(ended.output).drops["ring_reset"] == RANKS - 1, ended.output)
    switch, _ = switch_at_work(lab, drain_s=0)
    switch.stop()
    expect(CUT_OFF in switch.output() and "weir: drains" not in switch.output(), switch.output())
