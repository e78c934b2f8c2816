# SPDX-License-Identifier: BSD-3-Clause
"""Results byte for byte: config/af_packet.yaml as it is, losses on both sides of the switch, placements of roles."""
from __future__ import annotations

from itertools import product

from hosts import RANKS, Job, contributions, model, result, ring_7, ring_of_hosts, ring_ports, ring_row
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
    """Contributions that never reach the switch, FIRSTs and LASTs among them, and results that reach nobody."""
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
    """A repeat after completion brings the cached result to its rank's successor alone, even if its data changed."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    Job(hosts, last=2).run()
    for rank, place in ((0, 1), (1, 2), (2, 32), (3, 0)):
        hosts.send(rank, place)
        got = hosts.collect(1)
        expect(got == [((rank + 1) % RANKS, result(rank, place, hosts.session))], f"not the cached result: {got}")
    own = contributions()[2][7]
    hosts.send_raw(2, model.resigned(own.roce.frame, own.roce.payload_at, b"\x00" * 64))
    expect(hosts.collect(1) == [(3, result(2, 7, hosts.session))], "refreshed data found its way into a cached result")
    expect(ring_row(switch)["cached_results"] == 5, f"{ring_row(switch)}")
    switch.stop()


def placements() -> list[tuple[str, str, str]]:
    """Lcores of rx, worker and tx: each on 0, on 1 or on both; what is another with 0 and 1 swapped is left out."""
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
