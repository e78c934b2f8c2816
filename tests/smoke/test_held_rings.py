# SPDX-License-Identifier: BSD-3-Clause
"""Rings that a job has its switch make, and that are there as long as the job."""
from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from pathlib import Path

from hosts import RANKS, WINDOW, Job, frame_of, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from netns import Namespace, run, veth
from test_aggregation import lcores_of
from test_control import Authority, at_socket, foreign, said, socket_of
from test_incarnations import wait_for_drops
from test_torch import run_exactly
from test_worker import RENDEZVOUS, WORKER, Process
from torch_ranks import TorchJob, need_torch
from weir import BUILD, NO_HUGEPAGES, Weir, configuration, expect, wait_for

MODULE = BUILD / "lib/host/switch_rings/libweir_switch.so"
LIBRARY = BUILD / "lib/host/package/libweir.so.1"
CHOSEN = range(1 << 16, 1 << 31)  # docs/control.md
NETWORK = "10.99.0"
TCP = f"{NETWORK}.1:9465"
ENDED = "reclaimed: its owner's call HoldRing has ended; "
LONG = ("--repeat", "1000000")  # until it is killed


def room(lab: Lab, rings: int, window: int = 4, packets: int = 16) -> str:
    frames = rings * (2 * window * packets * (RANKS - 1) + 4 * RANKS)
    return (f"spare: {{ rings: {rings}, members: {rings * RANKS}, frames: {frames} }}\n"
            f"state_directory: {lab.directory / 'state'}\n")


def with_room(lab: Lab, rings: int = 4) -> str:
    return configuration(ring_ports(), rings=ring_7()) + room(lab, rings)


def switch_and_hosts(lab: Lab, config: str) -> tuple[Weir, Namespace]:
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", outside, f"host{rank}")
    return lab.ready_weir(fabric, at_socket(lab, config)), outside


def start(lab: Lab, outside: Namespace, *options: str, switch: str | None = None, module: Path | None = MODULE,
          rank_0: tuple[str, ...] = (), world: int = RANKS) -> list[Process]:
    """Only rank 0 is told of the switch; the others learn of the rings from it. Without `module`, it is that of the worker's build."""
    given = ("--switch", f"unix:{socket_of(lab)}" if switch is None else switch, *rank_0)
    return [Process(lab, outside, [
        WORKER, "--rank", str(rank), "--world", str(world), "--rendezvous", RENDEZVOUS, "--device", f"iface=host{rank}",
        "--ip", f"10.77.0.{rank + 1}", "--window", "4", "--message-bytes", "16384", "--size", "160000",
        *options, *(given if rank == 0 else ())],
        **({} if module is None else {"WEIR_SWITCH_MODULE": str(module)})) for rank in range(world)]


def check(ranks: list[Process], *due: str, status: int = 0) -> str:
    """Each ends so and says what is due; returns what rank 0 said."""
    ended = [process.wait() for process in ranks]
    for rank, (found, output) in enumerate(ended):
        expect(found == status and all(text in output for text in due), f"rank {rank}: {found}, {output}; due: {status}, {due}")
    return ended[0][1]


def rings_of(lab: Lab) -> set[int]:
    listed = foreign(lab, "call", "ListRings", "{}").get("rings", [])
    return {ring["ring"].get("id", 0) for ring in listed}


def wait_for_rings(lab: Lab, *due: int) -> None:
    wait_for(lambda: rings_of(lab) == set(due), 20, f"not the rings {due}")


def wait_for_chosen_ring(lab: Lab) -> int:
    """The ring beside ring 7, with an id of the switch's."""
    wait_for(lambda: len(rings_of(lab)) == 2, 20, "no ring was made")
    chosen, = rings_of(lab) - {7}
    expect(chosen in CHOSEN, f"ring {chosen}")
    return chosen


