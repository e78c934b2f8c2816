# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios in which weir-worker all-reduces over the guests' soft-RoCE queue pairs, through Weir.

Every worker compares every element of its result with its own reference, bit for bit, so status 0 means "exact".
"""

from __future__ import annotations

import re
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

from capture import read_frames
from guest import Job
from lab import Lab
from scenarios import (C_RING, JUMBO, LOSSY_RING, PERFTEST_PORT, PLAIN, RING, RING6, RING_OF_TWO, SECOND_RING, When, expect,
                       scenario)
from switch import Ring

WORKER = "build/app/weir-worker"
C_RANK = "build/tests/support/c_rank"
QUIET_RANK = "build/tests/support/quiet_rank"
SHRINK_RANK = "build/tests/support/shrink_rank"
RENDEZVOUS_PORT = 7471
IPV6_ETHERTYPE = b"\x86\xdd"
UDP = 17
END_OF_JOB_S = 120.0
KILLED = 128 + signal.SIGKILL
PERFTEST_S = 10.0
SLOW_LINK_MBIT = 16.0
RETRIES = 6  # the most that soft-RoCE counts: seven are no limit there
STANDS = re.compile(r"the queue pair to rank \d is in RTS, its messages end before PSN \d+, and it sends PSN \d+ next; "
                    r"the one from rank \d is in RTS and waits for PSN \d+")
CPU_TIME = re.compile(r"^result: .*cpu_s/GB=(\S+)", re.MULTILINE)
RESULT = re.compile(r"^result: .*seconds=(\S+) .*verified=every_element", re.MULTILINE)


def worker(lab: Lab, ring: Ring, rank: int, options: str, epoch: int) -> str:
    first = lab.guests[ring.guests[0]]
    return (f"weir-worker --rank {rank} --world {len(ring.guests)} "
            f"--rendezvous {first.who.ip}:{RENDEZVOUS_PORT + ring.ring_id} --ring {ring.ring_id} "
            f"--transport verbs --device rxe0 --window {ring.window} --message-bytes {ring.max_message_bytes} "
            f"--mtu {ring.mtu} --epoch {epoch} --ack-timeout-ms 500 --timeout 30 {options}")


class Epochs:
    """Larger from job to job in all scenarios: packets of a killed job may still be under way."""

    last = 0

    @classmethod
    def next(cls) -> int:
        cls.last += 1
        return cls.last


def start_job(lab: Lab, options: str, ring: Ring | None = None,
              environment: Callable[[int], str] = lambda rank: "") -> list[Job]:
    """One worker on each member of `ring`, by default the setup's first; jobs[r] is rank r's.

    `environment` gives the variables of a rank's process, as a shell takes them."""
    ring = ring or lab.setup.rings[0]
    epoch = Epochs.next()
    return [lab.guests[guest].start(f"{environment(rank)} {worker(lab, ring, rank, options, epoch)}")
            for rank, guest in enumerate(ring.guests)]


def finish_job(jobs: list[Job]) -> float:
    """Waits for all; the slowest worker's seconds for one all-reduce."""
    slowest = 0.0
    results = [job.wait(END_OF_JOB_S) for job in jobs]
    expect(all(result.status == 0 for result in results), "\n".join(result.complaint for result in results))
    for result in results:
        found = RESULT.search(result.output)
        assert found is not None, result.output
        slowest = max(slowest, float(found[1]))
    return slowest


def run_job(lab: Lab, options: str, ring: Ring | None = None) -> float:
    return finish_job(start_job(lab, options, ring))


@scenario(PLAIN, JUMBO, needs_weir=True, programs=(WORKER,))
def all_reduce(lab: Lab) -> str:
    """Types, operations and sizes, also special ones: one element, less than a packet, not a whole message."""
    cases = ["--size 1MiB --repeat 2", "--size 4 --type i32 --op max", "--size 1004 --type i32",
             "--size 100000 --type f64 --op min", "--size 65538 --type bf16 --out-of-place"]
    seconds = [run_job(lab, case) for case in cases]
    return f"{len(cases)} jobs exact; 2 x 1 MiB of f32 in {seconds[0]:.2f} s"


def ring_counters(lab: Lab, ring: Ring) -> dict[str, Any]:
    return dict(lab.weir.telemetry(f"/weir/ring,{ring.ring_id}")["rings"]["0"])


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def several_rings(lab: Lab) -> str:
    """A job over two rings of the same members: each carries half of every tensor."""
    before = [ring_counters(lab, ring)["slots_completed"] for ring in (RING, SECOND_RING)]
    seconds = run_job(lab, f"--ring {RING.ring_id},{SECOND_RING.ring_id} --size 1000004 --repeat 2")
    slots = [ring_counters(lab, ring)["slots_completed"] - was
             for ring, was in zip((RING, SECOND_RING), before, strict=True)]
    expect(min(slots) > 900 and max(slots) - min(slots) <= 2, f"the rings completed {slots} slots")
    return f"exact in {seconds:.2f} s; {slots[0]} and {slots[1]} slots"


