# SPDX-License-Identifier: BSD-3-Clause
"""Ports on interfaces of the kernel, when these go down, are renamed, deleted, and made again."""
from __future__ import annotations

import re
import socket
import struct
import time

from hosts import ETH_P_ALL, SOL_PACKET, Hosts, raw_link, ring_of_hosts
from lab import Lab, smoke_test
from netns import Namespace, veth
from test_links import need_af_xdp
from test_reload import one_message
from weir import ROOT, WEIR, Weir, configuration, expect, run_to_end, wait_for

LOOK_S = 1
PACKET_FANOUT, PACKET_FANOUT_HASH = 18, 0  # linux/if_packet.h
PACKET_FANOUT_FLAG_ROLLOVER, PACKET_FANOUT_FLAG_DEFRAG = 0x1000, 0x8000
IN_TIME_S = 5 * LOOK_S  # on a busy machine
VETH = "up 10000 Mbit/s"


def link_of(switch: Weir, port: str) -> str:
    return str(switch.ask(f"/weir/port/info,{port}")["port_info"]["0"]["link"])


def links_told(switch: Weir) -> list[str]:
    """What the log has said of links, oldest first."""
    return re.findall(r"^weir: (port \w+: its link is .*?) \[port_(?:up|down) ", switch.output(), re.MULTILINE)


def becomes(switch: Weir, port: str, link: str, told: str = "") -> None:
    """Its link is that, which the log has as its last line about a link."""
    wait_for(lambda: link_of(switch, port) == link, IN_TIME_S, f"port {port}'s link is {link_of(switch, port)!r}, not {link!r}")
    line = f"port {port}: its link is {link}{told}"
    wait_for(lambda: links_told(switch)[-1:] == [line], IN_TIME_S, f"the log has {links_told(switch)}, not {line!r} as the last")


def made_again(fabric: Namespace, hosts: Hosts, index: str = "") -> None:
    fabric.ip(f"link add tap3 {index} type veth peer name host3 netns {hosts.namespace.path}")
    for namespace, interface in ((fabric, "tap3"), (hosts.namespace, "host3")):
        namespace.no_offloads(interface)
        namespace.ip(f"link set {interface} up")
    hosts.replace_link(3, raw_link(hosts.namespace, "host3"))


@smoke_test("interface-gone")
def gone(lab: Lab) -> None:
    """The log and `show port info` tell of it in time; a port whose interface is made again works again, and the job behind
    it goes on."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, ROOT / "config/af_packet.yaml")
    hosts.say_hello()
    one_message(hosts, 1)
    expect(link_of(switch, "p3") == VETH and links_told(switch) == [], f"{links_told(switch)}")
    for namespace, interface in ((fabric, "tap3"), (hosts.namespace, "host3")):  # itself, and its carrier
        namespace.ip(f"link set {interface} down")
        becomes(switch, "p3", "down")
        namespace.ip(f"link set {interface} up")
        becomes(switch, "p3", VETH)
    hosts.replace_link(3, raw_link(hosts.namespace, "host3"))
    passes_again(switch, hosts, 0, 3)
    one_message(hosts, 2)
    for old, new, link in (("tap3", "other", f"{VETH} (the interface is other now)"), ("other", "tap3", VETH)):
        fabric.ip(f"link set {old} down")
        fabric.ip(f"link set {old} name {new}")
        fabric.ip(f"link set {new} up")
        becomes(switch, "p3", link)
        passes_again(switch, hosts, 0, 3)
        one_message(hosts, 3 if new == "other" else 4)
    fabric.ip("link del tap3")
    becomes(switch, "p3", "gone", "; the switch opens the port again when there is an interface tap3")
    time.sleep(2 * LOOK_S)
    expect(len([line for line in links_told(switch) if " gone" in line]) == 1, f"told again and again: {links_told(switch)}")
    made_again(fabric, hosts)
    becomes(switch, "p3", VETH)
    one_message(hosts, 5)
    index = re.match(r"(\d+): tap3", run_ip(fabric, "-o link show tap3"))
    expect(index, "no index of tap3")
    assert index
    fabric.ip("link del tap3")
    made_again(fabric, hosts, f"index {index[1]}")  # between two looks, perhaps
    passes_again(switch, hosts, 3, 0)
    one_message(hosts, 6)
    totals = switch.stop()
    expect(set(totals.drops) <= {"port_closed"}, f"{totals}")


def run_ip(space: Namespace, arguments: str) -> str:
    return run_to_end(["ip", *arguments.split()], namespace=space).output


def passes_again(switch: Weir, hosts: Hosts, sender: int, receiver: int) -> None:
    """Broadcasts of one host come to the other. The first burst after an interface was down leaves with the second: DPDK 22.11's
    driver takes the kernel's word about the past for one about that burst."""
    call = b"\xff" * 6 + bytes.fromhex(f"02000000000{sender + 1}") + b"\x88\xb5" + bytes(46)

    def comes() -> bool:
        hosts.send_raw(sender, call)
        return (receiver, call) in hosts.received(0.2)
    wait_for(comes, 2 * IN_TIME_S, f"nothing passes: {link_of(switch, 'p3')}, {links_told(switch)}")
    while hosts.received(0.3):
        pass


