# SPDX-License-Identifier: BSD-3-Clause
"""Regions that a program holds, and members without Weir's code: they write the frames of docs/protocol.md §13 themselves."""
from __future__ import annotations

import base64
import json
import re
import signal
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hosts import TIMEOUT_S, Hosts, model, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from netns import Namespace
from test_aggregation import lcores_of
from test_control import CLIENT, TCP, Authority, at_socket, said, socket_of, weirctl
from test_events import wait_for_line
from test_metrics import LISTEN, values_of
from test_process import FrozenThread, lcore_thread
from test_tenants import caller
from test_worker import Process
from torch_ranks import PYTHON
from weir import NO_HUGEPAGES, Weir, configuration, expect, run_to_end, wait_for

OWN_IP, OWN_MAC = "10.77.0.254", "02:57:45:00:00:01"
MEMBERS = 3
WRITE_ONLY, READ_REQUEST, RESPONSE_ONLY, ACKNOWLEDGE = 0x0A, 0x0C, 0x10, 0x11
ACK = 0x1F  # the syndrome without credits (IBTA §9.7.5.2)
QP, PSN, BASE, KEY = 0x100, 0xFFFFFF, 0x7000_0000, 0xABC0  # a member's, and its number more
BYTES = 4096
MEMORY = NO_HUGEPAGES.replace("256", "512")


def rooms(places: tuple[str, str, str] = ("1", "1", "1"), frames: int = 1024) -> str:
    own = (f'regions: {{ address: {OWN_IP}, mac: "{OWN_MAC}", '
           f'rooms: {{ regions: 2, members: 8, frames: {frames}, entries: 32 }} }}\n')
    return configuration(ring_ports(), lcores_of(places, "yield"), eal=MEMORY) + own


def with_regions(lab: Lab, places: tuple[str, str, str] = ("1", "1", "1"), frames: int = 1024) -> str:
    return at_socket(lab, rooms(places, frames))


def region(ips: tuple[str, ...] = ("10.77.0.1", "10.77.0.2", "10.77.0.3"), **more: Any) -> str:
    members = [{"ip": ip, "queue_pair": QP + member, "first_psn": PSN, "base": BASE + BYTES * member,
                "key": KEY + member, "ack_timeout": 20} for member, ip in enumerate(ips)]
    return json.dumps({"region": {"bytes": BYTES, "window": 16, "patience": 5, "members": members} | more})


class HeldRegion:
    """A call HoldRegion, by a process of its own, and an operator's unless there is another way to the switch."""

    def __init__(self, lab: Lab, namespace: Namespace, request: str, way: Sequence[str] = ()) -> None:
        self.process = Process(lab, namespace, [PYTHON, CLIENT, *(way or [f"unix:{socket_of(lab)}"]), "hold-region", request])
        assert self.process.process.stdout is not None
        self.answer: dict[str, Any] = json.loads(self.process.process.stdout.readline())

    def end(self) -> dict[str, Any]:
        """What the switch says at its end."""
        return dict(json.loads(self.process.wait()[1].splitlines()[-1]))


@dataclass(frozen=True)
class Member:
    """The frames of one, to its end of the switch."""

    number: int
    held: dict[str, Any]

    @property
    def end(self) -> dict[str, Any]:
        return dict(self.held["ends"][self.number])

    @property
    def first_psn(self) -> int:
        """Of the switch's requests. In JSON 0 is nothing."""
        return int(self.end.get("first_psn", 0))

    def frame(self, opcode: int, psn: int, more: bytes) -> bytes:
        bth = struct.pack(">BBHII", opcode, 0, 0xFFFF, self.end["queue_pair"], 1 << 31 | psn & 0xFFFFFF) + more
        udp = struct.pack(">HHHH", 50000, 4791, 8 + len(bth) + 4, 0)
        source, destination = (bytes(map(int, ip.split("."))) for ip in (f"10.77.0.{self.number + 1}", OWN_IP))
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp) + len(bth) + 4, 0, 0x4000, 64, 17, 0) + source + destination
        ip = ip[:10] + model.internet_checksum(ip).to_bytes(2, "big") + ip[12:]
        frame = bytes.fromhex(OWN_MAC.replace(":", "")) + mac_of(self.number) + b"\x08\x00" + ip + udp + bth
        return frame + model.icrc(frame, 14, 42, len(frame))

    def write(self, psn: int, offset: int, data: bytes) -> bytes:
        reth = struct.pack(">QII", int(self.held["base"]) + offset, self.held["key"], len(data))
        return self.frame(WRITE_ONLY, psn, reth + data)

    def read(self, psn: int, offset: int, count: int) -> bytes:
        reth = struct.pack(">QII", int(self.held["base"]) + offset, self.held["view_keys"][0], count)
        return self.frame(READ_REQUEST, psn, reth)

    def respond(self, psn: int, data: bytes) -> bytes:
        return self.frame(RESPONSE_ONLY, psn, struct.pack(">I", ACK << 24) + data)

    def hello(self) -> bytes:
        return self.write(PSN, 0, base64.b64decode(self.end["token"]))

    def acknowledge(self, psn: int) -> bytes:
        return self.frame(ACKNOWLEDGE, psn, struct.pack(">I", ACK << 24))


