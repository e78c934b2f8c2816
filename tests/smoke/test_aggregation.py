# SPDX-License-Identifier: BSD-3-Clause
"""Results byte for byte: config/af_packet.yaml unchanged, losses on both sides of the switch, placements of roles."""
from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hosts import RANKS, Job, acknowledgements, contributions, model, result, ring_7, ring_of_hosts, ring_ports, ring_row
from lab import Lab, smoke_test
from weir import ROOT, Weir, configuration, expect

PLACES = len(contributions()[0])
REPEAT_DROPS = {"repeat_held", "unknown_message"}


def check_ring(switch: Weir, cached: int) -> None:
    row = ring_row(switch)
    wanted = {"slots_completed": PLACES, "results": PLACES * RANKS, "hellos": 1, "filling": 0, "held": 0,
              "connected": RANKS}
    counted = {name: row[name] for name in wanted}
    expect(counted == wanted, f"ring 7 counted {counted}, not {wanted}")
    expect(row["cached_results"] >= cached if cached else row["cached_results"] == 0,
           f"{row['cached_results']} cached results, {cached} were asked for")


@smoke_test("aggregate")
def aggregate(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    seen = Job(hosts).run()
    expect(seen.results == (PLACES - 1) * RANKS, f"{seen}")
    hosts.pass_acknowledgements()
    check_ring(switch, cached=0)
    totals = switch.stop()
    expect(totals.accounting["consumed"] == PLACES * RANKS and not totals.drops, f"{totals}")


@smoke_test("aggregate-with-loss")
def aggregate_with_loss(lab: Lab) -> None:
    """Contributions that do not reach the switch, also FIRSTs and LASTs, and results that do not reach their host."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    firsts = [place for place, packet in enumerate(contributions()[0]) if packet.ina]
    lost_in = {(0, 5), (1, 5), (2, firsts[3]), (3, firsts[4] - 1), (1, 200), (2, PLACES - 1)}
    lost_out = {(0, 40), (1, firsts[6]), (2, firsts[6]), (3, 250), (0, PLACES - 1), (3, PLACES - 2)}
    seen = Job(hosts, lost_in, lost_out).run()
    check_ring(switch, cached=len(lost_out))
    totals = switch.stop()
    expect(set(totals.drops) <= REPEAT_DROPS, f"{totals}, {seen}")


@smoke_test("cached-result")
def cached_result(lab: Lab) -> None:
    """A repeat after completion brings the cached result only to its rank's successor, even if its data has changed."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    Job(hosts, last=2).run()
    for rank, place in ((0, 1), (1, 2), (2, 32), (3, 0)):
        hosts.send(rank, place)
        got = hosts.collect(1)
        expect(got == [((rank + 1) % RANKS, result(rank, place, hosts.incarnation))], f"not the cached result: {got}")
    own = contributions()[2][7]
    hosts.send_raw(2, model.resigned(own.roce.frame, own.roce.payload_at, b"\x00" * 64))
    expect(hosts.collect(1) == [(3, result(2, 7, hosts.incarnation))], "refreshed data found its way into a cached result")
    expect(ring_row(switch)["cached_results"] == 5, f"{ring_row(switch)}")
    switch.stop()


def placements() -> list[tuple[str, str, str]]:
    """Lcores of rx, worker and tx: each on 0, on 1 or on both; without those that are equal after swapping 0 and 1."""
    kept: list[tuple[str, str, str]] = []
    for rx, worker, tx in product(("0", "1", "01"), repeat=3):
        swapped = tuple("".join(sorted("10"[int(lcore)] for lcore in lcores)) for lcores in (rx, worker, tx))
        if swapped not in kept:
            kept.append((rx, worker, tx))
    return kept


def lcores_of(places: tuple[str, str, str], idle: str) -> str:
    text = ""
    for lcore in "01":
        roles = [role for role, lcores in zip(("rx", "worker", "tx"), places, strict=True) if lcore in lcores]
        if lcore == "0":
            roles.insert(0, "control")
        if roles:
            text += f"  - {{ id: {lcore}, roles: [{', '.join(roles)}], idle: {idle} }}\n"
    return text


def aggregate_placed(lab: Lab, places: tuple[str, str, str], idle: str) -> None:
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, configuration(ring_ports(), lcores_of(places, idle), ring_7()))
    hosts.say_hello()
    Job(hosts).run()
    hosts.pass_acknowledgements()
    check_ring(switch, cached=0)
    rows = switch.ask("/weir/lcores")["lcores"].values()
    expect({row["roles"] for row in rows} == expected_roles(places), f"{list(rows)}")
    totals = switch.stop()
    expect(totals.accounting["consumed"] == PLACES * RANKS and not totals.drops, f"{totals}")


def datagrams(source_ports: Iterable[int]) -> list[bytes]:
    """From host 0 to a neighbour: an acknowledgement with other UDP ports, so it is no RoCE any more."""
    frame = next(frame for rank, frame in acknowledgements() if rank == 0)
    return [frame[:34] + port.to_bytes(2, "big") + b"\x27\x0f" + frame[38:] for port in source_ports]


def queues_with_frames(switch: Weir, port: int) -> list[int]:
    counters = switch.ask(f"/ethdev/xstats,{port}")
    return [queue for queue in range(2) if counters[f"rx_q{queue}_packets"] > 0]


@smoke_test("aggregate-two-rx-queues")
def aggregate_two_rx_queues(lab: Lab) -> None:
    """The kernel spreads each port's frames over two queues by addresses and UDP ports, one queue for each rx lcore."""
    fabric, hosts = ring_of_hosts(lab)
    ports = [f'{port[:-1]},qpairs=2", rx_queues: 2' for port in ring_ports()]
    switch = lab.ready_weir(fabric, configuration(ports, lcores_of(("01", "1", "1"), "yield"), ring_7()))
    hosts.say_hello()
    Job(hosts).run()
    hosts.pass_acknowledgements()
    check_ring(switch, cached=0)
    flows = datagrams(range(1024, 1088))
    for frame in flows:
        hosts.send_raw(0, frame)
    expect(sorted(frame for _, frame in hosts.collect(len(flows))) == sorted(flows), "other traffic was changed")
    used = queues_with_frames(switch, 0)
    expect(used == [0, 1], f"64 flows came by queues {used}")
    expect(all(row["received"] > 0 for row in switch.ask("/weir/lcores")["lcores"].values()), "an lcore was idle")
    totals = switch.stop()
    expect(totals.accounting["consumed"] == PLACES * RANKS and not totals.drops, f"{totals}")


def expected_roles(places: tuple[str, str, str]) -> set[str]:
    roles = {",".join(role for role, lcores in zip(("rx", "worker", "tx"), places, strict=True) if lcore in lcores)
             for lcore in "01"}
    return roles - {""}


def enter_placements() -> None:
    for number, places in enumerate(placements()):
        idle = ("sleep", "yield")[number % 2]
        name = f"placement-rx{places[0]}-worker{places[1]}-tx{places[2]}-{idle}"

        def body(lab: Lab, places: tuple[str, str, str] = places, idle: str = idle) -> None:
            aggregate_placed(lab, places, idle)

        smoke_test(name)(body)


enter_placements()
