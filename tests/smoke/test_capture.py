# SPDX-License-Identifier: BSD-3-Clause
"""`capture` at the prompt: the file as tshark and a reader of pcap files see it, against what the hosts sent and got."""
from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hosts import RANKS, Hosts, Job, contributions, frame_of, result, ring_of_hosts
from lab import Lab, smoke_test
from roce import read_pcap
from terminal import Terminal
from weir import ROOT, Skipped, expect, wait_for

CONFIG = ROOT / "config/af_packet.yaml"
DISSECTOR = ROOT / "tools/wireshark/weir.lua"
SLOTS_PER_MESSAGE = 16  # of the ring in CONFIG: max_message_bytes / mtu
PLACES = 17  # of a hello and message 1
REPEATED = 5  # place that rank 0 sends once more
INBOUND, OUTBOUND = "0x00000001", "0x00000002"


@dataclass(frozen=True)
class Packet:
    """A packet of a capture."""

    interface: str
    direction: str
    comment: str
    info: str
    frame: bytes


def packets_of(lab: Lab, file: Path) -> list[Packet]:
    if shutil.which("tshark") is None:
        raise Skipped("no tshark")
    fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.comment", "_ws.col.Info"]
    said = subprocess.run(["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", file, "-T", "fields", "-E", "separator=|",
                           *(option for field in fields for option in ("-e", field))],
                          capture_output=True, text=True, timeout=60, check=True)
    expect("cut short" not in said.stderr, f"{file}: {said.stderr}")
    plain = lab.directory / f"{file.name}.pcap"
    subprocess.run(["tshark", "-r", file, "-F", "pcap", "-w", plain], capture_output=True, timeout=60, check=True)
    frames = read_pcap(plain)
    rows = [line.split("|") for line in said.stdout.splitlines()]
    expect(len(rows) == len(frames), f"{len(rows)} packets are told, {len(frames)} are there")
    return [Packet(*row, frame) for row, frame in zip(rows, frames)]


def status(terminal: Terminal) -> dict[str, object]:
    return dict(json.loads(terminal.ask("show capture json"))["capture"][0])


def held_text(rank: int, place: int) -> str:
    message = contributions()[rank][place].message
    first = next(i for i, packet in enumerate(contributions()[rank]) if packet.message == message)
    packet = place - first
    return f"slot {message * SLOTS_PER_MESSAGE + packet} of ring 7: rank {rank}, message {message}, packet {packet}"


def wait_for_packets(terminal: Terminal, count: int) -> None:
    wait_for(lambda: status(terminal)["written"] == count, 5, f"{count} packets are not written: {status(terminal)}")


def hellos(packets: list[Packet]) -> Counter[str]:
    return Counter(packet.comment.partition(" of ring 7 ")[2] for packet in packets if packet.comment.startswith("hello"))