def mac_of(member: int) -> bytes:
    return bytes([2, 0x77, 0, 0, 0, member])


def parsed(frames: list[tuple[int, bytes]]) -> Iterator[tuple[int, model.Roce]]:
    for host, frame in frames:
        roce = model.parse_roce(frame)
        assert roce is not None
        expect(roce.icrc_is_right() and roce.src == OWN_IP and frame[6:12].hex(":") == OWN_MAC, model.describe(frame))
        expect(roce.qp == QP + host, f"host {host} got {model.describe(frame)}")
        yield host, roce


def wait_for_packets(hosts: Hosts, *wanted: tuple[int, int, int]) -> list[model.Roce]:
    """Until these have come, each a host, an opcode and a PSN: a copy that is not acknowledged comes again and again."""
    came: dict[tuple[int, int, int], model.Roce] = {}
    deadline = time.monotonic() + TIMEOUT_S
    while not set(wanted) <= set(came):
        expect(time.monotonic() < deadline, f"wanted {wanted}; came {sorted(came)}")
        came |= {(host, packet.opcode, packet.psn): packet for host, packet in parsed(hosts.received(0.1))}
    return [came[packet] for packet in wanted]


def open_region(hosts: Hosts, members: list[Member]) -> None:
    for member in members[:-1]:
        hosts.send_raw(member.number, member.hello())
    expect(hosts.received(0.05) == [], "before the last hello nobody is told anything")
    hosts.send_raw(members[-1].number, members[-1].hello())
    wait_for_packets(hosts, *((member.number, ACKNOWLEDGE, PSN) for member in members))


def write_to_all(hosts: Hosts, members: list[Member]) -> None:
    """Member 0 writes, all get it where their copies are, and it hears so when the last has acknowledged."""
    data = b"to all of us"
    hosts.send_raw(0, members[0].write(PSN + 1, 64, data))
    copies = wait_for_packets(hosts, *((member.number, WRITE_ONLY, member.first_psn) for member in members))
    for host, copy in enumerate(copies):
        reth = struct.unpack(">QII", copy.frame[copy.bth_at + 12:copy.bth_at + 28])
        expect(copy.payload == data and reth == (BASE + BYTES * host + 64, KEY + host, len(data)),
               f"{model.describe(copy.frame)} {reth}")
    for member in members:
        hosts.send_raw(member.number, member.acknowledge(member.first_psn))
    wait_for_packets(hosts, (0, ACKNOWLEDGE, 0))


def ask_for_address(hosts: Hosts) -> None:
    request = (b"\xff" * 6 + mac_of(0) + bytes.fromhex("08060001080006040001") + mac_of(0) + bytes([10, 77, 0, 1])
               + bytes(6) + bytes([10, 77, 0, 254]))
    hosts.send_raw(0, request)
    [(host, answer)] = hosts.collect(1)
    expect(host == 0 and answer[20:22] == b"\0\2" and answer[22:28].hex(":") == OWN_MAC, answer.hex())


def with_members(lab: Lab, config: str, **more: Any) -> tuple[Weir, Hosts, HeldRegion, list[Member]]:
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, config)
    held = HeldRegion(lab, fabric, region(**more))
    return switch, hosts, held, [Member(number, held.answer) for number in range(MEMBERS)]