@smoke_test("interface-gone-pcap")
def gone_pcap(lab: Lab) -> None:
    """The same for net_pcap. A speed that the interface does not tell is unknown."""
    fabric, hosts = ring_of_hosts(lab)
    ports = [f'name: p{rank}, device: "net_pcap{rank},iface=tap{rank}"' for rank in range(2)]
    switch = lab.ready_weir(fabric, configuration([*ports, 'name: slow, device: "net_af_packet9,iface=lo"']))
    expect(link_of(switch, "p1") == VETH and link_of(switch, "slow") == "up, speed unknown", "links")
    fabric.ip("link del tap1")
    becomes(switch, "p1", "gone", "; the switch opens the port again when there is an interface tap1")
    veth(fabric, "tap1", hosts.namespace, "host1")
    becomes(switch, "p1", VETH)
    switch.stop()


@smoke_test("interface-gone-af_xdp")
def gone_af_xdp(lab: Lab) -> None:
    """Its driver keeps buffers of each port that it closes, so the log says what is left to do."""
    need_af_xdp()
    fabric, _ = ring_of_hosts(lab, "veth")
    switch = lab.ready_weir(fabric, ROOT / "config/af_xdp.yaml")
    fabric.ip("link del veth3")
    becomes(switch, "p3", "gone", "; it takes a restart of the switch")


@smoke_test("interface-missing")
def missing(lab: Lab) -> None:
    """Who starts the switch with the name of no interface reads which there are."""
    fabric, _ = ring_of_hosts(lab)
    for device in ("net_af_packet0,iface=tap9", "net_af_xdp0,iface=tap9", "net_pcap0,iface=tap9"):
        config = lab.file("missing.yaml", configuration([f'name: p0, device: "{device}"']))
        ended = run_to_end([WEIR, "--config", config], namespace=fabric)
        expect(ended.status == 1 and f"weir: port p0: device {device}: found no interface tap9; allowed: lo, tap0, tap1, tap2, "
               "tap3\n" in ended.errors, f"{device}: {ended}")


def in_fanout_group(namespace: Namespace, interface: str, number: int) -> socket.socket:
    """A packet socket in the group that DPDK's af_packet would take for this number."""
    how = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER | PACKET_FANOUT_FLAG_DEFRAG
    with namespace.entered():
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.bind((interface, ETH_P_ALL))
    link.setsockopt(SOL_PACKET, PACKET_FANOUT, struct.pack("=I", number | how << 16))
    return link


@smoke_test("interface-fanout-taken")
def fanout_taken(lab: Lab) -> None:
    """DPDK makes the group's number of the process's and the interface's, so two processes may come to the same one."""
    fabric, hosts = lab.namespace(), lab.namespace()
    for number in range(2):
        veth(fabric, f"port{number}", hosts, f"host{number}")
    with fabric.entered():
        index = socket.if_nametoindex("port0")
    config = configuration(['name: p0, device: "net_af_packet0,iface=port0"'])
    switch = lab.weir(fabric, config, "--no-interactive")
    number = (switch.process.pid ^ index) & 0xffff
    with in_fanout_group(fabric, "port1", number):
        ended = switch.refusal()
    expect(ended.status == 1 and "port p0: device net_af_packet0,iface=port0: another process of this network namespace has the "
           f"packet fanout group {number}, which DPDK makes of " in ended.output and "start the switch again" in ended.output, f"{ended}")
    lab.ready_weir(fabric, config).stop()