@smoke_test("capture-ring")
def ring(lab: Lab) -> None:
    """Every contribution and result with its verdict, the bytes those that travelled."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    file = lab.directory / "ring.pcapng"
    expect("at most 500 packets" in terminal.ask(f"capture ring 7 {file} 500"), "`capture ring` does not start")
    hosts.send_raw(2, b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46))  # no packet of the ring
    hosts.collect(3)
    hosts.say_hello()
    Job(hosts, last=1).run()
    hosts.send(0, REPEATED)
    hosts.collect(1)
    hosts.send(0, PLACES)
    hosts.send(0, PLACES)
    whole = 2 * PLACES * RANKS + 4
    wait_for_packets(terminal, whole)
    expect((status(terminal)["of"], status(terminal)["state"]) == ("ring 7", "running"), f"{status(terminal)}")
    answer = terminal.ask("capture stop")
    expect(f"{whole} packets written, 0 left out" in answer, answer)
    expect(status(terminal)["state"] == "ended: stopped", f"{status(terminal)}")
    check_ring(packets_of(lab, file), hosts)
    terminal.quit()


def check_ring(packets: list[Packet], hosts: Hosts) -> None:
    inbound = [packet for packet in packets if packet.direction == INBOUND]
    outbound = [packet for packet in packets if packet.direction == OUTBOUND]
    own = hosts.incarnation
    sent = Counter((f"p{rank}", frame_of(rank, place, own)) for rank in range(RANKS) for place in range(PLACES))
    sent += Counter([("p0", frame_of(0, place, own)) for place in (REPEATED, PLACES, PLACES)])
    expect(Counter((packet.interface, packet.frame) for packet in inbound) == sent, "what came in is not what was sent")
    got = Counter((f"p{(rank + 1) % RANKS}", result(rank, place, own)) for rank in range(RANKS) for place in range(PLACES))
    got["p1", result(0, REPEATED, own)] += 1
    expect(Counter((packet.interface, packet.frame) for packet in outbound) == got, "what left is not what was received")
    expect(hellos(packets) == {"waits for the others": 3, "is the last; the ring begins": 1}, f"{hellos(packets)}")
    held = Counter(packet.comment for packet in inbound if packet.comment.startswith("held"))
    completing = [packet.comment for packet in inbound if packet.comment.startswith("completes")]
    told = held + Counter(f"held in {text.removeprefix('completes ').removesuffix('; all are folded')}"
                          for text in completing)
    expect(len(completing) == PLACES - 1, f"{completing}")
    expect(told == Counter(f"held in {held_text(rank, place)}" for rank in range(RANKS) for place in range(1, PLACES))
           + Counter([f"held in {held_text(0, PLACES)}"]), f"{told}")
    results = Counter(packet.comment for packet in outbound)
    expect(results == Counter(f"result sent of {held_text(rank, place)}" for rank in range(RANKS)
                              for place in range(PLACES))
           + Counter([f"result sent for a repeat, of {held_text(0, REPEATED)}"]), f"{results}")
    repeats = [packet.comment for packet in inbound if packet.comment.startswith("repeat")]
    expect(repeats == [f"repeat, answered by the result of {held_text(0, REPEATED)}"], f"{repeats}")
    dropped = [packet for packet in packets if packet.comment.startswith("dropped")]
    expect([(packet.interface, packet.comment) for packet in dropped]
           == [("p0", "dropped: repeat_held in aggregate (repeat of a contribution that is already held)")], f"{dropped}")
    expect(all(packet.info.startswith("ring 7 rank ") for packet in packets), "the dissector does not know them all")
    wrong = [packet for packet in packets if ("[RESULT]" in packet.info) != (packet.direction == OUTBOUND)]
    expect(wrong == [], f"the dissector takes contributions for results, or results for contributions: {wrong}")


@smoke_test("capture-port")
def port(lab: Lab) -> None:
    """A port's own side of each packet; the end at the wanted number."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    one, all_ports = lab.directory / "one.pcapng", lab.directory / "all.pcapng"
    flooded = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)
    terminal.ask(f"capture port p1 {one}")
    hosts.send_raw(1, flooded)
    hosts.send_raw(2, flooded)
    hosts.collect(6)
    wait_for_packets(terminal, 2)
    terminal.ask("capture stop")
    found = [(packet.interface, packet.direction, packet.comment, packet.frame) for packet in packets_of(lab, one)]
    expect(sorted(found) == [("p1", INBOUND, "forwarded to p0, p2, p3", flooded),
                             ("p1", OUTBOUND, "forwarded from p2", flooded)], f"{found}")
    terminal.ask(f"capture port all {all_ports} 6")
    hosts.send_raw(2, flooded)
    hosts.send_raw(2, flooded)
    wait_for(lambda: status(terminal)["state"] == "ended: has its packets", 5, f"no end: {status(terminal)}")
    expect((status(terminal)["written"], status(terminal)["queue_full"]) == (6, 0), f"{status(terminal)}")
    found_all = [(packet.interface, packet.direction, packet.comment) for packet in packets_of(lab, all_ports)]
    each = [("p2", INBOUND, "forwarded to p0, p1, p3")] + [(f"p{i}", OUTBOUND, "forwarded from p2") for i in (0, 1, 3)]
    expect(found_all == each + each[:2], f"{found_all}")
    terminal.quit()