def use(lab: Lab, places: tuple[str, str, str]) -> None:
    switch, hosts, held, members = with_members(lab, with_regions(lab, places), loopback=True)
    expect((held.answer["ip"], held.answer["mac"]) == (OWN_IP, OWN_MAC), f"{held.answer}")
    ask_for_address(hosts)
    open_region(hosts, members)
    write_to_all(hosts, members)
    [row] = switch.ask("/weir/region")["regions"].values()
    expect((row["state"], row["accepted"], row["copies"] - row["again"], row["held"]) == ("open", 1, 3, 0), f"{row}")
    expect(said(lab, "withdraw region 1") == "region 1: withdrawn\n", "withdraw")
    answer = held.end()
    expect(answer == {"code": "ABORTED", "message": "region 1 has ended: it was withdrawn"}, f"{answer}")
    hosts.send_raw(1, members[1].write(PSN + 1, 0, b"too late"))
    [refused] = wait_for_packets(hosts, (1, ACKNOWLEDGE, 0))
    expect(refused.frame[refused.bth_at + 12] == 0x63, "a NAK: remote operational error")
    totals = switch.stop()
    expect(totals.drops == {"region_ended": 1}, f"{totals.drops}")


@smoke_test("regions")
def regions(lab: Lab) -> None:
    """A region is made, opens, multicasts and is withdrawn."""
    use(lab, ("1", "1", "1"))


@smoke_test("regions-pull")
def pull(lab: Lab) -> None:
    """A member reads: all are asked where their copies are, and it gets the sum. What that takes is counted."""
    views = [{"operation": "sum", "type": "i32"}]
    switch, hosts, held, members = with_members(lab, with_regions(lab, frames=3 * (16 + 8)), views=views, entries=8)
    expect(held.answer["region"]["views"] == views and held.answer["region"]["members"][0]["reads"] == 1, f"{held.answer}")
    refused = HeldRegion(lab, hosts.namespace, region(views=views, entries=25)).answer
    expect(refused["code"] == "RESOURCE_EXHAUSTED" and "needs 123 frames, 0 are free" in refused["message"], f"{refused}")
    open_region(hosts, members)
    hosts.send_raw(1, members[1].read(PSN + 1, 64, 16))
    asked = wait_for_packets(hosts, *((member.number, READ_REQUEST, member.first_psn) for member in members))
    for host, packet in enumerate(asked):
        reth = struct.unpack(">QII", packet.frame[packet.bth_at + 12:packet.bth_at + 28])
        expect(reth == (BASE + BYTES * host + 64, KEY + host, 16), f"{model.describe(packet.frame)} {reth}")
    for member in members:
        hosts.send_raw(member.number, member.respond(member.first_psn, struct.pack("<4i", 1, -2, 1 << 30, 10 ** member.number)))
    [answer] = wait_for_packets(hosts, (1, RESPONSE_ONLY, 0))
    sums = struct.unpack("<4i", answer.frame[answer.bth_at + 16:answer.bth_at + 32])
    expect(sums == (3, -6, (3 << 30) - (1 << 32), 111), f"{sums}")
    [row] = switch.ask("/weir/region")["regions"].values()
    expect((row["views"], row["entries"], row["gathering"], row["reads"], row["folds"], row["held"], row["member_reads"] - row["member_reads_again"])
           == ("sum of i32", 8, 0, 1, 1, 0, 3), f"{row}")
    hosts.send_raw(2, members[2].read(PSN + 1, 4, 16))
    answer = held.end()
    expect(answer["code"] == "ABORTED" and "member 2 (10.77.0.3) has sent what no region takes" in answer["message"], f"{answer}")
    switch.stop()


@smoke_test("regions-of-several-lcores")
def several_lcores(lab: Lab) -> None:
    """Whoever receives a member's packet, the first worker has it, and another lcore sends."""
    use(lab, ("1", "0", "1"))


@smoke_test("regions-end")
def ends(lab: Lab) -> None:
    """With their owner; when a member does not say hello, who is named; and room is what the file says."""
    switch, hosts, held, members = with_members(lab, with_regions(lab, frames=3 * 16), forming=1)
    refused = HeldRegion(lab, hosts.namespace, region()).answer
    expect(refused["code"] == "RESOURCE_EXHAUSTED" and "needs 48 frames, 0 are free" in refused["message"], f"{refused}")
    hosts.send_raw(1, members[1].hello())
    answer = held.end()
    expect(answer["code"] == "ABORTED" and answer["message"].endswith(
        "no hello for 1 s from member 0 (10.77.0.1), member 2 (10.77.0.3)"), f"{answer}")
    orphan = HeldRegion(lab, hosts.namespace, region())
    orphan.process.kill()
    wait_for(lambda: "it was withdrawn" in said(lab, f"show region {orphan.answer['id']}"), 10, "it outlives its owner")
    counted = {row["reason"]: row["count"] for row in switch.ask("/weir/region")["region_ends"].values()}
    expect(counted == {"unformed": 1, "withdrawn": 1}, f"{counted}")
    wrong = weirctl("show", "region", "77", server=socket_of(lab))
    expect(wrong.status != 0 and "region: found '77'; allowed: " in wrong.errors, f"{wrong}")
    switch.stop()