def run_c_ranks(lab: Lab, ring_id: int, way: str) -> None:
    first = lab.guests[0].who.ip
    for result in lab.run_on_all(lambda guest: (
            f"c_rank {guest.who.rank} 3 {first}:{RENDEZVOUS_PORT} {ring_id} verbs rxe0")):
        expect(f"exact by way of the {way} " in result.output, result.output)


@scenario(PLAIN, needs_weir=True, programs=(C_RANK,))
def c_api(lab: Lab) -> str:
    """Ranks in C over verbs, in memory that the device knows, does not, and knows in part: every collective, in place
    and not; through the switch, then on a ring it does not know."""
    run_c_ranks(lab, C_RING.ring_id, "switch")
    run_c_ranks(lab, C_RING.ring_id + 100, "ring")
    return "exact by way of the switch, and of the ring"


@scenario(PLAIN, needs_weir=True, programs=(C_RANK,))
def c_api_with_loss(lab: Lab) -> str:
    """The same through the switch, while 1 % of all packets from every guest are lost: repeats are sent from memory in
    which results may lie already."""
    for guest in lab.guests:
        guest.netem("loss 1%")
    run_c_ranks(lab, C_RING.ring_id, "switch")
    return "exact by way of the switch"


@scenario(PLAIN, needs_weir=True, programs=(QUIET_RANK,))
def quiet_after_abort(lab: Lab) -> str:
    """A rank aborts calls in the middle, while a tenth of all packets is lost: no NIC writes a tensor whose call failed."""
    for guest in lab.guests:
        guest.netem("loss 10%")
    first = lab.guests[0].who.ip
    for result in lab.run_on_all(lambda guest: (
            f"quiet_rank {guest.who.rank} 3 {first}:{RENDEZVOUS_PORT} {C_RING.ring_id} rxe0")):
        expect("nothing was written" in result.output, result.output)
    return "nothing was written after five aborts"


def shrink_to(lab: Lab, rest: Ring, way: str) -> None:
    """Rank 1 kills itself; the other two go on, on the ring `rest`."""
    first, victim = lab.guests[0].who.ip, 1
    jobs = [guest.start(f"shrink_rank {guest.who.rank} 3 {first}:{RENDEZVOUS_PORT} {C_RING.ring_id} rxe0 {victim} "
                        f"{rest.ring_id}") for guest in lab.guests]
    for rank, job in enumerate(jobs):
        result = job.wait(END_OF_JOB_S)
        if rank == victim:
            expect(result.status == KILLED, result.complaint)
        else:
            expect(f"exact among 2 by way of the {way}" in result.output, result.complaint)


@scenario(PLAIN, needs_weir=True, programs=(SHRINK_RANK,))
def shrink(lab: Lab) -> str:
    """A rank is killed in the middle of a call. The others shrink the group and reduce in the same registered memory:
    through the switch, on a ring of two; then with a ring of three, for which they are too few, among themselves."""
    shrink_to(lab, RING_OF_TWO, "switch")
    shrink_to(lab, C_RING, "ring")
    return "two of three ranks went on, exact, by way of the switch and of the ring"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,), when=When.BY_NAME)