@smoke_test("capture-loop-probes")
def loop_probes(lab: Lab) -> None:
    """Frames of the switch itself, which have come by no port."""
    fabric, _ = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG.read_text().replace("l2: { ", "l2: { loop_detection: yes, "))
    probes = lab.directory / "probes.pcapng"
    terminal.ask(f"capture port p1 {probes}")
    wait_for_packets(terminal, 2)
    terminal.ask("capture stop")
    told = {(packet.interface, packet.direction, packet.comment) for packet in packets_of(lab, probes)}
    expect(told == {("p1", OUTBOUND, "sent by the switch itself")}, f"{told}")
    terminal.quit()


@smoke_test("capture-connection")
def connection(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    hosts.say_hello()
    row = next(row for row in json.loads(terminal.ask("show conn all json"))["connections"] if row["rank"] == "2")
    file = lab.directory / "conn.pcapng"
    terminal.ask(f"capture conn {row['pair']}:{row['qp']} {file}")
    Job(hosts, last=1).run()
    wait_for_packets(terminal, 2 * (PLACES - 1))
    terminal.ask("capture stop")
    frames = Counter(packet.frame for packet in packets_of(lab, file))
    own = hosts.incarnation
    expect(frames == Counter(make(2, place, own) for place in range(1, PLACES) for make in (frame_of, result)),
           "the connection's packets are others")
    terminal.quit()


@smoke_test("capture-ring-withdrawn")
def withdrawn(lab: Lab) -> None:
    """The ring goes, then the switch, while a capture runs: its file is whole, and tells of what was held."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    file = lab.directory / "withdrawn.pcapng"
    hosts.say_hello()
    terminal.ask(f"capture ring 7 {file}")
    hosts.send(3, 1)
    wait_for_packets(terminal, 1)
    terminal.ask("withdraw ring 7")
    hosts.send(3, 2)
    wait_for_packets(terminal, 3)
    terminal.quit()
    found = [(packet.interface, packet.comment.partition(" (")[0]) for packet in packets_of(lab, file)]
    expect(found == [("p3", f"held in {held_text(3, 1)}"), ("switch", "dropped: ring_withdrawn in aggregate"),
                     ("p3", "dropped: dead_connection in classify")], f"{found}")


@smoke_test("capture-errors")
def errors(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    file = lab.directory / "one.pcapng"
    there = lab.file("there.pcapng", "")
    hosts.say_hello()
    expect(terminal.ask("capture stop") == "no capture runs\n", "`capture stop` without one")
    for wrong, right in (
            (f"capture ring 8 {file}", "ring: found '8'; allowed: 7"),
            (f"capture port p9 {file}", "port: found 'p9'; allowed: all, p0, p1, p2, p3"),
            (f"capture conn 1 {file}", "conn: found '1'; allowed: pair and queue pair of a row of `show conn all`"),
            (f"capture conn 1:999 {file}", "conn: found '1:999'; allowed: "),
            (f"capture ring 7 {there}", f"file: found '{there}', which exists; allowed: a new file"),
            (f"capture ring 7 {lab.directory}/no/such", "cannot be made: No such file or directory"),
            (f"capture ring 7 {file} 0", "count: found '0'; allowed: 1 .. 1000000"),
            (f"capture ring 7 {file} many", "count: found 'many'; allowed: 1 .. 1000000"),
            (f"capture ring 7 {file} 1000001", "count: found '1000001'; allowed: 1 .. 1000000"),
            (f"capture ring 7 {file} 5 6", "found '6'; allowed: the end of the line"),
            ("capture ring 7", "more is needed: <file>"),
            ("capture", "more is needed: conn, port, ring, stop")):
        answer = terminal.ask(wrong)
        expect(right in answer, f"`{wrong}` gets {answer!r}, not {right!r}")
    expect(not file.exists(), "a command that was refused has made its file")
    terminal.ask(f"capture ring 7 {file}")
    second = terminal.ask(f"capture port all {lab.directory}/two.pcapng")
    expect(f"capture: ring 7 is being written to {file}; allowed: one capture at a time" in second, second)
    expect(not (lab.directory / "two.pcapng").exists(), "the refused capture has made its file")
    terminal.quit()
    expect(packets_of(lab, file) == [], "the capture of nothing has packets")