@smoke_test("regions-left-alone")
def left_alone(lab: Lab) -> None:
    """A call for which an lcore does not stop leaves nothing behind. No reload closes a port that a member is behind."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, with_regions(lab, frames=3 * 16) + "spare: { rings: 0, members: 0, frames: 0, ports: 1 }\n")
    frozen = FrozenThread(lcore_thread(switch.process.pid))
    lab.on_end(frozen.thaw)
    answer = HeldRegion(lab, fabric, region()).answer
    expect(answer == {"code": "UNAVAILABLE", "message": "lcore 1 did not stand still within 2000 ms"}, f"{answer}")
    frozen.thaw()
    held = HeldRegion(lab, fabric, region())
    open_region(hosts, [Member(number, held.answer) for number in range(MEMBERS)])
    expect(len(switch.ask("/weir/region")["regions"]) == 1, said(lab, "show region all"))
    file = lab.directory / "weir1.yaml"
    file.write_text(re.sub(r"^  - \{ name: p1, .*\n", "", file.read_text(), flags=re.MULTILINE))
    refused = weirctl("reload", server=socket_of(lab))
    expect(refused.status != 0 and "port p1: a member of region " in refused.errors, f"{refused}")
    expect(said(lab, f"withdraw region {held.answer['id']}").endswith("withdrawn\n"), "withdraw")
    expect("port_closed" in said(lab, "reload"), "the port is free")
    switch.stop()


@smoke_test("regions-drain")
def drain(lab: Lab) -> None:
    """A switch that is to stop makes no region, and lets a write end that is under way; what does not end by then is told."""
    for drain_s, is_acknowledged in ((60, True), (1, False)):
        switch, hosts, held, members = with_members(lab, with_regions(lab) + f"drain_s: {drain_s}\n")
        open_region(hosts, members)
        hosts.send_raw(0, members[0].write(PSN + 1, 0, b"the last"))
        wait_for_packets(hosts, *((member.number, WRITE_ONLY, member.first_psn) for member in members[1:]))
        hosts.send_raw(1, members[1].acknowledge(members[1].first_psn))
        switch.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "s for packets of region 1; a second signal stops at once [stop_waits]\n" in switch.output(), 10, "it does not drain")
        if is_acknowledged:
            refused = HeldRegion(lab, hosts.namespace, region()).answer
            expect(refused == {"code": "FAILED_PRECONDITION", "message": "this switch is about to stop; allowed: no new region"}, f"{refused}")
            hosts.send_raw(2, members[2].acknowledge(members[2].first_psn))
            wait_for_packets(hosts, (0, ACKNOWLEDGE, 0))
        output = switch.wait().output
        expect(held.end() == {"code": "UNAVAILABLE", "message": "the switch stops"}, "its call")
        cut_off = "weir: region 1: cut off: it held 1 packets for member 2 (10.77.0.3) [region_cut_off region=1 tenant=-]\n"
        expect((cut_off in output) != is_acknowledged, output)


@smoke_test("regions-absent")
def absent(lab: Lab) -> None:
    """A switch without regions: makes none, and says what would be right."""
    fabric, _ = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, at_socket(lab, configuration(ring_ports())))
    answer = HeldRegion(lab, fabric, region()).answer
    expect(answer == {"code": "FAILED_PRECONDITION", "message": "this switch has no regions; allowed: a configuration with "
                                                                "regions:"}, f"{answer}")
    switch.stop()


def with_tenants(lab: Lab, authority: Authority) -> str:
    """Red has the first three hosts and room for one region of them, blue the fourth."""
    certificate, key = authority.sign("switch")
    return f"""{rooms(frames=128)}
metrics: {{ listen: "{LISTEN}" }}
control:
  listen: ["{TCP}", "unix:{socket_of(lab)}"]
  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{authority.certificate}" }}
  operators: [root]
tenants:
  - {{ name: red, regions: 1, packets_per_second: 123456, hosts: [10.77.0.0/30] }}
  - {{ name: blue, regions: 1, hosts: [10.77.0.4/32] }}
