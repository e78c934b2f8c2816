# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with a tree of switches: six guests on two leaves below a spine (docs/protocol.md §11)."""

from __future__ import annotations

import re
import sys
import time
from typing import Any

from allreduce import RETRIES, STANDS, WORKER, finish_job, ring_counters, run_job, start_job
from bad_links import drops
from fabric import Capture, Setup
from lab import Lab
from patience import LATE, LONG_S, Wait, wait_for_weir, with_stopped_worker
from rings import ALL
from scenarios import When, expect, scenario
from stranger import __file__ as STRANGER
from switch import Ring, Weir
from tree import outside, uplink

# As of LOSSY_RING: it loses on so many links.
RING = Ring(ALL, 70, window=4, max_message_bytes=4096)
TREE = Setup(guests=6, rings=(RING,), leaves=2)
LOSS = 0.03
# The ranks' TCP connections cross the switches too, and may be the first to be given up.
CLEAR = re.compile(rf"{STANDS.pattern}|^weir-worker: peer_died: rank \d died", re.MULTILINE)
DEADLINE_S = 6  # of a job whose switch is gone
NOTICING_S = 6.0  # for emulated hosts to see what has come, and to end
BROADCAST = "10.77.0.255"
LOOKED_AT_S = 1.0  # for the switches to have looked at frames
STRANGERS = (1, 4)  # hosts at whose ports they are, one on each leaf
STRAGGLERS_ACK_TIMEOUT_MS = 4000  # its hosts share their processors with other scenarios


def in_tree(lab: Lab, options: str) -> str:
    """A worker checks every element against the fold by leaves."""
    return f"{options} --tree {lab.tree.lists()}"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree(lab: Lab) -> str:
    """Without loss: types whose bits depend on the order; less than a packet, not a whole message."""
    cases = ["--size 256KiB --repeat 2", "--size 4 --type i32 --op max", "--size 65538 --type bf16 --out-of-place"]
    seconds = [run_job(lab, in_tree(lab, case)) for case in cases]
    return f"{len(cases)} jobs exact; 2 x 256 KiB of f32 in {seconds[0]:.2f} s"


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree_with_loss(lab: Lab) -> str:
    """Every link loses, hosts' and switches', in both directions: also PARTIAL hellos, partial sums, totals, answers."""
    lab.tree.links.lose(LOSS)
    seconds = run_job(lab, in_tree(lab, f"--size 256KiB --ack-timeout-ms 250 --retries {RETRIES}"))
    lost = lab.tree.lost()
    expect(min(lost.values()) > 0, f"links have lost nothing: {lost}")
    return f"exact in {seconds:.2f} s; lost: {', '.join(f'{count} {way}' for way, count in lost.items())}"


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
        expect(CLEAR.search(result.output) is not None, f"rank {rank} does not say what it noticed: {result.output[-900:]}")
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


def send_as_strangers(lab: Lab, captures: list[Capture]) -> int:
    """Sends RoCE frames of these captures to one port on each leaf; how many to each."""
    files = [str(capture.file) for capture in captures]
    sent = [int(lab.fabric.namespace.run(sys.executable, STRANGER, outside(rank), *files)) for rank in STRANGERS]
    time.sleep(LOOKED_AT_S)
    return sent[0]


def known_of_ring(lab: Lab) -> list[Any]:
    """What the switches know of the ring, and how many frames wait in them."""
    said = [weir.telemetry(f"/weir/ring,{RING.ring_id}") for weir in lab.tree.weirs]
    held = [weir.telemetry("/weir/accounting")["accounting"]["0"]["held"] for weir in lab.tree.weirs]
    return [held, *([ring[table] for ring in said] for table in ("rings", "members", "recovery"))]


def wrong_ports(lab: Lab) -> list[int]:
    return [drops(leaf).get("wrong_port", 0) for leaf in lab.tree.leaves]


def received(lab: Lab) -> list[int]:
    return [guest.rdma_counters()["rcvd_pkts"] for guest in lab.guests]


def let_all_speak(lab: Lab) -> None:
    """A bridge believes that a host is where its address was heard last. The host's next frame to all mends that."""
    for job in lab.start_on_all(lambda _: f"ping -b -c 1 -W 1 {BROADCAST}"):
        job.wait()


@scenario(TREE, needs_weir=True, programs=(WORKER,))
def tree_stranger(lab: Lab) -> str:
    """What two hosts send, and what goes up and down behind their leaf, comes again by other hosts' ports, on that leaf and
    on the other one: first in the middle of the job, while a rank is late; then to switches that have forgotten it, where
    its hellos are new."""
    captures = [lab.fabric.capture(0, "in"), lab.fabric.capture(2, "in"),
                *(lab.fabric.capture_on(uplink(0), direction) for direction in ("in", "out"))]
    done = ring_counters(lab, RING)["slots_completed"]
    jobs = start_job(lab, in_tree(lab, "--size 4MiB"))
    wait_for_weir(lambda: ring_counters(lab, RING)["slots_completed"] > done + 50, jobs)
    lab.guests[LATE].control("busybox killall -STOP weir-worker")
    for capture in captures:
        capture.stop()
    before = wrong_ports(lab)
    frames = send_as_strangers(lab, captures)
    expect(jobs[0].is_running, f"the job ended before the strangers' frames came: {jobs[0].output}")
    dropped = [now - was for now, was in zip(wrong_ports(lab), before)]
    lab.guests[LATE].control("busybox killall -CONT weir-worker")
    finish_job(jobs)
    lab.switch.kill()
    lab.switch.start()
    known, at_hosts = known_of_ring(lab), received(lab)
    send_as_strangers(lab, captures)
    expect(known_of_ring(lab) == known, f"strangers' frames have changed something: {known} and then {known_of_ring(lab)}")
    expect(received(lab) == at_hosts, f"hosts have received strangers' frames: {at_hosts} and then {received(lab)}")
    dropped += wrong_ports(lab)
    let_all_speak(lab)
    expect(min(dropped) > 0, f"no stranger's frame was dropped for its port: {dropped}")
    return (f"{frames} frames at each of {len(STRANGERS)} ports, {', '.join(map(str, dropped))} dropped for their port; job "
            f"exact, and the next one in {run_job(lab, in_tree(lab, '--size 64KiB')):.2f} s")
