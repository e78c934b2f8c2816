# SPDX-License-Identifier: BSD-3-Clause
"""A plain switch: two hosts, af_packet and tap ports, VLAN tags, jumbo frames."""
from __future__ import annotations

import contextlib

from lab import Lab, smoke_test
from netns import Namespace, veth
from traffic import move_file, ping
from vlan import FrameSocket, VlanInterface
from weir import ROOT, Failed, Weir, configuration, expect, wait_for

JUMBO = 9000
# The driver assumes slots without gaps, and the kernel uses blocks of whole pages, so slots must fill blocks. 84 bytes of
# a slot are not the IP packet: 66 before the frame, 14 + 4 of Ethernet and VLAN headers.
JUMBO_SLOTS = "blocksz=36864,framesz=9216,framecnt=512"


def join(host: Namespace, interface: str, address: str, mtu: int = 1500) -> None:
    host.ip(f"link set {interface} mtu {mtu} up")
    host.ip(f"addr add {address}/24 dev {interface}")


def two_hosts_on_veth(lab: Lab, mtu: int = 1500) -> tuple[Namespace, list[Namespace]]:
    fabric = lab.namespace()
    hosts = [lab.namespace(), lab.namespace()]
    for number, host in enumerate(hosts):
        veth(fabric, f"port{number}", host, "eth0", mtu)
        join(host, "eth0", f"10.0.0.{number + 1}", mtu)
    return fabric, hosts


def veth_ports(mtu: int = 1500, more: str = "", keys: str = "") -> str:
    return configuration([f'name: p{number}, device: "net_af_packet{number},iface=port{number}{more}", mtu: {mtu}{keys}'
                          for number in range(2)])


def tap_hosts(lab: Lab, config: str, mtu: int = 1500) -> tuple[Weir, list[Namespace]]:
    """weir makes its taps in its own namespace; then they are moved to the hosts."""
    fabric = lab.namespace()
    switch = lab.ready_weir(fabric, config)
    hosts = [lab.namespace(), lab.namespace()]
    for number, host in enumerate(hosts):
        fabric.ip(f"link set weir{number} netns {host.path}")
        host.no_offloads(f"weir{number}")
        join(host, f"weir{number}", f"10.0.0.{number + 1}", mtu)
    return switch, hosts


def both_ways(hosts: list[Namespace], network: str, largest: int) -> None:
    """`largest`: bytes of an IP packet."""
    ping(hosts[0], f"{network}.2")
    ping(hosts[1], f"{network}.1", largest - 28)
    move_file(hosts[0], hosts[1], f"{network}.2")
    move_file(hosts[1], hosts[0], f"{network}.1", size=1_000_000)


def tag(lab: Lab, hosts: list[Namespace], parent: str, number: int) -> None:
    for index, host in enumerate(hosts):
        tagged = VlanInterface(host, parent.format(index), number)
        lab.on_end(tagged.close)
        join(host, "tagged", f"10.0.1.{index + 1}")


def check_totals(switch: Weir) -> None:
    totals = switch.stop()
    expect(totals.accounting["forwarded"] > 10_000, f"only {totals.accounting} for a file of 20 MB")
    unexpected = set(totals.drops) - {"no_egress", "same_port", "link_local"}
    expect(not unexpected, f"dropped: {totals.drops}")


@smoke_test("forward-af_packet")
def af_packet(lab: Lab) -> None:
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, veth_ports())
    both_ways(hosts, "10.0.0", 1500)
    check_totals(switch)


@smoke_test("forward-af_packet-vlan")
def af_packet_vlan(lab: Lab) -> None:
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, veth_ports())
    tag(lab, hosts, "eth0", 42)
    both_ways(hosts, "10.0.1", 1500)
    ping(hosts[0], "10.0.0.2", 1472)
    check_totals(switch)


@smoke_test("forward-af_packet-jumbo")
def af_packet_jumbo(lab: Lab) -> None:
    fabric, hosts = two_hosts_on_veth(lab, JUMBO)
    switch = lab.ready_weir(fabric, veth_ports(JUMBO, "," + JUMBO_SLOTS))
    ping(hosts[0], "10.0.0.2", JUMBO - 28)
    move_file(hosts[0], hosts[1], "10.0.0.2")
    totals = switch.stop()
    expect(totals.accounting["forwarded"] > 2000 and not totals.drops, f"{totals}")


@smoke_test("forward-tap")
def tap(lab: Lab) -> None:
    switch, hosts = tap_hosts(lab, (ROOT / "config/tap.yaml").read_text())
    both_ways(hosts, "10.0.0", 1500)
    check_totals(switch)


@smoke_test("forward-tap-vlan")
def tap_vlan(lab: Lab) -> None:
    switch, hosts = tap_hosts(lab, (ROOT / "config/tap.yaml").read_text())
    tag(lab, hosts, "weir{}", 7)
    both_ways(hosts, "10.0.1", 1500)
    check_totals(switch)


