# SPDX-License-Identifier: BSD-3-Clause
"""Ports come and go by a reload, beside a job: who is reached then, whose job goes on, and what is refused."""
from __future__ import annotations

import json
import socket

from hosts import RANKS, TIMEOUT_S, Hosts, raw_link, ring_7, ring_ports
from lab import Lab, smoke_test
from netns import veth
from terminal import Terminal
from test_incarnations import told
from test_reload import Files, begun, changes, effects, one_message, ring_of_others
from test_rings import added, rings_of
from weir import Weir, expect

BROADCAST = b"\xff" * 6
FIFTH = bytes.fromhex("02000000ff05")
DEVICE = "net_af_packet4,iface=tap4"
FIVE_PORTS = [*ring_ports(), f'name: p4, device: "{DEVICE}"']
P4_FOR_P3 = [*FIVE_PORTS[:3], FIVE_PORTS[4]]


def with_fifth(lab: Lab, **what: str) -> tuple[Files, Hosts, Terminal, socket.socket]:
    """A switch of four ports that may open one more, and a fifth host's link."""
    files, hosts, terminal, fabric = begun(lab, spare_ports=1, **what)
    veth(fabric, "tap4", hosts.namespace, "host4")
    link = raw_link(hosts.namespace, "host4")
    lab.on_end(link.close)
    return files, hosts, terminal, link


def plain(destination: bytes, source: bytes, text: str) -> bytes:
    """A frame of IEEE 802's first experimental EtherType."""
    return destination + source + b"\x88\xb5" + text.encode().ljust(46, b"\0")


def comes(link: socket.socket, frame: bytes) -> None:
    """The frame, and no other, comes to this link."""
    link.settimeout(TIMEOUT_S)
    got = link.recv(65535)
    link.setblocking(False)
    expect(got == frame, f"another frame came: {got.hex()}")


def station(switch: Weir, mac: bytes) -> str | None:
    rows = switch.ask("/weir/fdb")["fdb"].values()
    return next((str(row["port"]) for row in rows if row["mac"] == mac.hex(":")), None)


def address_of(rank: int) -> bytes:
    return bytes.fromhex(f"0200000000{rank + 1:02x}")


def talks(hosts: Hosts, terminal: Terminal, link: socket.socket, name: str) -> None:
    """The fifth host reaches all others, and they reach it."""
    hello = plain(BROADCAST, FIFTH, f"I am behind {name}")
    link.send(hello)
    expect(sorted(hosts.collect(RANKS)) == [(rank, hello) for rank in range(RANKS)], "the fifth host's broadcast")
    expect(station(terminal.switch, FIFTH) == name, f"learnt at {station(terminal.switch, FIFTH)}")
    for destination in (FIFTH, BROADCAST):
        answer = plain(destination, address_of(0), f"to {destination.hex()}")
        hosts.send_raw(0, answer)
        comes(link, answer)
        others = [(rank, answer) for rank in range(1, RANKS)] if destination == BROADCAST else []
        expect(sorted(hosts.collect(len(others))) == others, "who else got it")


def ports_of(terminal: Terminal) -> dict[str, dict[str, int]]:
    """By name, what each has counted."""
    return {row["port"]: row for row in json.loads(terminal.ask("show port stats all json"))["port_stats"]}


