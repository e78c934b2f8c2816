# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that end and run again, and what strangers, stolen addresses and the operator can and cannot do to a running job."""
from __future__ import annotations

import re

from hosts import (RANKS, Contribution, Hosts, Incarnation, Job, acknowledgements, contributions, frame_of, model,
                   result, result_of, ring_7, ring_of_hosts, ring_ports, ring_row)
from lab import Lab, smoke_test
from terminal import Terminal
from weir import ROOT, Totals, Weir, configuration, expect, wait_for

CONFIG = ROOT / "config/af_packet.yaml"
SECOND, THIRD = (next(place for place, packet in enumerate(contributions()[0]) if packet.message == message)
                 for message in (2, 3))  # where these messages begin
HIGHEST_EPOCH = 0xFFFFFFFF
ROOT_RANK = 2


def with_header(frame: bytes, **fields: int) -> bytes:
    """The frame with other fields in its INA header."""
    roce = model.parse_roce(frame)
    assert roce
    ina = roce.ina()
    assert ina
    return model.resigned(frame, roce.payload_at, model.Ina.LAYOUT.pack(*ina._replace(**fields)))


def drops(switch: Weir) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in switch.ask("/weir/drops")["drops"].values()}


def wait_for_drops(switch: Weir, wanted: dict[str, int]) -> None:
    wait_for(lambda: drops(switch).items() >= wanted.items(), 5, f"not dropped as {wanted}: {drops(switch)}")


def hold(switch: Weir, hosts: Hosts, place: int) -> int:
    """All ranks but the last contribute; returns the number of frames that the switch then holds."""
    for rank in range(RANKS - 1):
        hosts.send(rank, place)
    wait_for(lambda: ring_row(switch)["held"] == RANKS - 1, 5, f"the packets of place {place} are not held")
    return RANKS - 1


def complete(hosts: Hosts, place: int) -> None:
    """The last rank contributes, and all get the sum."""
    hosts.send(RANKS - 1, place)
    wanted = sorted(((rank + 1) % RANKS, result(rank, place, hosts.incarnation)) for rank in range(RANKS))
    came = sorted(hosts.collect(RANKS))
    expect(came == wanted, f"other results than place {place}'s, or at others: to {[host for host, _ in came]}")


@smoke_test("same-epoch-again")
def same_epoch_again(lab: Lab) -> None:
    """A job that is killed during a message and runs again with the same epoch gets new sums, not cached results."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, CONFIG)
    hosts.say_hello()
    Job(hosts, last=2).run()
    first = hosts.incarnation
    hold(switch, hosts, THIRD)
    hosts.incarnation = first.again()
    hosts.say_hello()
    expect(hosts.incarnation.session != first.session, "the session of the first run again")
    for rank in range(RANKS):  # the first run's packets that were still under way
        hosts.send_raw(rank, frame_of(rank, 0, first))
        hosts.send_raw(rank, frame_of(rank, SECOND, first))
        hosts.send_raw(rank, frame_of(rank, SECOND + 1, first))
    wait_for_drops(switch, {"retired_nonce": RANKS, "wrong_session": RANKS, "dead_connection": RANKS})
    Job(hosts).run()
    totals = switch.stop()
    expect(totals.drops == {"incarnation_flush": RANKS - 1, "retired_nonce": RANKS, "wrong_session": RANKS,
                            "dead_connection": RANKS}, f"{totals}")


@smoke_test("forged-epoch")
def forged_epoch(lab: Lab) -> None:
    """One header with the highest epoch, and one rank's hello with it, do not change a running ring."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, CONFIG)
    hosts.say_hello()
    held = hold(switch, hosts, 1)
    hosts.send_raw(1, with_header(frame_of(1, SECOND, hosts.incarnation), epoch=HIGHEST_EPOCH))
    stranger = hosts.incarnation.again(HIGHEST_EPOCH)
    hosts.send_raw(1, with_header(frame_of(1, SECOND, stranger), session=hosts.incarnation.session))
    hosts.send_raw(1, frame_of(1, 0, stranger))
    wait_for_drops(switch, {"wrong_epoch": 2})
    row = ring_row(switch)
    expect((row["held"], row["connected"]) == (held, RANKS), f"the ring was disturbed: {row}")
    complete(hosts, 1)
    Job(hosts, first=2).run()
    totals = switch.stop()
    expect(totals.drops == {"wrong_epoch": 2, "ring_draining": 1}, f"{totals}")  # the hello waited until the end


def mac_of(rank: int) -> bytes:
    return contributions()[rank][0].roce.frame[6:12]


def claim(thief: int, victim: int) -> bytes:
    """A frame to the thief itself with the victim's MAC: it is not forwarded, but the switch sees its source."""
    return mac_of(thief) + mac_of(victim) + b"\x88\xb5" + bytes(46)