@smoke_test("forward-tap-jumbo-refused")
def tap_jumbo(lab: Lab) -> None:
    """DPDK's tap driver takes no longer frames. A port with a wrong MTU would block on the first one."""
    config = configuration(['name: weir0, device: "net_tap0,iface=weir0", mtu: 9000'])
    ended = lab.weir(lab.namespace(), config, "--no-interactive").refusal()
    expect(ended.status == 1 and "port weir0: mtu: found 9000; allowed for net_tap: up to 1500" in ended.output,
           f"{ended}")


UNTAGGED = [""]
CUSTOMER_TAGS = ["8100002a", "8100e000", "81003fff"]
STACKED_CUSTOMER_TAGS = ["8100000181000002", "81000001810000028100fffe"]
SERVICE_TAGS = ["88a80064", "88a8e000", "88a83fff"]
STACKED_SERVICE_TAGS = ["88a8006481000002", "88a8006488a80002", "88a80001810000028100fffe"]


def tagged_frames(destination: bytes, source: bytes, tags: list[str]) -> list[bytes]:
    """Frames with tags before an unknown protocol, short and long."""
    start = destination + source
    frames = [start + bytes.fromhex(tag) + b"\x88\xb5" + bytes([number]) * length
              for length in (46, 200, 1488) for number, tag in enumerate(tags)]
    single = next(tag for tag in tags if len(tag) == 8)
    longest = 1500 if single.startswith("8100") else 1496  # the sender's kernel allows only an 802.1Q tag above its MTU
    return [*frames, start + bytes.fromhex(single) + b"\x88\xb5" + bytes(longest)]


def same_bytes_come(lab: Lab, hosts: list[Namespace], interface: str, tags: list[str]) -> None:
    links = [FrameSocket(host, interface.format(number)) for number, host in enumerate(hosts)]
    for link in links:
        lab.on_end(link.close)
    macs = [bytes.fromhex("5254000000aa"), bytes.fromhex("5254000000bb")]
    for sender, receiver in ((0, 1), (1, 0)):
        sent = tagged_frames(macs[receiver], macs[sender], tags)
        for frame in sent:
            links[sender].send(frame)
        expect(links[receiver].receive_all(len(sent), 5) == sent, f"tagged frames from {sender} changed on their way")


@smoke_test("tags-af_packet")
def tags_af_packet(lab: Lab) -> None:
    """Without 802.1ad tags: DPDK's driver does not report the protocol of a tag that AF_PACKET took off."""
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, veth_ports())
    same_bytes_come(lab, hosts, "eth0", UNTAGGED + CUSTOMER_TAGS + STACKED_CUSTOMER_TAGS)
    switch.stop()


@smoke_test("tags-af_packet-802.1ad")
def service_tags_af_packet(lab: Lab) -> None:
    """The configuration gives the tag's protocol, which the driver does not report, also for a single tag."""
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, veth_ports(keys=", outer_tag: 802.1ad"))
    same_bytes_come(lab, hosts, "eth0", UNTAGGED + SERVICE_TAGS + STACKED_SERVICE_TAGS)
    switch.stop()


@smoke_test("tags-tap")
def tags_tap(lab: Lab) -> None:
    switch, hosts = tap_hosts(lab, (ROOT / "config/tap.yaml").read_text())
    same_bytes_come(lab, hosts, "weir{}",
                    UNTAGGED + CUSTOMER_TAGS + STACKED_CUSTOMER_TAGS + SERVICE_TAGS + STACKED_SERVICE_TAGS)
    switch.stop()


@smoke_test("too-long")
def too_long(lab: Lab) -> None:
    """A frame that is too long for the egress port's MTU is dropped under its reason; shorter ones pass."""
    fabric = lab.namespace()
    hosts = [lab.namespace(), lab.namespace()]
    for number, (host, mtu) in enumerate(zip(hosts, (JUMBO, 1500), strict=True)):
        veth(fabric, f"port{number}", host, "eth0", mtu)
        join(host, "eth0", f"10.0.0.{number + 1}", mtu)
    switch = lab.ready_weir(fabric, configuration([
        f'name: p0, device: "net_af_packet0,iface=port0,{JUMBO_SLOTS}", mtu: {JUMBO}',
        'name: p1, device: "net_af_packet1,iface=port1", mtu: 1500']))
    ping(hosts[0], "10.0.0.2", 1472)
    with contextlib.suppress(Failed):
        ping(hosts[0], "10.0.0.2", 4000, seconds=0.5)
    wait_for(lambda: "too_long" in str(switch.ask("/weir/drops")), 5, "the long frame was not dropped as too_long")
    ping(hosts[0], "10.0.0.2", 1472)
    totals = switch.stop()
    expect(set(totals.drops) == {"too_long"}, f"{totals}")
