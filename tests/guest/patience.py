# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios in which one host makes all others wait, for far longer than their queue pairs do by themselves.

With RETRIES retries and ACK_TIMEOUT_MS, a queue pair that hears nothing fails within six seconds. A job that waits longer
shows that Weir keeps the senders alive.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from allreduce import RENDEZVOUS_PORT, RETRIES, WORKER, finish_job, ring_counters, start_job
from capture import Captured, is_answer, is_rocev2, read_capture
from guest import Job
from lab import Lab
from preload import preloaded
from scenarios import C_RING, PLAIN, RING, When, expect, scenario
from switch import Ring

LATE = 1  # the rank that the others wait for
ALL_OTHERS = tuple(rank for rank in range(len(RING.guests)) if rank != LATE)
ACK_TIMEOUT_MS = 500
LATE_RANK = "build/tests/support/late_rank"  # its timeout is 4 s, its ACK timeout a quarter of one
COMPUTING_S = 12
MOST_AFTER_MS = 2000  # of the calls, once the last rank makes them
PATIENT = f"--retries {RETRIES} --timeout 400"
SHORT_S = 10.0
LONG_S = 120.0
BEGIN_S = 60.0
SETTLING_S = 2.0  # for what is under way when a host stops


@dataclass(frozen=True)
class Wait:
    """Ranks that wait for rank LATE of a ring, and for how long."""

    ranks: tuple[int, ...]
    seconds: float
    ack_timeout_ms: int
    ring: Ring = RING

    def pass_quietly(self, lab: Lab) -> str:
        """Expects by their own devices' counters that they send nothing, and are kept alive."""
        guests = [lab.guests[self.ring.guests[rank]] for rank in self.ranks]
        before = [guest.rdma_counters() for guest in guests]
        time.sleep(self.seconds)
        kept = []
        for guest, was in zip(guests, before, strict=True):
            now = guest.rdma_counters()
            sent, received = (now[name] - was[name] for name in ("sent_pkts", "rcvd_pkts"))
            expect(sent == 0, f"{guest.who.name} has sent {sent} packets in {self.seconds:.0f} s of waiting")
            expect(received >= self.seconds * 1000 // (2 * self.ack_timeout_ms),
                   f"{guest.who.name} was kept alive only {received} times in {self.seconds:.0f} s")
            kept.append(f"{guest.who.name} {received} times")
        return f"{self.seconds:.0f} s without a repeat, kept alive: {', '.join(kept)}"


def with_late_rank(lab: Lab, begin: Callable[[], list[Job]], resume: Callable[[], None], wait: Wait) -> str:
    """A job whose rank LATE keeps the others waiting from `begin` to `resume`; what they did, and how they went on."""
    jobs = begin()
    time.sleep(SETTLING_S)
    said = wait.pass_quietly(lab)
    captures = [lab.fabric.capture(guest, "in") for guest in wait.ring.guests]
    resume()
    finish_job(jobs)
    time.sleep(1.0)  # time for tcpdump to read the rest
    for capture in captures:
        capture.stop()
    return f"exact; {said}; {went_on([read_capture(capture.file) for capture in captures])}"


def went_on(came: list[list[Captured]]) -> str:
    """How long after LATE's first packet the others sent their first, by rank."""
    first = [next((captured.seconds for captured in port if is_rocev2(captured.frame) and not is_answer(captured.frame)),
                  None) for port in came]
    expect(None not in first, f"not every rank sent again: {first}")
    began = first[LATE] or 0.0
    after = [((seconds or 0.0) - began) * 1000 for rank, seconds in enumerate(first) if rank != LATE]
    return f"on after {' and '.join(f'{milliseconds:.1f}' for milliseconds in after)} ms"


def begin_big_job(lab: Lab, options: str, ring: Ring = RING) -> list[Job]:
    """Returns when Weir reduces what will take many seconds more."""
    done = ring_counters(lab, ring)["slots_completed"]
    jobs = start_job(lab, f"--size 8MiB {options}", ring)
    wait_for_weir(lambda: ring_counters(lab, ring)["slots_completed"] > done + 500, jobs)
    return jobs


def wait_for_weir(condition: Callable[[], bool], jobs: list[Job]) -> None:
    deadline = time.monotonic() + BEGIN_S
    while not condition():
        expect(time.monotonic() < deadline, f"the job does not get that far in {BEGIN_S:.0f} s: {jobs[0].output}")
        time.sleep(0.02)


def held(lab: Lab) -> int:
    """Frames that wait in Weir, hellos among them."""
    return int(lab.weir.telemetry("/weir/accounting")["accounting"]["0"]["held"])


