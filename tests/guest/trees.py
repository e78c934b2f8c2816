# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with a tree of switches: six guests on two leaves below a spine (docs/protocol.md §11)."""

from __future__ import annotations

import time

from allreduce import RETRIES, STANDS, WORKER, finish_job, ring_counters, run_job, start_job
from fabric import Setup
from lab import Lab
from patience import LATE, LONG_S, Wait, wait_for_weir, with_stopped_worker
from rings import ALL
from scenarios import When, expect, scenario
from switch import Ring, Weir

RING = Ring(ALL, 70)
TREE = Setup(guests=6, rings=(RING,), leaves=2)
LOSS = 0.03
DEADLINE_S = 6  # of a job whose switch is gone
NOTICING_S = 6.0  # for emulated hosts to see what has come, and to end
STRAGGLERS_ACK_TIMEOUT_MS = 4000  # its hosts share their processors with other scenarios


def in_tree(lab: Lab, options: str) -> str:
    """A worker checks every element against the fold by leaves."""
    return f"{options} --tree {lab.tree.lists()}"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree(lab: Lab) -> str:
    """Without loss: types whose bits depend on the order; less than a packet, not a whole message."""
    cases = ["--size 256KiB --repeat 2", "--size 4 --type i32 --op max", "--size 65538 --type bf16 --out-of-place",
             "--size 100000 --type f64"]
    seconds = [run_job(lab, in_tree(lab, case)) for case in cases]
    return f"{len(cases)} jobs exact; 2 x 256 KiB of f32 in {seconds[0]:.2f} s"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree_with_loss(lab: Lab) -> str:
    """Every link loses, hosts' and switches', in both directions: also PARTIAL hellos, partial sums, totals, answers."""
    lab.tree.links.lose(LOSS)
    seconds = run_job(lab, in_tree(lab, f"--size 384KiB --ack-timeout-ms 250 --retries {RETRIES}"))
    lost = lab.tree.links.lost()
    expect(min(lost.values()) > 0, f"a link has lost nothing: {lost}")
    between = sum(count for way, count in lost.items() if way in lab.tree.between_switches)
    return f"exact in {seconds:.2f} s; lost: {sum(lost.values()) - between} at hosts, {between} between switches"


def with_restart(lab: Lab, weir: Weir) -> str:
    done = ring_counters(lab, RING)["slots_completed"]
    jobs = start_job(lab, in_tree(lab, f"--size 4MiB --repeat 50 --ack-timeout-ms 100 --timeout {DEADLINE_S}"))
    wait_for_weir(lambda: ring_counters(lab, RING)["slots_completed"] > done + 20, jobs)
    weir.kill()
    weir.start()
    began = time.monotonic()
    for rank, job in enumerate(jobs):
        result = job.wait(max(began + DEADLINE_S + NOTICING_S - time.monotonic(), 0.1))
        expect(result.status == 1, f"rank {rank} should have failed: {result.complaint}")
        expect("expected" not in result.output, f"rank {rank} had a wrong sum: {result.output[-500:]}")
        expect(STANDS.search(result.output) is not None,
               f"rank {rank} does not say how its queue pairs stand: {result.output[-900:]}")
    ended = time.monotonic() - began
    return f"every rank got an error within {ended:.1f} s; new job exact in {run_job(lab, in_tree(lab, '--size 64KiB')):.2f} s"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree_leaf_restarted(lab: Lab) -> str:
    """In the middle of a job: errors also behind the other leaf, no wrong sum; a new job succeeds."""
    return with_restart(lab, lab.tree.leaves[1])


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree_spine_restarted(lab: Lab) -> str:
    return with_restart(lab, lab.tree.spine)


@scenario(TREE, needs_weir=True, programs=(WORKER,), when=When.BESIDE)
def tree_straggler(lab: Lab) -> str:
    """For two minutes a worker is stopped. Ranks of both leaves wait, kept alive by their leaf or by the spine."""
    waiting = tuple(rank for rank in ALL if rank != LATE)
    return with_stopped_worker(lab, Wait(waiting, LONG_S, STRAGGLERS_ACK_TIMEOUT_MS, RING), in_tree(lab, ""))
