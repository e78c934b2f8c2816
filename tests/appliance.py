#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A day of an appliance in a minute: one job all-reduces at full speed while others come, go and die.

    tests/appliance.py [--rounds N] [--pairs N] [--seconds N] [--weir PROGRAM]

Fifty rings of mixed sizes are made at the prompt. Twelve of them have jobs of four hosts, which send a packet each now and
then and check every byte of the results. While the first job runs, rings without a job are withdrawn in random order and
made again, the configuration is reloaded in between, and a third of the jobs' hosts go silent for good. Then:

- every element of the first job's tensors is right, and every byte of the living jobs' results;
- each dead ring is gone, with its reason; all others are there;
- when all rings are withdrawn, the switch has as much memory as before.

Its last line says how fast the first job was beside an undisturbed run: the median over pairs of runs, which follow one
another. That is a figure, not a test: on two cores the job's ranks, the switch and this program share the CPUs.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import select
import socket
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "smoke"))

RINGS, JOBS = 50, 12
FIRST_RING = 1  # of the job that is measured
RELOADED_RING = 2  # in every other version of the configuration
OTHER_RINGS = 100  # the first id of the fifty
LEASE_S = 10
TENSOR = "4MiB"
CALIBRATION_CALLS = 10
JOBS_PERIOD_S = 0.25  # between two packets of all jobs
WITHDRAWALS_PER_RELOAD = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="withdrawals in a disturbed run (100)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of an undisturbed and a disturbed run (3)")
    parser.add_argument("--seconds", type=float, default=20.0, help="about how long a run takes (20)")
    parser.add_argument("--weir", type=Path, help="the switch, as an installed package has it (this build's)")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()
    if OPTIONS.weir:
        os.environ["WEIR_PROGRAM"] = str(OPTIONS.weir)

from hosts import RANKS, captured_incarnation, frame_of, model, raw_link, result_of, sums  # noqa: E402
from lab import Lab  # noqa: E402
from netns import Namespace, veth  # noqa: E402
from terminal import Terminal  # noqa: E402
from test_worker import RENDEZVOUS, WORKER, Process  # noqa: E402
from weir import NO_HUGEPAGES, Failed, Totals, configuration, expect, wait_for  # noqa: E402

MEMORY = NO_HUGEPAGES.replace("256", "768")
JOB_PORTS = range(2, 2 + RANKS)  # of the hosts of the twelve jobs; the measured job's are 0 and 1


