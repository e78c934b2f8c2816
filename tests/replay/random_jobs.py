#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random jobs through weir-replay and through the model: every byte and every counter must be equal.

    random_jobs.py --seeds 1:500             this many jobs
    random_jobs.py --seeds 7 --keep DIR      one, and keep its capture and configuration in DIR

A job has restarts, repeats, strangers, operators and noise in a random order. Needs build/app/weir-replay.
Ends in "random jobs: N passed, N failed, N skipped", where all seeds are one test; status 1 when one failed.
"""
from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Callable, Iterator

import expect
import run as replays
from cases import CASES, Case, ring_yaml
from jobs import (ACKNOWLEDGE, AGEING, SECOND, SEND_LAST, SEND_MIDDLE, SEND_ONLY, Hellos, Run, Step, Steps,
                  acknowledgement, answer, answer_of_receiver, between_strangers, from_stranger, turned_around)
from operator_jobs import ALL, CLIPPED, MAXLOC, NOBODYS
from operators import fields_by, table, with_texts
from roce import (BARRIER, BROADCAST, RC_READ, RESULT, SEND_LAST_INVALIDATE, describe, flipped, read_pcap, serial,
                  stamped_pcap_bytes)
from seeds import try_seeds
from switch_model import Switch

TEMPLATE = CASES["job-by-operator"]  # the capture whose hellos frames are made of, the ring and its ports
FRAMES = 150
HURRY_NS = 10  # between frames: a job is over before a timer of the switch runs out, unless it pauses
LATE_NS = 20_000
ACK, NAK, RNR = 0x1F, 0x60, 0x2E  # syndromes
MESSAGES = 12
TABLES = b"", ALL, ALL, table({CLIPPED: "maxloc"}), table({MAXLOC: NOBODYS, CLIPPED: "clipped-i8-sum"})


class Author:
    """Writes a job while the model processes it, so that most of its frames are plausible."""

    def __init__(self, seed: int, case: Case, hellos: Hellos) -> None:
        self._random = random.Random(seed)
        self._switch = Switch(case)
        self._world = len(hellos)
        self._runs = [Run(hellos, epoch=5 + i // 3, nonce=0xA0 + i, qp=0x12 + self._random.randrange(2),
                          own_qp=self._random.choice((0, 0x11, 0x11, 0x21)),
                          psn=self._random.choice((0x001000, 0x001008, 0x500000, 0xFFFFF0)),
                          table=self._random.choice(TABLES)) for i in range(6)]
        self._said = [self._random.choice(({}, {}, {}, {"collective": BARRIER}, {"collective": BROADCAST, "root": 1},
                                           {"op": 1}, fields_by(MAXLOC), fields_by(CLIPPED)))
                      for _ in range(MESSAGES + 1)]
        self._jumps = 3
        self._now = 0
        self._frames = 0
        self._kinds: tuple[tuple[int, Callable[[], Iterator[bytes]]], ...] = (
            (12, self.hello), (4, self.hellos), (60, self.message), (4, self.plain), (6, self.stranger),
            (6, self.foreign), (3, self.other), (3, self.noise), (3, self.strange_header), (25, self.answer))

    def steps(self) -> Steps:
        while self._frames < FRAMES:
            kinds = self._random.choices([kind for _, kind in self._kinds], [weight for weight, _ in self._kinds])
            for frame in kinds[0]():
                yield self.step(frame)

    def step(self, frame: bytes) -> Step:
        after = HURRY_NS
        if self._jumps and self._random.random() < 0.02 and self.is_quiet():
            self._jumps, after = self._jumps - 1, AGEING + SECOND
        after = self.away_from_timers(self._now + after) - self._now
        self._now += after
        self._switch.receive(self._frames, frame, self._now)
        self._frames += 1
        return Step(frame, "", after)

    def is_quiet(self) -> bool:
        """Nobody waits for the switch to act. Else it would ask and keep alive thousands of times in a long pause."""
        switch = self._switch
        if any(hello.qp and hello.ina.ack_timeout for hellos in switch.waiting for hello in hellos):
            return False
        flows = [c.the_flow for c in switch.incarnation.connections] if switch.incarnation else []
        return not any(flow.qp and (flow.outstanding or switch.stalled()) for flow in flows)

    def away_from_timers(self, ns: int) -> int:
        """A time from `ns` on that is not right behind one at which a timer runs out: the switch may look late."""
        rules = self._switch.rules
        rules.advance(ns)
        while rules.looked_ns > ns - LATE_NS:
            ns = rules.looked_ns + LATE_NS
            rules.advance(ns)
        return ns

    def rank(self) -> int:
        return self._random.randrange(self._world)

    def some_run(self) -> Run:
        """Some run, usually with the valid session."""
        now = self._switch.incarnation
        if now is None:
            return self._random.choice(self._runs)
        live = [run for run in self._runs if (run.epoch, run.nonce) == (now.epoch, now.nonce)]
        run = self._random.choice(live if self._random.random() < 0.85 else self._runs)
        return replace(run, session=max(1, now.session - (self._random.random() < 0.05)))

    def hello(self) -> Iterator[bytes]:
        run = self._random.choice(self._runs)
        if self._random.random() < 0.15:
            run = replace(run, qp=0x14)
        elif self._random.random() < 0.1:
            run = replace(run, psn=run.psn - 1)
        elif self._random.random() < 0.1:
            run = replace(run, table=self._random.choice(TABLES))
        yield run.hello(self.rank(), ack_timeout=self._random.choice((0, 0, 31)))

    def hellos(self) -> Iterator[bytes]:
        run = self._random.choice(self._runs)
        for rank in self._random.sample(range(self._world), self._world):
            yield run.hello(rank)

    def message(self) -> Iterator[bytes]:
        """A message of some ranks, near the next one."""
        run, now = self.some_run(), self._switch.incarnation
        newest = max((c.newest for c in now.connections), default=0) if now else 0
        msg = max(1, min(MESSAGES, newest + self._random.choice((-9, -4, -1, 0, 0, 1, 1, 1, 2, 5))))
        for rank in self._random.sample(range(self._world), min(self._world, self._random.choice((1, 2, 3, 3)))):
            yield from self.packets(run, rank, msg)

    def packets(self, run: Run, rank: int, msg: int) -> Iterator[bytes]:
        said = self._said[msg]
        if said.get("collective") == BARRIER:
            yield run.only(rank, msg, **said)
            return
        if self._random.random() < 0.95:
            yield run.first(rank, msg, **said)
        if self._random.random() < 0.95:
            yield run.last(rank, msg)

    def plain(self) -> Iterator[bytes]:
        run = replace(self.some_run(), qp=self._random.choice((0x12, 0x13, 0x14, 0x20)))
        opcode = self._random.choice((SEND_ONLY, SEND_ONLY, SEND_MIDDLE, SEND_LAST))
        yield run.plain(self.rank(), opcode, self._random.choice((1, 0x200)))

    def stranger(self) -> Iterator[bytes]:
        """From another port than the member's."""
        run = self.some_run()
        rank, msg = self.rank(), self._random.randrange(1, MESSAGES)
        frame = self._random.choice((run.hello(rank), run.first(rank, msg), run.last(rank, msg),
                                     run.plain(rank, SEND_ONLY, 1), acknowledgement(run, rank)))
        yield from_stranger(frame)

    def foreign(self) -> Iterator[bytes]:
        run = replace(self.some_run(), ring=9, qp=self._random.choice((0x12, 0x14, 0x20, 0x21)))
        way = self._random.choice((lambda hello: hello, turned_around, between_strangers))
        run, rank = replace(run, hellos=[way(hello) for hello in run.hellos]), self.rank()
        said = {"flags": RESULT} if self._random.random() < 0.3 else {}
        yield self._random.choice((run.hello(rank), run.hello(rank, flags=RESULT, session=run.session), answer(run, rank),
                                   run.first(rank, 1, **said), run.first(rank, 1, **said), run.last(rank, 1),
                                   run.hello(rank, version=1), run.plain(rank, SEND_ONLY, 3)))

    def other(self) -> Iterator[bytes]:
        run = replace(self.some_run(), qp=self._random.choice((0x12, 0x13, 0x20)))
        opcode = self._random.choice((RC_READ, SEND_LAST_INVALIDATE, ACKNOWLEDGE))
        yield run.packet(self.rank(), opcode, self._random.choice((1, 2)))

    def answer(self) -> Iterator[bytes]:
        """A receiver's, most of them for what it may have got."""
        run, rank, now = self.some_run(), self.rank(), self._switch.incarnation
        flow = now.connections[rank].flow if now else None
        unacknowledged = serial(flow.a, flow.hello.psn, 24) if flow else 0
        place = unacknowledged + self._random.choice((-2, -1, 0, 0, 1, 1, 2, 3, 9))
        frame = answer_of_receiver(run, rank, place, self._random.choice((ACK, ACK, ACK, NAK, NAK, RNR, NAK + 1)))
        yield flipped(frame, 56) if self._random.random() < 0.05 else frame

    def noise(self) -> Iterator[bytes]:
        for frame in self.message():
            yield flipped(frame, 60 + self._random.randrange(len(frame) - 70))

    def strange_header(self) -> Iterator[bytes]:
        run, rank = self.some_run(), self.rank()
        said = self._random.choice(({"flags": 1}, {"flags": 2}, {"flags": 8}, {"root": 2}, {"collective": 7},
                                    {"epoch": 9}, {"session": 77}, {"world": 4}, {"rank": (rank + 1) % self._world},
                                    {"version": 2}, {"version": 3}, {"dtype": 255}, fields_by(CLIPPED)))
        yield self._random.choice((run.hello, lambda r, **s: run.first(r, MESSAGES, **s)))(rank, **said)


