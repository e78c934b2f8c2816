# SPDX-License-Identifier: BSD-3-Clause
"""How ranks as processes meet: by a job's name and secret, by an all-gather of their own; and how they notice that one is gone."""
from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from hosts import RANKS, ring_7
from lab import Lab, smoke_test
from netns import Namespace, veth
from test_worker import RENDEZVOUS, SUPPORT, WORKER, Process, switch_and_hosts
from weir import Failed, expect, run_to_end

IDLE_RANK = SUPPORT / "idle_rank"
IDLE_HOSTS = 3
LOST = 1  # the rank whose cable is cut
KEEP_ALIVE_S = 4  # of idle_rank
SECRET = "a secret of 28 characters\n"


def worker(lab: Lab, outside: Namespace, rank: int, *options: str | Path) -> Process:
    return Process(lab, outside, [
        WORKER, "--rank", str(rank), "--world", str(RANKS), "--rendezvous", RENDEZVOUS, "--ring", "7", "--size", "64KiB",
        "--device", f"iface=host{rank}", "--ip", f"10.77.0.{rank + 1}", "--window", "4", "--message-bytes", "16384",
        *options])


@smoke_test("job-secret")
def job_secret(lab: Lab) -> None:
    """Ranks with another secret or another job's name are told so, and those of the job reduce all the same."""
    switch, outside = switch_and_hosts(lab, ring_7())
    ours, theirs = lab.file("ours", SECRET), lab.file("theirs", SECRET.upper())
    report = lab.directory / "rank0.json"
    first = worker(lab, outside, 0, "--job", "a", "--secret-file", ours, "--json", report)
    for options, due in ((("--job", "a", "--secret-file", theirs), "rank 0 has another secret"),
                         (("--job", "a"), "rank 0 has a secret, this rank has none"),
                         (("--job", "b", "--secret-file", ours), "rank 0 is of another job")):
        status, output = worker(lab, outside, 1, *options).wait()
        expect(status == 1 and "mismatch: " in output and due in output, f"{options}: {status}, {output}")
    others = [worker(lab, outside, rank, "--job", "a", "--secret-file", ours) for rank in range(1, RANKS)]
    for process in (first, *others):
        status, output = process.wait()
        expect(status == 0 and "verified=every_element" in output, f"{status}, {output}")
    expect('"callers_turned_away": 3' in report.read_text(), report.read_text())
    switch.stop()


@smoke_test("secret-usage")
def secret_usage(lab: Lab) -> None:
    complete = [WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS, "--device", "iface=lo", "--ip", "10.0.0.1"]
    for content, due in (("", "this one is empty"), ("\n", "this one is empty"),
                         ("too short\n", "secret: found 9 bytes; allowed: none, or 16 .. 1024 bytes")):
        ended = run_to_end([*complete, "--secret-file", str(lab.file("secret", content))])
        expect(ended.status == 2 and due in ended.errors and content.strip() in ("", "too short"), f"{ended}")
        expect("too short" not in ended.errors, f"it prints the secret: {ended}")
    ended = run_to_end([*complete, "--secret-file", str(lab.directory / "absent")])
    expect(ended.status == 2 and "allowed: a file that can be read" in ended.errors, f"{ended}")
    ended = run_to_end([*complete, "--job", "x" * 65])
    expect(ended.status == 2 and "job: found 65 bytes; allowed: 0 .. 64" in ended.errors, f"{ended}")
    ended = run_to_end([*complete, "--keep-alive", "2"])
    expect(ended.status == 2 and "keep_alive: found 2000 ms; allowed: 0, or 3000 and more" in ended.errors, f"{ended}")


def hosts_at_a_bridge(lab: Lab) -> tuple[Namespace, list[Namespace]]:
    """Hosts whose one interface carries the control connections (192.0.2.x) and the software transport's frames."""
    bridge = lab.namespace()
    bridge.ip("link add bridge type bridge")
    bridge.ip("link set bridge up")
    hosts = []
    for rank in range(IDLE_HOSTS):
        hosts.append(lab.namespace())
        veth(bridge, f"port{rank}", hosts[rank], "eth0")
        bridge.ip(f"link set port{rank} master bridge")
        hosts[rank].ip(f"address add 192.0.2.{rank + 1}/24 dev eth0")
    return bridge, hosts


def idle_ranks(lab: Lab, hosts: list[Namespace], seconds: int) -> list[Process]:
    """Ranks of a group that is formed, though its ranks have agreed on no address; they call nothing for that long."""
    ranks = [Process(lab, host, [IDLE_RANK, str(rank), str(IDLE_HOSTS), lab.directory, "eth0", f"10.77.0.{rank + 1}",
                                 str(seconds)]) for rank, host in enumerate(hosts)]
    for process in ranks:
        assert process.process.stdout is not None
        line = process.process.stdout.readline()
        expect(line == "idle_rank: formed\n", f"{line}{process.process.poll()}")
    return ranks


@dataclass(frozen=True)
class Outcome:
    """Of an idle rank's call."""

    status: str
    about: int  # the rank that the error is about
    milliseconds: int
    error: str


def outcome(process: Process) -> Outcome:
    _, output = process.wait()
    said = re.search(r"idle_rank: (\w+) rank=(-?\d+) ms=(\d+) (.*)", output)
    if said is None:
        raise Failed(f"idle_rank: {output}")
    return Outcome(said[1], int(said[2]), int(said[3]), said[4])


@smoke_test("keep-alive")
def keep_alive(lab: Lab) -> None:
    """A cable is cut while nobody calls: within the keep-alive time both ends know, and rank 0 tells the rest."""
    bridge, hosts = hosts_at_a_bridge(lab)
    ranks = idle_ranks(lab, hosts, KEEP_ALIVE_S + 1)
    bridge.ip(f"link set port{LOST} down")
    for rank, process in enumerate(ranks):
        found, due = outcome(process), 0 if rank == LOST else LOST
        expect(found.status == "peer_died" and found.about == due, f"rank {rank}: {found}; due is rank {due}")
        expect("its machine or the network to it is gone" in found.error, f"rank {rank}: {found}")
        expect(found.milliseconds < 500, f"rank {rank} did not know it before it called: {found}")


@smoke_test("keep-alive-stopped")
def keep_alive_stopped(lab: Lab) -> None:
    """A process that is stopped for longer than the keep-alive time is alive: its kernel answers."""
    _, hosts = hosts_at_a_bridge(lab)
    ranks = idle_ranks(lab, hosts, 1)
    ranks[LOST].process.send_signal(signal.SIGSTOP)
    time.sleep(KEEP_ALIVE_S + 2)
    ranks[LOST].process.send_signal(signal.SIGCONT)
    for rank, process in enumerate(ranks):
        found = outcome(process)
        expect(found.status == "ok", f"rank {rank}: {found}")