@smoke_test("ports-come-and-go")
def come_and_go(lab: Lab) -> None:
    """A port is opened, closed and opened again under another name; a job beside it goes on exactly."""
    files, hosts, terminal, link = with_fifth(lab)
    hosts.say_hello()
    one_message(hosts, 1)
    files.write(ports=FIVE_PORTS, spare_ports=1)
    wanted = {"ports[p4]": ("-", DEVICE, "port_opened")}
    expect(changes(terminal, "reload --dry-run") == wanted and "p4" not in ports_of(terminal), "the dry run")
    expect(changes(terminal) == wanted and changes(terminal) == {}, "opened")
    talks(hosts, terminal, link, "p4")
    one_message(hosts, 2)
    files.write(spare_ports=1)
    expect(changes(terminal) == {"ports[p4]": (DEVICE, "-", "port_closed")} and changes(terminal) == {}, "closed")
    expect("p4" not in ports_of(terminal), f"{ports_of(terminal)}")
    expect(station(terminal.switch, FIFTH) is None, "the switch still knows its station")
    link.send(plain(BROADCAST, FIFTH, "is anybody there?"))
    asked = plain(FIFTH, address_of(0), "where are you?")
    hosts.send_raw(0, asked)
    expect(sorted(hosts.collect(RANKS - 1)) == [(rank, asked) for rank in range(1, RANKS)], "not flooded")
    one_message(hosts, 3)
    files.write(ports=[*ring_ports(), f'name: p9, device: "{DEVICE}"'], spare_ports=1)
    expect(changes(terminal) == {"ports[p9]": ("-", DEVICE, "port_opened")}, "opened again")
    row = ports_of(terminal)["p9"]
    expect((row["rx_packets"], row["tx_packets"]) == (0, 0), f"a new port's counters: {row}")
    talks(hosts, terminal, link, "p9")
    one_message(hosts, 4)
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("ports-for-rings")
def for_rings(lab: Lab) -> None:
    """A member moves to a port that comes while its own goes, in one reload, and its job goes on. A ring comes with a port."""
    files, hosts, terminal, link = with_fifth(lab)
    hosts.say_hello()
    one_message(hosts, 1)
    moved = ring_7().replace("port: p3", "port: p4")
    files.write(rings=moved, ports=P4_FOR_P3, spare_ports=1)
    found = effects(terminal)
    expect(found == {"ports[p3]": "port_closed", "ports[p4]": "port_opened", "rings[7].members[3].port": "in_place"}, f"{found}")
    hosts.replace_link(3, link)
    one_message(hosts, 2)
    other = ring_of_others().replace("port: p3", "port: p8")
    files.write(rings=moved + other, ports=[*P4_FOR_P3, 'name: p8, device: "net_null8,no-rx=1"'], spare_ports=1)
    found = effects(terminal)
    expect(found == {"ports[p8]": "port_opened", "rings[8]": "ring_made"}, f"{found}")
    expect(changes(terminal) == {}, "the ring's member is tied to another port")
    one_message(hosts, 3)
    files.write(rings=moved, ports=P4_FOR_P3, spare_ports=1)
    found = effects(terminal)
    expect(found == {"ports[p8]": "port_closed", "rings[8]": "ring_withdrawn"}, f"{found}")
    one_message(hosts, 4)
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("ports-refused")
def refused(lab: Lab) -> None:
    """A port that does not fit, cannot be opened, or that a job uses changes nothing, be the rest of the file as right as it may."""
    files, hosts, terminal, _ = with_fifth(lab)
    hosts.say_hello()
    one_message(hosts, 1)
    fifth = FIVE_PORTS[4]
    mistakes = (
        ([fifth, 'name: p5, device: "net_null5"'], "port p5: found 6 ports, those that go included; allowed: 5 at once"),
        ([fifth + ", mtu: 9000"], "port p4: mtu: found 9000; allowed: up to 1500, the longest at the start, until a restart\n"),
        ([fifth + ", rx_descriptors: 32768"], "port p4: found queues for "),
        (['name: p4, device: "net_af_packet4,iface=none"'], "port p4: device net_af_packet4,iface=none: found no interface none; allowed: lo, tap0"))
    for more, found in mistakes:
        files.write(ports=[*ring_ports(), *more], spare_ports=1, more="l2: { aging_s: 5 }\n")
        answer = terminal.ask("reload")
        expect(found in answer, answer)  # beside what DPDK says
        expect(len(ports_of(terminal)) == RANKS, f"{ports_of(terminal)}")
    files.write(rings=ring_7().replace("port: p3", "port: p4"), ports=[*ring_ports()[:3], ring_ports()[3].replace("p3", "p4", 1)],
                spare_ports=1)
    answer = terminal.ask("reload")
    expect("port p4: device: found net_af_packet3, which port p3 has; allowed: another device, or" in answer, answer)
    expect(added(lab, terminal, ring_of_others()) == "added: ring 8\n", "`add ring`")
    files.write(rings=ring_7().replace(", port: p3", ""), ports=ring_ports()[:3], spare_ports=1)
    for command in ("reload --dry-run", "reload"):
        answer = terminal.ask(command)
        expect("port p3: a member of ring 7 is behind it; allowed: `reset ring 7` when its job has ended" in answer, answer)
    files.write(rings="", ports=ring_ports()[:3], spare_ports=1)
    answer = terminal.ask("reload")
    expect("port p3: a member of ring 8 is behind it" in answer and sorted(rings_of(terminal.switch)) == [7, 8], answer)
    capture = lab.directory / "p0.pcapng"
    terminal.ask(f"capture port p0 {capture}")
    files.write(ports=FIVE_PORTS, spare_ports=1)
    expect(f"port p4: {capture} is being written with the ports that there are" in terminal.ask("reload"), "beside a capture")
    terminal.ask("capture stop")
    one_message(hosts, 2)
    expect(changes(terminal) == {"ports[p4]": ("-", DEVICE, "port_opened")}, "what was wrong with it is gone")
    one_message(hosts, 3)
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("ports-closed-get-no-flood")
def closed_get_no_flood(lab: Lab) -> None:
    """What is flooded later is not dropped for a port that has gone: it was the first of all, which takes the frame itself."""
    files, hosts, terminal, _ = with_fifth(lab, rings="")
    files.write(rings="", ports=ring_ports()[1:], spare_ports=1)
    expect(effects(terminal) == {"ports[p0]": "port_closed"}, "closed")
    call = plain(BROADCAST, address_of(1), "to all")
    hosts.send_raw(1, call)
    expect(sorted(hosts.collect(2)) == [(2, call), (3, call)], "not flooded")
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("ports-closed-under-traffic")
def closed_under_traffic(lab: Lab) -> None:
    """A port is opened and closed while frames go to it and come from it: all others come, in order, and each is accounted for."""
    files, hosts, terminal, link = with_fifth(lab)
    sent = []
    for turn in range(20):
        files.write(ports=FIVE_PORTS if turn % 2 == 0 else ring_ports(), spare_ports=1)
        for _ in range(50):
            sent.append(plain(BROADCAST, address_of(0), f"frame {len(sent)}"))
            hosts.send_raw(0, sent[-1])
            link.send(plain(BROADCAST, FIFTH, "in between"))
        expect(len(changes(terminal)) == 1, "a port that comes or goes")
    got: list[tuple[int, bytes]] = []
    while frames := hosts.received(1.0):
        got += frames
    for rank in range(1, RANKS):
        came = [frame for where, frame in got if where == rank and frame[6:12] == address_of(0)]
        expect(came == sent, f"{len(came)} of {len(sent)} frames came to host {rank}")
    totals = told(terminal)
    expect(set(totals.drops) <= {"port_closed"}, f"{totals}")