def job_of(seed: int) -> Case:
    """A job of two or three ranks; the configuration ties members to ports or does not."""
    case = replace(TEMPLATE, name=f"random-{seed}", note=f"random job {seed}", member_ports=seed % 2 == 0)
    if seed % 4 < 2:
        case = replace(case, members=case.members[:2], port_macs=case.port_macs[:2] + case.port_macs[3:])
        return replace(case, job=lambda hellos: Author(seed, case, [hellos[0], turned_around(hellos[0])]).steps())
    return replace(case, job=lambda hellos: Author(seed, case, hellos).steps())


def check(case: Case, directory: Path) -> None:
    """Raises Failed where switch and model differ."""
    config, sent, received = (directory / f"{case.name}.{kind}" for kind in ("yaml", "in.pcap", "out.pcap"))
    config.write_text(with_texts(ring_yaml(case)))
    sent.write_bytes(stamped_pcap_bytes(case.frames()))
    stats = replays.replay(config, sent, received)
    frames, switch = expect.run(case)
    replays.compare_frames(switch, read_pcap(received))
    replays.compare_counters(expect.counters(case, frames, switch), stats)


def difference(case: Case, steps: list[Step], directory: Path) -> str | None:
    """The difference between switch and model for these frames."""
    try:
        check(replace(case, job=lambda hellos: iter(steps)), directory)
    except (replays.Failed, AssertionError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


def shortened(case: Case, directory: Path) -> list[Step]:
    """A few of a failing job's frames that also fail: the shortest beginning, without all frames that are not needed."""
    steps, last = case.steps(), 0
    while difference(case, steps[:last + 1], directory) is None:
        last += 1
    steps = steps[:last + 1]
    for at in reversed(range(len(steps))):
        fewer = steps[:at] + steps[at + 1:]
        if difference(case, fewer, directory):
            steps = fewer
    return steps


def explain(case: Case, directory: Path) -> None:
    steps = shortened(case, directory)
    _, switch = expect.run(replace(case, job=lambda hellos: iter(steps)))
    ports = "tied" if case.member_ports else "open"
    print(f"  FAILED  {case.note}; these frames are enough, members' ports are {ports}:")
    for index, step in enumerate(steps):
        print(f"    {step.after_ns // SECOND} s later, {switch.fate[index]}: {describe(step.frame)}")
    print(f"    {difference(case, steps, directory)}")


def passes(seed: int, directory: Path) -> bool:
    case = job_of(seed)
    if difference(case, case.steps(), directory) is None:
        return True
    explain(case, directory)
    return False


if __name__ == "__main__":
    sys.exit(try_seeds(__doc__, "jobs", 200, passes))
