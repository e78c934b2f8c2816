# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of weir-worker that use the same epoch again: every run gets its own sums, however the one before ended."""
from __future__ import annotations

import signal
import time

from hosts import RANKS, WINDOW, ring_7, ring_ports, ring_row
from lab import Lab, smoke_test
from netns import veth
from test_control import at_socket, said
from test_worker import RENDEZVOUS, WORKER, Process
from weir import BUILD, configuration, expect, wait_for

MESSAGE_BYTES = 16384
EPOCH = 5
SECOND_RENDEZVOUS = "127.0.0.1:7998"
OUSTED_RANK = BUILD / "tests/support/ousted_rank"
TAKEN = "another job began on ring 7 of the switch"
GIVEN_UP = "the switch has ended the job: its ring was reset or withdrawn"


class Jobs:
    """A switch, and the start of a job's ranks at its ports."""

    def __init__(self, lab: Lab) -> None:
        fabric, self.outside = lab.namespace(), lab.namespace()
        self._lab = lab
        for rank in range(RANKS):
            veth(fabric, f"tap{rank}", self.outside, f"host{rank}")
        self.switch = lab.ready_weir(fabric, at_socket(lab, configuration(ring_ports(), rings=ring_7(max_message_bytes=MESSAGE_BYTES))))

    def start(self, operation: str, *more: str, rendezvous: str = RENDEZVOUS) -> list[Process]:
        """The ranks' values depend only on the epoch, so runs of one epoch differ by their operation."""
        return [Process(self._lab, self.outside, [
            WORKER, "--rank", str(rank), "--world", str(RANKS), "--rendezvous", rendezvous, "--ring", "7", "--epoch",
            str(EPOCH), "--device", f"iface=host{rank}", "--ip", f"10.77.0.{rank + 1}", "--window", str(WINDOW),
            "--message-bytes", str(MESSAGE_BYTES), "--type", "i32", "--op", operation, *more]) for rank in range(RANKS)]


def expect_exact(ranks: list[Process]) -> None:
    for rank, process in enumerate(ranks):
        status, output = process.wait()
        expect(status == 0 and "algorithm=switch verified=every_element" in output, f"rank {rank}: {status}, {output}")


@smoke_test("worker-same-epoch")
def same_epoch(lab: Lab) -> None:
    jobs = Jobs(lab)
    for operation in ("sum", "max", "min"):
        expect_exact(jobs.start(operation, "--size", "1MiB"))
    expect(ring_row(jobs.switch)["hellos"] == 3, f"{ring_row(jobs.switch)}")
    jobs.switch.stop()


@smoke_test("worker-killed-same-epoch")
def killed_same_epoch(lab: Lab) -> None:
    """All ranks are killed in the middle of an all-reduce and started again within a second."""
    jobs = Jobs(lab)
    killed = jobs.start("sum", "--size", "8MiB", "--repeat", "1000")
    wait_for(lambda: ring_row(jobs.switch)["results"] > 2000, 20, "the first run does not get on")
    for process in killed:
        process.process.send_signal(signal.SIGKILL)
    since = time.monotonic()
    restarted = jobs.start("max", "--size", "1MiB", "--repeat", "3")
    expect(time.monotonic() - since < 1, "not restarted within a second")
    expect_exact(restarted)
    expect(ring_row(jobs.switch)["hellos"] == 2, f"{ring_row(jobs.switch)}")
    jobs.switch.stop()


def ranks_at_work(jobs: Jobs) -> list[Process]:
    """Ranks that are in the middle of their all-reduces. Acknowledgements are under way too."""
    before = ring_row(jobs.switch)["results"]
    ranks = jobs.start("sum", "--size", "8MiB", "--repeat", "100000", "--timeout", "20000")
    wait_for(lambda: ring_row(jobs.switch)["results"] > before + 2000, 20, "the job does not get on")
    return ranks


def expect_told(ranks: list[Process], why: str) -> None:
    """By the switch, and not by their time limit (docs/protocol.md §2a)."""
    for rank, process in enumerate(ranks):
        status, output = process.wait()
        expect(status == 1 and why in output, f"rank {rank}: {status}, {output}")


@smoke_test("worker-ring-taken")
def ring_taken(lab: Lab) -> None:
    """Each rank of the first is told so by the switch, and the second one's sums are exact."""
    jobs = Jobs(lab)
    first = ranks_at_work(jobs)
    expect_exact(jobs.start("max", "--size", "1MiB", "--repeat", "3", rendezvous=SECOND_RENDEZVOUS))
    expect_told(first, TAKEN)
    jobs.switch.stop()


@smoke_test("worker-ring-given-up")
def ring_given_up(lab: Lab) -> None:
    """The same where somebody resets the ring of a running job, and where he withdraws it. After the reset the next job is exact."""
    jobs = Jobs(lab)
    for order, done in (("reset ring 7", "ring 7: reset\n"), ("withdraw ring 7", "ring 7: withdrawn\n")):
        ranks = ranks_at_work(jobs)
        expect(said(lab, order) == done, order)
        expect_told(ranks, GIVEN_UP)
        if order == "reset ring 7":
            expect_exact(jobs.start("max", "--size", "1MiB"))
    jobs.switch.stop()


@smoke_test("ring-taken-between-calls")
def ring_taken_between_calls(lab: Lab) -> None:
    """The same while the first job's ranks compute: each is told when it makes its next call. A shrink leaves the other job
    its ring, and goes on by another."""
    jobs, go = Jobs(lab), lab.directory / "go"
    first = [Process(lab, jobs.outside, [OUSTED_RANK, str(rank), str(RANKS), RENDEZVOUS, "7", f"host{rank}", f"10.77.0.{rank + 1}",
                                            str(go)]) for rank in range(RANKS)]
    for process in first:
        assert process.process.stdout is not None
        line = process.process.stdout.readline()
        expect(line == "ousted_rank: formed\n", line)
    second = jobs.start("max", "--size", "1MiB", "--repeat", "100000", rendezvous=SECOND_RENDEZVOUS)
    wait_for(lambda: ring_row(jobs.switch)["hellos"] == 2, 20, "the second job does not begin")
    go.touch()
    for rank, process in enumerate(first):
        status, output = process.wait()
        expect(status == 0 and "ousted_rank: barrier: mismatch: rank " in output and TAKEN in output, f"rank {rank}: {status}, {output}")
        expect("ousted_rank: shrink: mismatch: shrink: ring 7: found the ring on which another job has begun" in output and
               "ousted_rank: elsewhere: ok: " in output, f"rank {rank}: {output}")
    row = ring_row(jobs.switch)
    expect((row["hellos"], row["connected"], row["told"] >= 1) == (2, RANKS, True), f"{row}")
    for process in second:
        process.kill()
    jobs.switch.stop()
