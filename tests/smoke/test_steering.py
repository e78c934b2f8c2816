# SPDX-License-Identifier: BSD-3-Clause
"""`rx_steering: flow` over drivers that have no rules: what is told, and that a job comes out right all the same."""
from __future__ import annotations

from hosts import RANKS, Job, contributions, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from terminal import Terminal
from test_aggregation import check_ring, lcores_of
from test_events import wait_for_line
from test_incarnations import told
from test_rings import FRAMES_OF_RING_7, added
from weir import NO_HUGEPAGES, Weir, configuration, expect

PLACES = len(contributions()[0])
AS_WITHOUT = "the others' frames come as without `rx_steering: flow`"


def steered_ports() -> list[str]:
    """Two receive queues each."""
    return [f'{port[:-1]},qpairs=2", rx_queues: 2, rx_steering: flow' for port in ring_ports()]


def steering(switch: Weir) -> list[dict[str, object]]:
    return list(switch.ask("/weir/port/steering")["port_steering"].values())


def handed_over(switch: Weir) -> list[int]:
    """By data lcore."""
    return [row["handed_over"] for row in switch.ask("/weir/lcores")["lcores"].values()]


def run_job(lab: Lab, roles: tuple[str, str, str], ports: list[str]) -> Weir:
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, configuration(ports, lcores_of(roles, "yield"), ring_7()))
    hosts.say_hello()
    Job(hosts).run()
    check_ring(switch, cached=0)
    return switch


def stop(switch: Weir) -> None:
    totals = switch.stop()
    expect(totals.accounting["consumed"] == PLACES * RANKS and not totals.drops, f"{totals}")


@smoke_test("steering-refused")
def refused(lab: Lab) -> None:
    """af_packet takes no rule: each port tells of its two pairs, and the frames are handed over as before."""
    switch = run_job(lab, ("01", "1", "1"), steered_ports())
    wanted = [{"port": f"p{rank}", "rx_steering": "flow", "steered": 0, "refused": 2, "without_queue": 0,
               "reason": "Function not implemented"} for rank in range(RANKS)]
    expect(steering(switch) == wanted, f"{steering(switch)}")
    for rank in range(RANKS):
        wait_for_line(switch, rf"port p{rank}: 0 of 2 pairs of ring neighbours are steered: net_af_packet refuses 2 "
                              rf"\(Function not implemented\); {AS_WITHOUT} \[setting_refused port=p{rank}\]")
    stop(switch)


@smoke_test("steering-to-no-queue")
def no_queue(lab: Lab) -> None:
    """The worker polls no port: no rule is tried, and every frame of a member is handed over once."""
    switch = run_job(lab, ("0", "1", "1"), steered_ports())
    wanted = [{"port": f"p{rank}", "rx_steering": "flow", "steered": 0, "refused": 0, "without_queue": 2, "reason": "-"}
              for rank in range(RANKS)]
    expect(steering(switch) == wanted, f"{steering(switch)}")
    wait_for_line(switch, "port p0: 0 of 2 pairs of ring neighbours are steered: the workers of 2 poll no receive "
                          rf"queue of this port \(allowed: .* as many rx_queues\); {AS_WITHOUT} \[setting_refused port=p0\]")
    expect(handed_over(switch) == [PLACES * RANKS, 0], f"handed over: {handed_over(switch)}")
    stop(switch)


@smoke_test("steering-not-asked-for")
def not_asked_for(lab: Lab) -> None:
    """Without the key no rule is tried. One lcore polls and works, so it hands nothing over."""
    switch = run_job(lab, ("1", "1", "1"), ring_ports())
    wanted = [{"port": f"p{rank}", "rx_steering": "rss", "steered": 0, "refused": 0, "without_queue": 0, "reason": "-"}
              for rank in range(RANKS)]
    expect(steering(switch) == wanted, f"{steering(switch)}")
    expect(handed_over(switch) == [0], f"handed over: {handed_over(switch)}")
    expect("setting_refused" not in switch.output(), "a warning without cause")
    stop(switch)


@smoke_test("steering-tap")
def tap(lab: Lab) -> None:
    """net_tap knows rules where the kernel has what they need; elsewhere it says so. Its queues come in pairs."""
    port = 'name: p0, device: "net_tap0,iface=weir0", rx_queues: 2, rx_steering: flow'
    rings = ring_7().replace("p1", "p0").replace("p2", "p0").replace("p3", "p0")
    switch = lab.ready_weir(lab.namespace(), configuration([port], lcores_of(("01", "01", "01"), "sleep"), rings))
    row = steering(switch)[0]
    pairs = 2 * RANKS
    expect((row["steered"], row["refused"]) in ((pairs, 0), (0, pairs)), f"{row}")
    expect((row["reason"] == "-") == (row["refused"] == 0), f"{row}")
    switch.stop()


@smoke_test("steering-follows-rings")
def follows_rings(lab: Lab) -> None:
    """Each ring that comes brings its pairs to the ports of its members, and takes them away when it goes."""
    fabric, _ = ring_of_hosts(lab)
    memory = NO_HUGEPAGES.replace("256", "512")
    text = (configuration(steered_ports(), lcores_of(("01", "01", "01"), "sleep"), ring_7(), memory)
            + f"spare: {{ rings: 1, members: {RANKS}, frames: {FRAMES_OF_RING_7} }}\n"
            f"state_directory: {lab.directory / 'state'}\n")
    terminal = Terminal(lab, fabric, text)

    def pairs() -> list[object]:
        return [row["refused"] for row in steering(terminal.switch)]

    expect(pairs() == [2, 2, 2, 2], f"at the start: {pairs()}")
    others = ring_7().replace("id: 7", "id: 8").replace("10.77.0.", "10.78.0.")
    expect(added(lab, terminal, others) == "added: ring 8\n", "`add ring`")
    expect(pairs() == [4, 4, 4, 4], f"with ring 8: {pairs()}")
    expect(terminal.ask("withdraw ring 8") == "ring 8: withdrawn\n", "`withdraw ring`")
    expect(pairs() == [2, 2, 2, 2], f"without it: {pairs()}")
    expect(terminal.ask("withdraw ring 7") == "ring 7: withdrawn\n", "`withdraw ring`")
    expect(pairs() == [0, 0, 0, 0], f"without any: {pairs()}")
    told(terminal)