def steal(lab: Lab, rings: str) -> None:
    victim, thief = 0, 2
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, configuration(ring_ports(), rings=rings))
    hosts.say_hello()
    hold(switch, hosts, 1)
    for _ in range(10):
        hosts.send_raw(thief, claim(thief, victim))
    acknowledgement = next(frame for rank, frame in acknowledgements() if rank == victim)
    for forged in (frame_of(victim, 2, hosts.incarnation), acknowledgement, frame_of(victim, 0, hosts.incarnation.again())):
        hosts.send_raw(thief, forged)
    wait_for_drops(switch, {"wrong_port": 3})
    complete(hosts, 1)
    Job(hosts, first=2).run()
    hosts.pass_acknowledgements()
    totals = switch.stop()
    expect(totals.drops.pop("wrong_port") == 3 and set(totals.drops) <= {"same_port"}, f"{totals}")


@smoke_test("mac-thief")
def mac_thief(lab: Lab) -> None:
    """A host with a member's MAC at another port gets none of its results, and its forged frames are dropped."""
    steal(lab, ring_7())


@smoke_test("mac-thief-unpinned")
def mac_thief_unpinned(lab: Lab) -> None:
    """The same without ports in the configuration: the members' hellos tie them."""
    steal(lab, re.sub(r", port: p\d", "", ring_7()))


def told(terminal: Terminal) -> Totals:
    return Totals.read(terminal.quit())


@smoke_test("reset-then-same-epoch")
def reset_then_same_epoch(lab: Lab) -> None:
    """`reset ring` ends the present run; the next one may use the same epoch, or even an older one."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    hosts.incarnation = hosts.incarnation.again(epoch=5)
    hosts.say_hello()
    Job(hosts, last=1).run()
    hosts.send_raw(0, frame_of(0, 0, hosts.incarnation.again(epoch=4)))
    wait_for_drops(terminal.switch, {"old_epoch": 1})
    for epoch in (5, 4):
        expect(terminal.ask("reset ring 7") == "ring 7: reset\n", "`reset ring 7`")
        hosts.incarnation = hosts.incarnation.again(epoch)
        hosts.say_hello()
        Job(hosts, last=2).run()
    expect(told(terminal).drops == {"old_epoch": 1}, "something was dropped")


@smoke_test("withdraw-ring")
def withdraw_ring(lab: Lab) -> None:
    """After `withdraw ring` the switch does not aggregate, and no raw data of the ring's hosts passes."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    hosts.say_hello()
    held = hold(terminal.switch, hosts, 1)
    expect(terminal.ask("withdraw ring 7") == "ring 7: withdrawn\n", "`withdraw ring 7`")
    later = hosts.incarnation.again()
    for rank in range(RANKS):
        for place in (SECOND, SECOND + 1):
            hosts.send(rank, place)
        hosts.send(rank, 0)
        hosts.send_raw(rank, frame_of(rank, SECOND, later))
        hosts.send_raw(rank, frame_of(rank, SECOND + 1, later))
    wait_for_drops(terminal.switch, {"ring_withdrawn": held, "unannounced": 2 * RANKS, "dead_connection": 2 * RANKS,
                                     "unclassified": RANKS})
    expect(hosts.received(0.2) == [], "data of a withdrawn ring was forwarded")
    hosts.pass_acknowledgements()
    expect(not terminal.switch.ask("/weir/ring")["rings"], "a withdrawn ring is there")
    told(terminal)


def in_collective(own: Contribution, rank: int, place: int, incarnation: Incarnation, **fields: int) -> bytes:
    frame = frame_of(rank, place, incarnation)
    return with_header(frame, **fields) if own.ina else frame


@smoke_test("broadcast-and-barrier")
def broadcast_and_barrier(lab: Lab) -> None:
    """All get the root's data; no rank passes a barrier before the last has reached it."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, CONFIG)
    hosts.say_hello()
    now = hosts.incarnation
    for place in range(1, SECOND):
        sent = [in_collective(contributions()[rank][place], rank, place, now, collective=model.BROADCAST, root=ROOT_RANK)
                for rank in range(RANKS)]
        for rank, frame in enumerate(sent):
            hosts.send_raw(rank, frame)
        data = contributions()[ROOT_RANK][place].data
        expect(sorted(hosts.collect(RANKS)) == sorted(((rank + 1) % RANKS, result_of(frame, data, now.session))
                                                      for rank, frame in enumerate(sent)),
               f"place {place} is not the root's data at everybody")
    barrier = [barrier_of(rank, now) for rank in range(RANKS)]
    for rank in (0, 3, 1):
        hosts.send_raw(rank, barrier[rank])
    expect(hosts.received(0.2) == [], "a barrier let somebody pass before rank 2 came")
    hosts.send_raw(2, barrier[2])
    expect(sorted(hosts.collect(RANKS)) == sorted(((rank + 1) % RANKS, result_of(frame, b"", now.session))
                                                  for rank, frame in enumerate(barrier)), "the barrier let nobody pass")
    totals = switch.stop()
    expect(not totals.drops, f"{totals}")


def barrier_of(rank: int, incarnation: Incarnation) -> bytes:
    """Message 2 as a barrier: only a header, like the hello."""
    hello, second = contributions()[rank][0].roce, contributions()[rank][SECOND].roce
    frame = model.resigned(frame_of(rank, 0, incarnation), hello.bth_at + 9, second.psn.to_bytes(3, "big"))
    return with_header(frame, collective=model.BARRIER, msg=2, session=incarnation.session, ack_timeout=0, qp=0)
