# SPDX-License-Identifier: BSD-3-Clause
"""Ports for rings alone, stations that are tied to a port, and loops that are found and closed."""
from __future__ import annotations

import signal
import time
from typing import Any

from hosts import Job, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from netns import Namespace, veth
from test_events import wait_for_line
from vlan import FrameSocket
from weir import Weir, configuration, expect, wait_for

GROUP = bytes.fromhex("035745495201")
PROBES = "l2: { loop_detection: yes }\n"
SILENT = "l2: { loop_detection: no }\n"
BROADCAST = b"\xff" * 6
NOBODY = bytes.fromhex("525400000099")


def station(number: int) -> bytes:
    return bytes.fromhex("5254000000") + bytes([number])


def frame(destination: bytes, source: bytes, number: int = 0) -> bytes:
    return destination + source + b"\x08\x00" + bytes([number]) * 46


def ports(count: int, not_bridged: int = -1) -> list[str]:
    return [f'name: p{number}, device: "net_af_packet{number},iface=port{number}"' +
            (", bridge: no" if number == not_bridged else "") for number in range(count)]


class Links:
    """A switch's namespace, and the other ends of its ports in another one."""

    def __init__(self, lab: Lab, count: int) -> None:
        self.fabric, self.outside = lab.namespace(), lab.namespace()
        for number in range(count):
            veth(self.fabric, f"port{number}", self.outside, f"host{number}")
        self.sockets = [FrameSocket(self.outside, f"host{number}") for number in range(count)]
        for link in self.sockets:
            lab.on_end(link.close)

    def come(self, frames: list[bytes], where: int, seconds: float = 2) -> bool:
        """Whether these frames come, and no others but probes."""
        seen = [one for one in self.sockets[where].receive_all(1000, seconds) if not one.startswith(GROUP)]
        return seen == frames


def bridge(switch: Weir, port: str) -> dict[str, Any]:
    row: dict[str, Any] = switch.ask(f"/weir/port/bridge,{port}")["port_bridge"]["0"]
    return row


def drops(switch: Weir, reason: str) -> int:
    rows = switch.ask("/weir/drops")["drops"].values()
    return next((int(row["count"]) for row in rows if row["reason"] == reason), 0)


def cable(outside: Namespace, one: int, other: int) -> None:
    """Joins the other ends of two ports: what comes out of one goes into the other."""
    outside.ip(f"link add name loop{one}{other} type bridge")
    for port in (one, other):
        outside.ip(f"link set host{port} master loop{one}{other}")
    outside.ip(f"link set loop{one}{other} up")


@smoke_test("loop-is-closed")
def loop(lab: Lab) -> None:
    """The higher port of two is closed for as long as probes come back by it and 30 s more; the log names both."""
    links = Links(lab, 3)
    switch = lab.ready_weir(links.fabric, configuration(ports(3)) + PROBES)
    probes = links.sockets[2].receive_all(2, 5)
    expect(len(probes) == 2 and all(len(probe) == 60 and probe[:6] == GROUP and probe[12:14] == b"\x88\xb5"
                                    for probe in probes), f"probes: {probes}")
    expect(probes[0][30:38] != probes[1][30:38], "the same token twice")
    cable(links.outside, 0, 1)
    wait_for_line(switch, r"ports p0 and p1: a loop leads through both; p1 does not bridge for 30 s from the last probe "
                  r"that came back by it \[port_loop port=p1 other=p0\]")
    row = bridge(switch, "p1")
    expect((row["bridge"], row["loop_with"], row["loops"]) == ("loop", "p0", 1), f"{row}")
    expect(bridge(switch, "p0")["bridge"] == "yes", "both are closed")
    links.sockets[2].send(frame(BROADCAST, station(2)))
    time.sleep(3)
    received = int(switch.ask("/weir/accounting")["accounting"]["0"]["received"])
    time.sleep(1)
    more = int(switch.ask("/weir/accounting")["accounting"]["0"]["received"]) - received
    expect(more < 50, f"{more} frames in a second: the broadcast goes round")
    expect(bridge(switch, "p1")["loops"] == 1, "it was opened in between")
    links.outside.ip("link del loop01")
    wait_for_line(switch, r"port p1: it bridges again \[port_loop_over port=p1\]", 40)
    expect(bridge(switch, "p1")["bridge"] == "yes", "it is closed")
    totals = switch.stop()
    expect(totals.accounting["originated"] > 60, f"{totals}")