def registered_memory(lab: Lab) -> str:
    """What copies cost: the CPU time for a gigabyte with registered memory and without, in turns."""
    options = {"registered": "", "copied": "--no-register"}
    found: dict[str, list[float]] = {name: [] for name in options}
    for _ in range(5):
        for name, option in options.items():
            jobs = start_job(lab, f"--size 4MiB --repeat 2 --out-of-place {option}")
            finish_job(jobs)
            found[name] += [float(spent) for job in jobs for spent in CPU_TIME.findall(job.output)]
    return ", ".join(f"{name}: {statistics.median(times):.3f} s/GB" for name, times in found.items())


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def ipv6_members(lab: Lab) -> str:
    """RoCE v2 over IPv6: the ring's members have IPv6 addresses."""
    indices = {guest.add_ip6() for guest in lab.guests}
    expect(len(indices) == 1, f"the guests have their IPv6 addresses at other GIDs: {indices}")
    capture = lab.fabric.capture(1, "in")
    seconds = run_job(lab, f"--size 200000 --repeat 2 --gid-index {indices.pop()}", RING6)
    time.sleep(1.0)  # time for tcpdump to read the rest
    capture.stop()
    over_ipv6 = sum(frame[12:14] == IPV6_ETHERTYPE and frame[20] == UDP for frame in read_frames(capture.file))
    due = 2 * (12 * 16 + 4)  # packets of twelve whole messages and the rest, twice
    expect(over_ipv6 > due, f"only {over_ipv6} UDP frames over IPv6; {due} packets had data")
    return f"exact in {seconds:.2f} s; one rank sent {over_ipv6} frames over IPv6"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def all_reduce_with_loss(lab: Lab) -> str:
    """1 % of all packets from every guest are lost, acknowledgements included."""
    for guest in lab.guests:
        guest.netem("loss 1%")
    seconds = run_job(lab, "--size 256KiB", LOSSY_RING)
    return f"exact in {seconds:.2f} s"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def straggler(lab: Lab) -> str:
    """One rank stops for some seconds; the others' queue pairs wait for it."""
    jobs = start_job(lab, "--size 1MiB --repeat 6 --retries 7 --ack-timeout-ms 4000")
    jobs[1].wait_for("algorithm=switch")
    lab.guests[1].run("busybox killall -STOP weir-worker; sleep 3; busybox killall -CONT weir-worker")
    return f"exact in {finish_job(jobs):.2f} s"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def killed_worker(lab: Lab) -> str:
    """A worker is killed during a job: the others name its rank, and the next job finds a clean ring."""
    jobs = start_job(lab, "--size 4MiB --repeat 50")
    jobs[1].wait_for("algorithm=switch")
    jobs[1].kill()
    for rank in (0, 2):
        result = jobs[rank].wait(END_OF_JOB_S)
        expect(result.status == 1, f"rank {rank} should have failed: {result.complaint}")
        expect("rank 1" in result.output, f"rank {rank} does not name rank 1: {result.output[-500:]}")
    seconds = run_job(lab, "--size 256KiB")
    counters = ring_counters(lab, RING)
    expect(counters["filling"] == 0 and counters["held"] == 0, f"the dead job's slots are not reclaimed: {counters}")
    return f"rank 1 named by both others; restarted job exact in {seconds:.2f} s, no slot left filling"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def killed_switch(lab: Lab) -> str:
    """Weir is killed and started again during a job: errors, no wrong sum; a new job succeeds."""
    jobs = start_job(lab, "--size 4MiB --repeat 50 --ack-timeout-ms 100")
    jobs[0].wait_for("algorithm=switch")
    lab.switch.kill()
    lab.switch.start()
    for rank, job in enumerate(jobs):
        result = job.wait(END_OF_JOB_S)
        expect(result.status == 1, f"rank {rank} should have failed: {result.complaint}")
        expect("expected" not in result.output, f"rank {rank} had a wrong sum: {result.output[-500:]}")
        expect(STANDS.search(result.output) is not None, f"no rank said how its queue pairs stand: {result.output[-900:]}")
    return f"every rank got an error; new job exact in {run_job(lab, '--size 256KiB'):.2f} s"


@scenario(PLAIN, needs_weir=True, programs=(WORKER,))
def perftest_beside(lab: Lab) -> str:
    """WRITE and SEND, both ways, between neighbours of a ring while it reduces. Their acknowledgements belong to two queue
    pairs then: Weir answers for the ring's, and never for the other.

    The links are slow. As fast as it can perftest takes all of the guests' processors, and a soft-RoCE sender that gets too
    little of one loses its way (docs/transports.md)."""
    server, client = (lab.guests[guest] for guest in RING.guests[:2])
    for guest in (server, client):
        guest.limit_rate(SLOW_LINK_MBIT)
    said = []
    for program in ("ib_write_bw", "ib_send_bw"):
        command = f"{program} -d rxe0 -x 1 -F -b -s 65536 -t 8 -u 20 -m {lab.setup.path_mtu} -D {PERFTEST_S:.0f}"
        serving = server.start(command)
        server.wait_listening(PERFTEST_PORT)
        asking = client.start(f"{command} {server.who.ip}")
        client.wait_until("rdma resource show qp | grep -q 'type RC state RTS'")  # what it prints comes at its end
        seconds = finish_job(start_job(lab, f"--size 256KiB --retries {RETRIES}", RING))
        began = time.monotonic() - seconds
        ended = [side for side in (asking, serving) if not side.is_running and side.started + side.seconds < began]
        expect(not ended, f"{program} ended before the all-reduce began: {asking.output}")
        for side in (asking, serving):
            result = side.wait(60.0 + PERFTEST_S)
            expect(result.status == 0, result.complaint)
        said.append(f"beside {written(asking.output, program)} exact in {seconds:.2f} s")
    return "; ".join(said)


def written(output: str, program: str) -> str:
    counted = re.search(r"^\s*65536\s+(\d+)\s", output, re.MULTILINE)
    expect(counted is not None and int(counted[1]) > 0, f"{program}: {output}")
    assert counted is not None
    return f"{program}'s {counted[1]} x 65536 bytes"