"""


def expect_metrics(fabric: Namespace) -> None:
    """One packet has gone to three members, and the other tenant's region has no member yet."""
    value = values_of(fabric)
    expect([value(f"weir_region_{name}", place=place) for place in (0, 1) for name in ("id", "members", "heard_members")] == [1, 3, 3, 2, 2, 0],
           "members")
    copies = value("weir_region_copies_total", place=0) - value("weir_region_repeated_copies_total", place=0)
    expect((value("weir_region_packets_total", place=0), copies, value("weir_region_held_frames", place=0)) == (1, 3, 0), "packets")
    for name in ("held_frames", "unacknowledged_copies", "waited_for_seconds"):
        expect(value(f"weir_region_member_{name}", place=0, member=2) == 0, f"nothing is under way: {name}")
    shares = [value(f"weir_tenant_{name}", tenant=tenant) for tenant in ("red", "blue")
              for name in ("regions", "most_regions", "region_members", "region_frames", "most_region_frames")]
    expect(shares == [1, 1, 3, 48, 64, 1, 1, 2, 8, 64], f"{shares}")


@smoke_test("regions-of-tenants")
def of_tenants(lab: Lab) -> None:
    """Each holds regions of its own hosts, within its share. To the other one they are not there."""
    fabric, hosts = ring_of_hosts(lab)
    authority = Authority(lab, "ours")
    switch = lab.ready_weir(fabric, with_tenants(lab, authority))
    ways = {name: ["--tls", *authority.sign(name), authority.certificate, TCP] for name in ("red", "blue")}
    red, blue = (caller(fabric, authority, name) for name in ways)

    def refused(name: str, code: str, text: str, request: str) -> None:
        answer = HeldRegion(lab, fabric, request, ways[name]).answer
        expect(answer.get("code") == code and text in answer["message"], f"wanted {code}, {text}: {answer}")

    held = HeldRegion(lab, fabric, region(loopback=True), ways["red"])
    expect(held.answer["region"]["tenant"] == "red", f"{held.answer}")
    members = [Member(number, held.answer) for number in range(MEMBERS)]
    open_region(hosts, members)
    refused("red", "RESOURCE_EXHAUSTED", "tenant red may have 1 and has 1, held by region 1: 1;", region())
    refused("blue", "FAILED_PRECONDITION", "found 10.77.0.1, which is no host of tenant blue; allowed: an address in its hosts:, "
            "10.77.0.4/32", region(("10.77.0.1", "10.77.0.4")))
    refused("blue", "PERMISSION_DENIED", "region.tenant: found red; allowed: blue, or none", region(tenant="red"))
    for words, code, text in ((["withdraw", "region", "1"], "NOT_FOUND", "region: found 1; allowed: there is none"),
                              (["show", "region", "1"], "NOT_FOUND", "region: found '1'; allowed: there is none")):
        answer = blue("Execute", words=words)
        expect(answer == {"code": code, "message": text}, f"{words}: {answer}")
    own = HeldRegion(lab, fabric, region(("10.77.0.4", "10.77.0.4"), window=4), ways["blue"])
    with fabric.entered():
        watched = run_to_end([PYTHON, CLIENT, *ways["blue"], "watch", json.dumps({"words": ["show", "region", "all"],
                                                                                  "period_ms": 100}), "1"])
    for seen in (json.dumps(blue("Execute", words=["show", "region", "all"])), watched.output):
        expect("10.77.0.4" in seen and "10.77.0.1" not in seen, f"blue sees {seen}")
    write_to_all(hosts, members)
    rates = [row["packets_per_second"] for row in switch.ask("/weir/region")["region_queue"].values()]
    expect(rates == [123456, "-"], f"all of red's rate is its region's, and blue has none: {rates}")
    expect_metrics(fabric)
    expect(red("Execute", words=["withdraw", "region", "1"]) == {"text": "region 1: withdrawn\n"}, "its own region")
    expect(held.end()["code"] == "ABORTED", "its call ends")
    for line in (r"region 1: its 3 members have said hello \[region_began region=1 members=3 tenant=red\]",
                 r"region 1: has ended: it was withdrawn \[region_ended region=1 reason=withdrawn tenant=red\]"):
        wait_for_line(switch, line)
    # Not at once: who scrapes again within a second gets the answers of before.
    wait_for(lambda: values_of(fabric)("weir_regions_ended_total", reason="withdrawn") == 1, 5, "the one that has ended is not counted")
    for ask, ended in ((red, True), (blue, False)):
        answer = ask("Execute", words=["show", "region", "all"])
        expect(("withdrawn" in json.dumps(answer)) == ended, f"a tenant sees its own: {answer}")
    expect("id" in HeldRegion(lab, fabric, region(), ways["red"]).answer, "its share is free again")
    expect(own.process.process.poll() is None, "blue's region is not touched")
    switch.stop()