@smoke_test("held-rings")
def held_rings(lab: Lab) -> None:
    """A job's rings come with it and go with it: one, two, with an id of the switch's and with one of its own."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    for options, made in ((("--repeat", "3"), 1), (("--ring-count", "2"), 3), (("--ring", "0"), 4), (("--ring", "5,3"), 6),
                          (("--ring-count", "offered"), 7)):
        check(start(lab, outside, *options, module=None), "algorithm=switch verified=every_element")
        wait_for_rings(lab, 7)
        wait_for(lambda made=made: switch.output().count(ENDED) == made, 20, f"{ENDED}: not {made} times")
    check(start(lab, outside, "--ring", "7"), "id: found 7, which a ring has", status=1)
    check(start(lab, outside, "--ring", "7", switch=""), "algorithm=switch verified=every_element")
    switch.stop()


@smoke_test("held-rings-of-two-connections")
def of_two_connections(lab: Lab) -> None:
    """More rings of one process than the switch lets a connection hold."""
    rings = 66
    switch, outside = switch_and_hosts(lab, configuration(ring_ports(), rings=ring_7()) + room(lab, rings, window=1, packets=1))
    small = ("--window", "1", "--message-bytes", "1024", "--size", "70000")
    check(start(lab, outside, "--ring-count", str(rings), *small), "algorithm=switch verified=every_element")
    wait_for_rings(lab, 7)
    switch.stop()


def lcores_of_rings(switch: Weir) -> list[int]:
    return sorted(row["lcore"] for row in switch.ask("/weir/ring")["rings"].values())


@smoke_test("parallel-rings")
def parallel_rings(lab: Lab) -> None:
    """A job's two rings have a worker each, whether the file has them or the switch makes as many as it offers. Frames of
    both come by any lcore, and all sums are right."""
    rings = ring_7().replace("id: 7\n", "id: 7\n    parallel: 2\n")
    memory = NO_HUGEPAGES.replace("256", "512")
    config = configuration(ring_ports(), lcores_of(("01", "01", "01"), "yield"), rings, memory) + room(lab, 2)
    switch, outside = switch_and_hosts(lab, config)
    expect(lcores_of_rings(switch) == [0, 1], f"rings 7 and 8: {lcores_of_rings(switch)}")
    check(start(lab, outside, "--ring", "7,8", "--repeat", "3", switch=""), "algorithm=switch verified=every_element")
    ranks = start(lab, outside, "--ring-count", "offered", *LONG)
    wait_for(lambda: len(rings_of(lab)) == 4, 20, "no two rings were made")
    expect(lcores_of_rings(switch) == [0, 0, 1, 1], f"two more rings: {lcores_of_rings(switch)}")
    ranks[0].process.send_signal(signal.SIGKILL)
    wait_for_rings(lab, 7, 8)
    check(ranks[1:], "peer_died: ", status=1)
    check(start(lab, outside, "--ring", "8,7", switch=""), "algorithm=switch verified=every_element")
    expect(all(row["consumed"] > 0 for row in switch.ask("/weir/lcores")["lcores"].values()), "one lcore did it all")
    switch.stop()


@smoke_test("held-rings-of-the-dead")
def of_the_dead(lab: Lab) -> None:
    """The ring goes with rank 0's process. When an operator withdraws it, the job ends and says so."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    ranks = start(lab, outside, *LONG)
    first = wait_for_chosen_ring(lab)
    ranks[0].process.send_signal(signal.SIGKILL)
    wait_for_rings(lab, 7)
    check(ranks[1:], "peer_died: ", status=1)
    ranks = start(lab, outside, *LONG)
    second = wait_for_chosen_ring(lab)
    expect(second != first, "an id again")
    expect(said(lab, f"withdraw ring {second}") == f"ring {second}: withdrawn\n", "withdraw ring")
    check(ranks, f"aborted: rank 0 aborted its group: switch unix:{socket_of(lab)} ended the ring: "
          f"ring {second} was withdrawn", status=1)
    ranks = start(lab, outside, *LONG)
    wait_for_chosen_ring(lab)
    switch.stop()
    check(ranks, "aborted: rank 0 aborted its group: ", "ended the ring: no answer: the switch stops", status=1)


@smoke_test("made-ring-and-strangers")
def and_strangers(lab: Lab) -> None:
    """A ring that is made for one nonce: all hellos of other runs, by any port and of any epoch, begin nothing and bar nobody."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, at_socket(lab, configuration(ring_ports()) + room(lab, 1)))
    own = hosts.incarnation
    made = {"id": 7, "window": WINDOW, "max_message_bytes": 16384, "mtu": 1024, "nonce": own.nonce,
            "members": [{"ip": f"10.77.0.{rank + 1}"} for rank in range(RANKS)]}
    expect(foreign(lab, "call", "AddRing", json.dumps({"ring": made})) == {}, "AddRing")
    guesses = [replace(own.again(epoch), nonce=nonce) for epoch in (own.epoch, 0xFFFFFFFF) for nonce in (1, own.nonce ^ 1)]
    before = len(guesses) * RANKS * RANKS
    for guess in guesses:
        for port in range(RANKS):  # a complete set by each port
            for rank in range(RANKS):
                hosts.send_raw(port, frame_of(rank, 0, guess))
    wait_for_drops(switch, {"wrong_nonce": before})
    hosts.say_hello()
    for rank in range(RANKS):
        hosts.send_raw(rank, frame_of(rank, 0, guesses[-1]))
    wait_for_drops(switch, {"wrong_nonce": before + RANKS})
    Job(hosts, last=2).run()
    wait_for(lambda: "dropped: hello with another nonce" in switch.output(), 20, "the log does not tell")
    switch.stop()


@smoke_test("held-rings-and-later-ones")
def and_later_ones(lab: Lab) -> None:
    """An operator withdraws a job's ring and makes another one with its id: that one stays when the job's call ends."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    ranks = start(lab, outside, "--ring", "5", *LONG)
    wait_for_rings(lab, 7, 5)
    later = lab.file("ring.yaml", ring_7().replace("id: 7", "id: 5"))
    expect(said(lab, "withdraw ring 5") == "ring 5: withdrawn\n", "withdraw ring")
    expect(said(lab, f"add ring {later}") == "added: ring 5\n", "add ring")
    check(ranks, "ended the ring: ring 5 was withdrawn", status=1)
    expect(rings_of(lab) == {7, 5} and ENDED not in switch.output(), switch.output())
    switch.stop()


