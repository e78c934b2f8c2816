# SPDX-License-Identifier: BSD-3-Clause
"""Links without a NIC's driver other than AF_PACKET and taps: AF_XDP sockets on veth, vhost-user."""
from __future__ import annotations

import socket
from pathlib import Path

from hosts import RANKS, Job, contributions, ring_of_hosts, ring_row
from lab import Lab, smoke_test
from netns import run
from test_forwarding import (
    CUSTOMER_TAGS,
    SERVICE_TAGS,
    STACKED_CUSTOMER_TAGS,
    STACKED_SERVICE_TAGS,
    UNTAGGED,
    both_ways,
    same_bytes_come,
    tag,
    two_hosts_on_veth,
)
from test_worker import RENDEZVOUS, WORKER, Process
from weir import ROOT, Skipped, configuration, expect

AF_XDP = 44  # linux/socket.h
MOST_KEPT = 2 * 2048  # mbufs that net_af_xdp may keep of a port: its rings for receiving and for what it has sent
PLACES = len(contributions()[0])


def need_af_xdp() -> None:
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
    except OSError as error:
        raise Skipped(f"no AF_XDP: {error}") from None


def xdp_ports(mtu: int = 1500) -> str:
    return configuration([f'name: p{number}, device: "net_af_xdp{number},iface=port{number}", mtu: {mtu}'
                          for number in range(2)])


@smoke_test("config-af_xdp")
def aggregate_af_xdp(lab: Lab) -> None:
    """Every frame of a job comes, byte for byte and with its ICRC, and no other."""
    need_af_xdp()
    fabric, hosts = ring_of_hosts(lab, "veth")
    switch = lab.ready_weir(fabric, ROOT / "config/af_xdp.yaml")
    ports = switch.ask("/weir/port/info")["port_info"].values()
    expect([(port["driver"], port["promiscuous"]) for port in ports] == [("net_af_xdp", "on")] * RANKS, f"{list(ports)}")
    hosts.say_hello()
    seen = Job(hosts).run()
    expect(seen.results == (PLACES - 1) * RANKS, f"{seen}")
    hosts.pass_acknowledgements()
    expect(ring_row(switch)["results"] == PLACES * RANKS, f"{ring_row(switch)}")
    totals = switch.stop(most_kept=RANKS * MOST_KEPT)
    expect(totals.accounting["consumed"] == PLACES * RANKS and not totals.drops, f"{totals}")


@smoke_test("forward-af_xdp")
def forward_af_xdp(lab: Lab) -> None:
    need_af_xdp()
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, xdp_ports())
    both_ways(hosts, "10.0.0", 1500)
    with hosts[0].entered():  # in fragments, which nobody puts together on the way
        run("ping", "-c", "1", "-W", "10", "-s", "4000", "10.0.0.2")
    tag(lab, hosts, "eth0", 42)
    both_ways(hosts, "10.0.1", 1500)
    totals = switch.stop(most_kept=2 * MOST_KEPT)
    expect(totals.accounting["forwarded"] > 20_000, f"{totals}")
    expect(not set(totals.drops) - {"no_egress", "same_port", "link_local"}, f"{totals}")


@smoke_test("tags-af_xdp")
def tags_af_xdp(lab: Lab) -> None:
    """All tags: the kernel takes none off."""
    need_af_xdp()
    fabric, hosts = two_hosts_on_veth(lab)
    switch = lab.ready_weir(fabric, xdp_ports())
    same_bytes_come(lab, hosts, "eth0",
                    UNTAGGED + CUSTOMER_TAGS + STACKED_CUSTOMER_TAGS + SERVICE_TAGS + STACKED_SERVICE_TAGS)
    switch.stop(most_kept=2 * MOST_KEPT)


@smoke_test("forward-af_xdp-long")
def long_af_xdp(lab: Lab) -> None:
    """The longest MTU whose buffers fit into pages, and the next one.

    A buffer also has the Frame, so a change of its size may change this MTU. Three texts tell it."""
    need_af_xdp()
    longest = 3370
    for place in ("docs/laboratory.md", "docs/performance.md", "config/af_xdp.yaml"):
        expect(str(longest) in (ROOT / place).read_text(), f"{place} tells another longest MTU than {longest}")
    fabric, hosts = two_hosts_on_veth(lab, longest)
    switch = lab.ready_weir(fabric, xdp_ports(longest))
    both_ways(hosts, "10.0.0", longest)
    switch.stop(most_kept=2 * MOST_KEPT)
    ended = lab.weir(fabric, xdp_ports(longest + 1), "--no-interactive").refusal()
    expect(ended.status == 1 and "port p0: device net_af_xdp0,iface=port0: found buffers of " in ended.output
           and f"allowed with net_af_xdp: 4096, a page, which is enough for MTU {longest}\n" in ended.output, f"{ended}")


@smoke_test("af_xdp-refused")
def af_xdp_refused(lab: Lab) -> None:
    """A tap has no AF_XDP, and an interface has one program: the error says what is needed."""
    need_af_xdp()
    fabric, _ = two_hosts_on_veth(lab)
    fabric.ip("tuntap add port2 mode tap")
    first = lab.ready_weir(fabric, xdp_ports())
    for interface in ("port0", "port2"):
        other = configuration([f'name: p9, device: "net_af_xdp9,iface={interface}"'])
        ended = lab.weir(fabric, other, "--no-interactive").refusal()
        expect(ended.status == 1 and f"port p9: device net_af_xdp9,iface={interface} " in ended.output
               and "net_af_xdp needs CAP_NET_ADMIN, " in ended.output, f"{ended}")
    first.stop(most_kept=2 * MOST_KEPT)


def vhost_switch(folder: Path) -> str:
    ports = [f'name: p{rank}, device: "net_vhost{rank},iface={folder}/vhost{rank}.sock"' for rank in range(2)]
    members = "".join(f"      - {{ ip: 10.0.0.{rank + 1}, port: p{rank} }}\n" for rank in range(2))
    return configuration(ports, rings=f"  - id: 1\n    window: 8\n    max_message_bytes: 32768\n    members:\n{members}")


@smoke_test("worker-vhost")
def worker_vhost(lab: Lab) -> None:
    """Two ranks behind vhost-user, as DPDK programs and guests are: they compare every element of the result.

    On a busy machine they repeat what was not acknowledged in time, so repeats may be dropped."""
    outside = lab.namespace()
    switch = lab.ready_weir(lab.namespace(), vhost_switch(lab.directory))
    ranks = [Process(lab, outside, [WORKER, "--rank", str(rank), "--world", "2", "--rendezvous", RENDEZVOUS, "--ring", "1",
                                    "--ip", f"10.0.0.{rank + 1}", "--size", "4MiB", "--message-bytes", "32768", "--device",
                                    f"net_virtio_user0,path={lab.directory}/vhost{rank}.sock,queue_size=1024"],
                     RUNTIME_DIRECTORY=str(lab.directory)) for rank in range(2)]
    for rank, process in enumerate(ranks):
        status, output = process.wait()
        expect(status == 0, f"rank {rank}: {status}, {output}")
    totals = switch.stop()
    expect(totals.accounting["consumed"] > 2 * 4096, f"{totals}")