@smoke_test("loop-through-another-switch")
def two_switches(lab: Lab) -> None:
    """Two cables between two switches. Each hands the other's probes on, so both can find the loop; one broadcast does
    not go round for ever."""
    fabric, other = lab.namespace(), lab.namespace()
    for number in range(2):
        veth(fabric, f"port{number}", other, f"port{number}")
    host = lab.namespace()
    veth(fabric, "port2", host, "eth0")
    link = FrameSocket(host, "eth0")
    lab.on_end(link.close)
    first = lab.ready_weir(fabric, configuration(ports(3)) + PROBES)
    second = lab.ready_weir(other, configuration(ports(2)) + PROBES)
    wait_for(lambda: "port_loop port=p1 other=p0" in first.output() + second.output(), 10,
             f"nobody finds the loop:\n{first.output()}\n{second.output()}")
    link.send(frame(BROADCAST, station(2)))
    time.sleep(1)
    before = int(first.ask("/weir/accounting")["accounting"]["0"]["received"])
    time.sleep(1)
    expect(int(first.ask("/weir/accounting")["accounting"]["0"]["received"]) - before < 50, "the broadcast goes round")
    for switch in (first, second):
        switch.stop()


@smoke_test("loop-wrong-cable")
def wrong_cable(lab: Lab) -> None:
    links = Links(lab, 3)
    switch = lab.ready_weir(links.fabric, configuration(ports(3, not_bridged=2)) + PROBES)
    cable(links.outside, 1, 2)
    wait_for_line(switch, r"port p2: a loop probe of this switch has come by it, and it has bridge: no; .* "
                  r"\[wrong_cable port=p2 switch=0{16}\]")
    row = bridge(switch, "p2")
    expect(row["bridge"] == "no" and row["wrong_probes"] > 0, f"{row}")
    expect(bridge(switch, "p1")["bridge"] == "yes", "a port that bridges is closed")
    switch.stop()


@smoke_test("port-for-rings-alone")
def rings_alone(lab: Lab) -> None:
    """A rank behind a port that does not bridge takes part in the ring. Nothing else comes or goes there."""
    fabric, hosts = ring_of_hosts(lab)
    closed = [f"{port}, bridge: no" if port.startswith("name: p1,") else port for port in ring_ports()]
    switch = lab.ready_weir(fabric, configuration(closed, rings=ring_7()) + SILENT)
    hosts.say_hello()
    Job(hosts, last=2).run()
    stations = switch.ask("/weir/fdb")["fdb"]
    expect(all(row["port"] != "p1" for row in stations.values()), f"learnt there: {stations}")
    hosts.send_raw(1, frame(BROADCAST, NOBODY))
    wait_for(lambda: drops(switch, "not_bridged") == 1, 5, "the frame was not dropped by name")
    hosts.send_raw(0, frame(BROADCAST, station(7)))
    others = {host for host, _ in hosts.collect(2)}
    expect(others == {2, 3}, f"flooded to {others}")
    expect("mac_not_pinned" not in switch.output(), f"{switch.output()}")
    switch.stop()


@smoke_test("port-leaves-the-bridge")
def reload(lab: Lab) -> None:
    """A reload takes a port from the bridge and gives it back, and ties a station and unties it."""
    links = Links(lab, 3)
    path = lab.file("weir.yaml", configuration(ports(3)) + SILENT)
    switch = lab.ready_weir(links.fabric, path)
    tied = f'stations: [{{ mac: "{station(9).hex(":")}", port: p0 }}]\n'

    def read_again(text: str, bridges: str) -> None:
        """Until p1 bridges or not, and the station is tied or not."""
        path.write_text(text)
        switch.process.send_signal(signal.SIGHUP)
        wait_for(lambda: bridge(switch, "p1")["bridge"] == bridges, 5, f"no reload:\n{switch.output()}")
        wait_for(lambda: ("static" in {row["kind"] for row in switch.ask("/weir/fdb")["fdb"].values()}) ==
                 ("stations" in text), 5, "the station is not as the file has it")

    def flooded(number: int) -> list[int]:
        """By which ports a broadcast from p2 leaves."""
        one = frame(BROADCAST, station(2), number)
        links.sockets[2].send(one)
        return [port for port in range(2) if links.come([one], port, 0.5)]

    expect(flooded(1) == [0, 1], "not flooded")
    read_again(configuration(ports(3, not_bridged=1)) + tied + SILENT, "no")
    expect(flooded(2) == [0], "p1 still bridges")
    rows = switch.ask("/weir/fdb")["fdb"].values()
    kinds = {row["mac"]: (row["port"], row["kind"]) for row in rows}
    expect(kinds.get(station(9).hex(":")) == ("p0", "static"), f"{kinds}")
    links.sockets[2].send(frame(BROADCAST, station(9)))
    wait_for(lambda: drops(switch, "tied_elsewhere") == 1, 5, "the impostor was not dropped by name")
    expect(links.come([], 0, 0.3), "the impostor's frame has passed")
    one = frame(station(9), station(2))
    links.sockets[2].send(one)
    expect(links.come([one], 0, 0.5), "it is not at its port")
    read_again(configuration(ports(3)) + SILENT, "yes")
    expect(flooded(3) == [0, 1], "p1 does not bridge")
    links.sockets[1].send(frame(BROADCAST, station(9), 4))
    wait_for(lambda: {row["mac"]: row["port"] for row in switch.ask("/weir/fdb")["fdb"].values()}
             .get(station(9).hex(":")) == "p1", 5, "it does not move")
    switch.stop()