@dataclass(frozen=True)
class RingShape:
    """What a ring takes."""

    id: int
    window: int
    max_message_bytes: int
    members: tuple[str, ...]
    ports: tuple[int, ...] = ()
    lease_s: int = 3600

    @property
    def frames(self) -> int:
        """2N x L x (H-1), and four hellos of each rank (docs/operating.md)."""
        packets = -(-self.max_message_bytes // 1024)
        return 2 * self.window * packets * (len(self.members) - 1) + 4 * len(self.members)

    def yaml(self) -> str:
        lines = [f"  - id: {self.id}", f"    window: {self.window}", f"    max_message_bytes: {self.max_message_bytes}",
                 "    mtu: 1024",
                 f"    patience: {min(self.lease_s, 600)}", f"    lease: {self.lease_s}", "    members:"]
        for rank, member in enumerate(self.members):
            port = f", port: p{self.ports[rank]}" if self.ports else ""
            lines.append(f"      - {{ ip: {member}{port} }}")
        return "\n".join(lines) + "\n"


def ring_without_job(number: int, dice: random.Random) -> RingShape:
    world = dice.randint(2, 8)
    members = tuple(f"10.99.{number}.{rank + 1}" for rank in range(world))
    return RingShape(OTHER_RINGS + number, dice.randint(1, 4), 1024 * dice.randint(1, 8), members)


class SmallJob:
    """Four hosts that speak for a ring, by frames of a capture with their own addresses."""

    def __init__(self, number: int) -> None:
        members = tuple(f"10.88.{number}.{rank + 1}" for rank in range(RANKS))
        self.ring = RingShape(OTHER_RINGS + number, 4, 16384, members, tuple(JOB_PORTS), LEASE_S)
        self.is_alive = True
        self.results = 0  # places of which all hosts got exactly the sum
        self._number = number
        self._incarnation = captured_incarnation()
        self._awaited: dict[bytes, int] = {}  # results, and the host that is to get each
        self._had: set[bytes] = set()
        self._previous: set[bytes] = set()  # of the place before; a repeat brings one again

    def own(self, frame: bytes) -> bytes:
        """A frame of the capture, with this job's ring and addresses."""
        roce = model.parse_roce(frame)
        assert roce
        ip = roce.ip_at
        addresses = b"".join(bytes([10, 88, self._number, frame[at + 3]]) for at in (ip + 12, ip + 16))
        checksum = model.internet_checksum(frame[ip:ip + 10] + b"\0\0" + addresses).to_bytes(2, "big")
        frame = frame[:ip + 10] + checksum + addresses + frame[ip + 20:]
        ina = roce.ina()
        return model.resigned(frame, roce.payload_at,
                              model.Ina.LAYOUT.pack(*ina._replace(ring=self.ring.id)) if ina else b"")

    def send(self, links: Sequence[socket.socket]) -> None:
        """All ranks' packets of a place: the next one, when the last one's results have come."""
        place = self.results + 1 if self._incarnation.session else 0
        for rank in range(RANKS):
            frame = self.own(frame_of(rank, place, self._incarnation))
            if place and len(self._awaited) + len(self._had) < RANKS:
                self._awaited[result_of(frame, sums()[place], self._incarnation.session)] = (rank + 1) % RANKS
            links[rank].send(frame)

    def take(self, host: int, frame: bytes) -> None:
        """A frame that has come to one of the hosts."""
        roce = model.parse_roce(frame)
        if not roce or roce.dst.split(".")[:3] != ["10", "88", str(self._number)] or roce.opcode not in model.RC_DATA:
            return
        ina = roce.ina()
        if ina and ina.collective == model.HELLO:
            self._incarnation = replace(self._incarnation, session=ina.session)
        elif self._awaited.get(frame) == host:
            del self._awaited[frame]
            self._had.add(frame)
            if len(self._had) == RANKS:
                self.results += 1
                self._previous, self._had = self._had, set()
        else:
            expect(frame in self._had | self._previous, f"ring {self.ring.id}: host {host} got what it should not:\n{model.describe(frame)}")


class SmallJobs:
    """All of them, on a thread."""

    def __init__(self, outside: Namespace) -> None:
        self.jobs = [SmallJob(number) for number in range(JOBS)]
        self._links = [raw_link(outside, f"host{port}") for port in JOB_PORTS]
        self._is_over = threading.Event()
        self._failure: Failed | None = None
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.wait(JOBS_PERIOD_S):
                for job in self.living():
                    job.send(self._links)
                self._take(time.monotonic() + JOBS_PERIOD_S / 2)
        except Failed as failure:
            self._failure = failure

    def _take(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            for link in select.select(self._links, [], [], left)[0]:
                frame = link.recv(65535)
                for job in self.jobs:
                    job.take(self._links.index(link), frame)

    def living(self) -> list[SmallJob]:
        return [job for job in self.jobs if job.is_alive]

    def kill(self, count: int) -> list[SmallJob]:
        """So many jobs' hosts are never heard again."""
        dead = self.living()[:count]
        for job in dead:
            job.is_alive = False
        return dead

    def check(self) -> None:
        if self._failure:
            raise self._failure

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        for link in self._links:
            link.close()


class Appliance:
    """The switch, its rings, and what an operator does with them."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.fabric, self.outside = lab.namespace(), lab.namespace()
        for port in range(JOB_PORTS.stop):
            veth(self.fabric, f"tap{port}", self.outside, f"host{port}")
        self._dice = random.Random(14)
        self.idle = [ring_without_job(number, self._dice) for number in range(JOBS, RINGS)]
        self.small = SmallJobs(self.outside)
        self._shapes = [job.ring for job in self.small.jobs] + self.idle
        self._config = lab.file("appliance.yaml", self._configuration(versions=0))
        self._reloads = 0
        self.terminal = Terminal(lab, self.fabric, self._config)

    def _configuration(self, versions: int) -> str:
        """A ring and another aging time come with every other version."""
        ports = [f'name: p{port}, device: "net_af_packet{port},iface=tap{port}"' for port in range(JOB_PORTS.stop)]
        rings = RingShape(FIRST_RING, 8, 65536, ("10.77.0.1", "10.77.0.2"), (0, 1)).yaml()
        if versions % 2:
            rings += RingShape(RELOADED_RING, 2, 4096, ("10.66.0.1", "10.66.0.2")).yaml()
        shapes = self._shapes
        return (configuration(ports, rings=rings, eal=MEMORY) + f"l2: {{ aging_s: {300 + versions % 2} }}\n"
                f"spare: {{ rings: {RINGS + 1}, members: {sum(len(s.members) for s in shapes) + 2}, "
                f"frames: {sum(s.frames for s in shapes) + 4096} }}\nstate_directory: {self._lab.directory / 'state'}\n")

    def add(self, shape: RingShape) -> None:
        said = self.terminal.ask(f"add ring {self._lab.file('ring.yaml', shape.yaml())}")
        expect(said == f"added: ring {shape.id}\n", said)

    def withdraw(self, shape: RingShape) -> None:
        said = self.terminal.ask(f"withdraw ring {shape.id}")
        expect(said == f"ring {shape.id}: withdrawn\n", said)

    def add_all(self) -> None:
        for shape in self._shapes:
            self.add(shape)

    def reload(self) -> None:
        self._reloads += 1
        self._config.write_text(self._configuration(self._reloads))
        said = self.terminal.ask("reload")
        expect(f"{RELOADED_RING}" in said and "aging_s" in said, f"reload says {said}")

    def disturb(self, rounds: int, seconds: float) -> None:
        """Withdraws rings and makes them again, in random order, in about so many seconds."""
        begin = time.monotonic()
        for number in range(rounds):
            shape = self._dice.choice(self.idle)
            self.withdraw(shape)
            self.add(shape)
            if number % WITHDRAWALS_PER_RELOAD == 0:
                self.reload()
            time.sleep(max(0.0, begin + seconds * (number + 1) / rounds - time.monotonic()))

    def memory(self) -> dict[str, Any]:
        return dict(json.loads(self.terminal.ask("show memory json")))

    def rings(self) -> set[int]:
        return {row["ring"] for row in json.loads(self.terminal.ask("show ring all json"))["rings"]}

    def reclaimed(self) -> dict[int, str]:
        """Why each ring has gone."""
        return {row["ring"]: row["reason"] for row in json.loads(self.terminal.ask("show reclaimed json"))["reclaimed"]}


def run_first_job(lab: Lab, appliance: Appliance, calls: int) -> float:
    """Two ranks all-reduce so often, and check every element of every result; the mean time of a call, in us."""
    file = lab.directory / "first.json"
    ranks = [Process(lab, appliance.outside, [
        WORKER, "--rank", rank, "--world", "2", "--rendezvous", RENDEZVOUS, "--ring", str(FIRST_RING), "--device",
        f"iface=host{rank}", "--ip", f"10.77.0.{int(rank) + 1}", "-b", TENSOR, "--in-place", "-n", str(calls), "-c", str(calls),
        *(("--json", str(file)) if rank == "0" else ())]) for rank in ("0", "1")]
    for rank, process in enumerate(ranks):
        status, output = process.wait()
        expect(status == 0, f"rank {rank} of the first job: {status}, {output}")
    said = json.loads(file.read_text())
    measured = said["rows"][0]["in_place"]
    expect(said["algorithm"] == "switch" and measured["wrong"] == 0, f"{said}")
    return float(measured["mean_us"])


def disturbed_run(lab: Lab, appliance: Appliance, calls: int, rounds: int, seconds: float) -> float:
    failures: list[Exception] = []

    def disturb() -> None:
        try:
            appliance.disturb(rounds, seconds)
        except Exception as failure:  # told by the main thread
            failures.append(failure)

    thread = threading.Thread(target=disturb)
    thread.start()
    mean_us = run_first_job(lab, appliance, calls)
    thread.join()
    if failures:
        raise failures[0]
    return mean_us


def live_a_day(lab: Lab, rounds: int, pairs: int, seconds: float) -> None:
    appliance = Appliance(lab)
    before = appliance.memory()
    appliance.add_all()
    appliance.small.start()
    lab.on_end(appliance.small.end)
    wait_for(lambda: all(job.results > 0 for job in appliance.small.jobs), 30, "the small jobs do not work")
    call_us = run_first_job(lab, appliance, CALIBRATION_CALLS)
    calls = max(CALIBRATION_CALLS, int(seconds * 1e6 / call_us / 3))  # a check takes as long as two calls
    ratios, dead = [], list[SmallJob]()
    for pair in range(pairs):
        quiet_us = run_first_job(lab, appliance, calls)
        if pair == 0:
            dead = appliance.small.kill(JOBS // 3)
        disturbed_us = disturbed_run(lab, appliance, calls, rounds, seconds)
        appliance.small.check()
        ratios.append(quiet_us / disturbed_us)
        print(f"appliance: {TENSOR} took {quiet_us:.0f} us undisturbed and {disturbed_us:.0f} us disturbed", flush=True)
    check_rings(appliance, dead)
    check_memory(appliance, before)
    Totals.read(appliance.terminal.quit())
    print(f"appliance: {rounds * pairs} withdrawals, {len(dead)} dead jobs; the first job has {statistics.median(ratios):.3f} of "
          f"its undisturbed throughput (median of {pairs})")


def check_rings(appliance: Appliance, dead: Sequence[SmallJob]) -> None:
    """The dead jobs' rings have gone for their reason, the others are there, and living jobs go on exactly."""
    due = {job.ring.id: "lease" for job in dead}
    wait_for(lambda: appliance.reclaimed() == due, LEASE_S + 5, f"reclaimed is {appliance.reclaimed()}; should be {due}")
    had = {job.ring.id: job.results for job in appliance.small.living()}
    gone = appliance.rings() - {RELOADED_RING} ^ ({FIRST_RING, *had} | {shape.id for shape in appliance.idle})
    expect(not gone, f"rings {gone} are there and should not be, or the reverse")
    wait_for(lambda: all(job.results > had[job.ring.id] for job in appliance.small.living()), 30, "living jobs do not go on")
    appliance.small.check()


def check_memory(appliance: Appliance, before: dict[str, Any]) -> None:
    for job in appliance.small.kill(JOBS):
        appliance.withdraw(job.ring)
    for shape in appliance.idle:
        appliance.withdraw(shape)
    if RELOADED_RING in appliance.rings():
        appliance.reload()
    after = appliance.memory()
    expect(after == before, f"memory is {after}; it was {before}")


def main() -> int:
    lab = Lab("appliance")
    try:
        live_a_day(lab, OPTIONS.rounds, OPTIONS.pairs, OPTIONS.seconds)
    except Failed as failure:
        print(f"appliance: {failure}")
        print("appliance: 0 passed, 1 failed, 0 skipped")
        return 1
    finally:
        lab.close()
    print("appliance: 1 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