@smoke_test("held-rings-refused")
def refused(lab: Lab) -> None:
    """Without a switch that makes the ring, the job says why and ends, or goes on by the hosts' ring if it may."""
    switch, outside = switch_and_hosts(lab, with_room(lab, rings=1))
    nowhere = f"unix:{lab.directory}/nowhere.sock"
    for reason, options in (
            (f"switch {nowhere}: no answer: ", {"switch": nowhere}),
            ("switch 127.0.0.1:1: authority: found ''", {"switch": "127.0.0.1:1"}),
            ("there are 2 rings, as many", {"rank_0": ("--ring-count", "2")}),
            ("package libweir1-switch", {"module": Path("/nowhere.so")}),
            ("built for another system: ", {"module": lab.file("text.so", "no module")})):
        same = options.pop("rank_0", ())
        said_0 = check(start(lab, outside, *same, **options), "not_aggregated: switch ", status=1)
        expect(re.search(reason, said_0), said_0)
        said_0 = check(start(lab, outside, *same, "--fallback", "ring", **options),
                       "algorithm=ring", 'reason="switch ', "verified=every_element")
        expect(re.search(reason, said_0), said_0)
        wait_for_rings(lab, 7)
    switch.stop()


@smoke_test("held-rings-by-tls")
def by_tls(lab: Lab) -> None:
    """Over the network by certificates, which the environment names."""
    ours = Authority(lab, "ours")
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", outside, f"host{rank}")
    veth(fabric, "control0", outside, "control1")
    fabric.ip(f"address add {NETWORK}.1/24 dev control0")
    outside.ip(f"address add {NETWORK}.2/24 dev control1")
    certificate, key = ours.sign("switch")
    switch = lab.ready_weir(fabric, with_room(lab) + (
        f'control:\n  listen: ["{TCP}"]\n  tls: {{ certificate: "{certificate}", key: "{key}", '
        f'client_authority: "{ours.certificate}" }}\n'))
    mine = ours.sign("client")
    tls = ("--switch-certificate", mine[0], "--switch-key", mine[1], "--switch-authority", ours.certificate,
           "--switch-name", "the-switch")
    check(start(lab, outside, switch=TCP, rank_0=tls), "algorithm=switch verified=every_element")
    wait_for(lambda: ENDED in switch.output(), 20, "the ring stays")
    stranger = Authority(lab, "other").sign("stranger")
    tls = ("--switch-certificate", stranger[0], "--switch-key", stranger[1], *tls[4:])
    check(start(lab, outside, switch=TCP, rank_0=tls), f"not_aggregated: switch {TCP}: no answer: ", status=1)
    switch.stop()


@smoke_test("held-rings-of-torch")
def of_torch(lab: Lab) -> None:
    """PyTorch's groups name no ring. One of three outlives a rank of the two others; in the end none is left."""
    need_torch()
    job = TorchJob(lab, 0, more=at_socket(lab, room(lab, 3, window=8, packets=64)))
    run_exactly(job, "torch_groups", victim=3, WEIR_SWITCH=f"unix:{socket_of(lab)}")
    expect(job.switch.output().count(ENDED) == 3, job.switch.output())


def exported(file: Path) -> list[str]:
    return [line.split()[-1] for line in run("nm", "-D", "--defined-only", str(file)).splitlines()]


@smoke_test("held-rings-module")
def module(lab: Lab) -> None:
    """The module alone knows gRPC, and has one name for others."""
    expect(exported(MODULE) == ["weir_switch_module_of"], f"{exported(MODULE)}")
    needed = run("readelf", "--dynamic", str(LIBRARY))
    expect("libfmt" in needed and "grpc" not in needed and "protobuf" not in needed, needed)