# -- a stopped process: its host's queue pairs go on acknowledging


def with_stopped_worker(lab: Lab, wait: Wait, options: str = "") -> str:
    late = lab.guests[wait.ring.guests[LATE]]

    def begin() -> list[Job]:
        jobs = begin_big_job(lab, f"--ack-timeout-ms {wait.ack_timeout_ms} {PATIENT} {options}", wait.ring)
        late.control("busybox killall -STOP weir-worker")
        return jobs

    return with_late_rank(lab, begin, lambda: late.control("busybox killall -CONT weir-worker"), wait)


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def stopped_worker(lab: Lab) -> str:
    return with_stopped_worker(lab, Wait(ALL_OTHERS, SHORT_S, ACK_TIMEOUT_MS))


@scenario(PLAIN, needs_weir=True, programs=(WORKER,), when=When.BY_NAME)
def stopped_worker_for_minutes(lab: Lab) -> str:
    return with_stopped_worker(lab, Wait(ALL_OTHERS, LONG_S, ACK_TIMEOUT_MS))


# -- a stopped host: it acknowledges nothing either, so its predecessor must be patient by itself


def with_stopped_host(lab: Lab, seconds: float, ack_timeout_ms: int) -> str:
    """The predecessor's results are on their way to a host that does not answer. Weir does not hide that, so the ACK
    timeout must cover the time (docs/deployment.md §7). The other ranks have no such trouble."""
    late = lab.guests[RING.guests[LATE]]

    def begin() -> list[Job]:
        jobs = begin_big_job(lab, f"--ack-timeout-ms {ack_timeout_ms} {PATIENT}")
        late.stop()
        return jobs

    not_before_it = tuple(rank for rank in ALL_OTHERS if rank != LATE - 1)
    return with_late_rank(lab, begin, late.resume, Wait(not_before_it, seconds, ack_timeout_ms))


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def stopped_host(lab: Lab) -> str:
    return with_stopped_host(lab, SHORT_S, 4000)


@scenario(PLAIN, needs_weir=True, programs=(WORKER,), when=When.BY_NAME)
def stopped_host_for_minutes(lab: Lab) -> str:
    return with_stopped_host(lab, LONG_S, 20000)


# -- hosts that start apart


def with_late_hello(lab: Lab, seconds: float) -> str:
    """Rank LATE says hello that much later than the others, whose hellos wait in Weir."""
    preload = preloaded(lab, RING, "late_hello")
    lateness = seconds + 4 * SETTLING_S

    def begin() -> list[Job]:
        jobs = start_job(lab, f"--size 256KiB --ack-timeout-ms {ACK_TIMEOUT_MS} {PATIENT}", RING,
                         lambda rank: f"{preload} WEIR_LATE_S={lateness if rank == LATE else 0}")
        wait_for_weir(lambda: held(lab) == len(RING.guests) - 1, jobs)
        return jobs

    return with_late_rank(lab, begin, lambda: None, Wait(ALL_OTHERS, seconds, ACK_TIMEOUT_MS))


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def late_hello(lab: Lab) -> str:
    return with_late_hello(lab, SHORT_S)


@scenario(PLAIN, needs_weir=True, programs=(WORKER,), when=When.BY_NAME)
def late_hello_by_minutes(lab: Lab) -> str:
    return with_late_hello(lab, LONG_S)


# -- a rank that computes between two calls, while its library answers for it


@scenario(PLAIN, needs_weir=True, programs=(LATE_RANK,))
def late_call(lab: Lab) -> str:
    """The last rank makes its calls three timeouts after the others, which hear from weir_wait_for that it is late."""
    first = lab.guests[C_RING.guests[0]].who.ip
    results = lab.run_on_all(lambda guest: f"late_rank {guest.who.rank} {len(C_RING.guests)} {first}:{RENDEZVOUS_PORT} "
                                           f"{C_RING.ring_id} rxe0 {COMPUTING_S}")
    took = []
    for result in results:
        found = re.search(r"^late_rank: exact after (\d+) ms by way of the switch$", result.output, re.MULTILINE)
        expect(found is not None, result.output)
        assert found is not None
        took.append(int(found[1]))
    *waited, last = took
    expect(min(waited) > COMPUTING_S * 900, f"nobody was late: the others' calls took {waited} ms")
    expect(last < MOST_AFTER_MS, f"the calls took {last} ms once the last rank had made them")
    return f"exact; the others waited {min(waited) / 1000:.1f} s, the last rank {last} ms"
