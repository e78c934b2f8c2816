# SPDX-License-Identifier: BSD-3-Clause
"""Every file of config/ works: those that need no NIC start, the others are read without error."""
from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from hosts import RANKS, acknowledgements, captured_incarnation, frame_of, model, ring_of_hosts
from lab import Lab, smoke_test
from weir import BUILD, NO_HUGEPAGES, QUIET_PORT, REPLAY, ROOT, WEIR, configuration, expect, run_to_end, wait_for

CONFIG = ROOT / "config"
STARTED = {"af_packet.yaml", "af_xdp.yaml", "tap.yaml", "pcap.yaml", "demo.yaml", "vhost.yaml"}


@smoke_test("config-af_packet")
def af_packet(lab: Lab) -> None:
    fabric, _ = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, CONFIG / "af_packet.yaml")
    ports = switch.ask("/weir/port/info")["port_info"].values()
    expect([(port["driver"], port["promiscuous"], port["link"][:2]) for port in ports]
           == [("net_af_packet", "on", "up")] * RANKS, f"{list(ports)}")
    switch.stop()


@smoke_test("config-vhost")
def vhost(lab: Lab) -> None:
    """The sockets' folder is the service's in the file, and the test's here."""
    text = (CONFIG / "vhost.yaml").read_text().replace("iface=/tmp/weir-vhost/", f"iface={lab.directory}/")
    switch = lab.ready_weir(lab.namespace(), text)
    ports = switch.ask("/weir/port/info")["port_info"].values()
    expect([(port["driver"], port["link"]) for port in ports] == [("net_vhost", "down")] * RANKS, f"{list(ports)}")
    sockets = [lab.directory / f"vhost{rank}.sock" for rank in range(RANKS)]
    expect(all(file.is_socket() for file in sockets), f"{[*lab.directory.iterdir()]}")
    switch.stop()
    expect(not any(file.exists() for file in sockets), "sockets are left behind")


@smoke_test("config-tap")
def tap(lab: Lab) -> None:
    fabric = lab.namespace()
    switch = lab.ready_weir(fabric, CONFIG / "tap.yaml")
    expect(fabric.interfaces() == ["lo", "weir0", "weir1"], f"{fabric.interfaces()}")
    switch.stop()
    expect(fabric.interfaces() == ["lo"], f"taps are left behind: {fabric.interfaces()}")


def switched_captures(lab: Lab, trailer: bytes) -> tuple[list[bytes], list[list[bytes]]]:
    """One capture per port as input: a hello, and acknowledgements. `trailer` stands behind each frame. Returns all
    acknowledgements and what leaves by each port. A switch that drops anything fails."""
    inputs = [[frame_of(rank, 0, captured_incarnation()), *(frame for sender, frame in acknowledgements() if sender == rank)]
              for rank in range(RANKS)]
    for rank, own in enumerate(inputs):
        (lab.directory / f"in{rank}.pcap").write_bytes(model.pcap_bytes([frame + trailer for frame in own]))
    switch = lab.weir(lab.namespace(), CONFIG / "pcap.yaml", "--no-interactive", directory=lab.directory)
    switch.wait_ready()
    wait_for(lambda: switch.ask("/weir/accounting")["accounting"]["0"]["received"] == sum(map(len, inputs)), 10,
             "not every frame of the captures was received")
    totals = switch.stop()
    expect(totals.accounting["consumed"] == RANKS and not totals.drops, f"{totals}")
    passed = totals.accounting["forwarded"]
    expect(passed == len(acknowledgements()), f"{passed} of {len(acknowledgements())} acknowledgements were forwarded")
    return [frame for own in inputs for frame in own[1:]], \
        [model.read_pcap(lab.directory / f"out{rank}.pcap") for rank in range(RANKS)]


def is_hellos_result(frame: bytes, rank: int) -> bool:
    roce = model.parse_roce(frame)
    ina = roce.ina() if roce is not None and roce.starts_message else None
    return ina is not None and (ina.rank, ina.flags) == (rank, 1)


@smoke_test("config-pcap")
def pcap(lab: Lab) -> None:
    """Each port sends the hellos' results, and acknowledgements unchanged."""
    _, outputs = switched_captures(lab, b"")
    for rank in range(RANKS):
        results = [frame for frame in outputs[(rank + 1) % RANKS] if is_hellos_result(frame, rank)]
        expect(len(results) == 1, f"what leaves for rank {rank}'s successor: {results}")


@smoke_test("trailers-on-wires")
def trailers(lab: Lab) -> None:
    """Results leave without what lies behind their ICRC; what is forwarded leaves with it."""
    trailer = b"\x5a\xa5\x00\xff"
    inputs, outputs = switched_captures(lab, trailer)
    left = [frame for frames in outputs for frame in frames]
    results = [frame for rank in range(RANKS) for frame in left if is_hellos_result(frame, rank)]
    expect(len(results) == RANKS and all(model.without_trailer(frame) == frame for frame in results), f"{results}")
    expect(sorted(frame for frame in left if frame not in results) == sorted(frame + trailer for frame in inputs),
           "what is forwarded is not what came")


@smoke_test("config-demo")
def demo(lab: Lab) -> None:
    switch = lab.ready_weir(lab.namespace(), CONFIG / "demo.yaml")
    server = Path(f"/proc/{switch.process.pid}/root/tmp/weir-demo/memif.sock")
    expect(server.exists() and stat.S_ISSOCK(server.stat().st_mode), f"no memif server at {server}")
    expect([row["driver"] for row in switch.ask("/weir/port/info")["port_info"].values()] == ["net_memif"] * 4, "ports")
    switch.stop()
    example = re.search(r"--device net_memif0,role=client,(\S+)$", run_to_end([BUILD / "app/weir-worker", "--help"]).output, re.MULTILINE)
    expect(example is not None and example[1] in (CONFIG / "demo.yaml").read_text(), f"the worker's example: {example}")


@smoke_test("config-lab")
def others_parse(lab: Lab) -> None:
    """There is no NIC here: weir-replay reads the same file with the same code, and touches no port."""
    nothing = lab.directory / "nothing.pcap"
    nothing.write_bytes(model.pcap_bytes([]))
    others = sorted(file for file in CONFIG.glob("*.yaml") if file.name not in STARTED)
    expect(len(others) >= 2, f"config/lab-*.yaml: {others}")
    for file in others:
        ended = run_to_end([REPLAY, "--config", file, "--in", nothing, "--out", lab.directory / "out.pcap"])
        expect(ended.status == 0 and not ended.errors, f"{file.name}: {ended}")


@smoke_test("lcores-auto")
def lcores_by_the_switch(lab: Lab) -> None:
    """The switch takes CPUs that it may use, says the same of them in a dry run and when it starts, and forwards with them."""
    ports = "".join(f'  - {{ name: p{port}, device: "net_null{port},no-rx=1" }}\n' for port in range(2))
    file = lab.file("weir.yaml", f"eal: {{ options: {NO_HUGEPAGES} }}\nports:\n{ports}lcores: auto\n")
    cpus = sorted(os.sched_getaffinity(0))
    for allowed in ([cpus[-1]], cpus):
        os.sched_setaffinity(0, allowed)
        lab.on_end(lambda: os.sched_setaffinity(0, cpus))
        dry = run_to_end([WEIR, "--config", file, "--dry-run"])
        told = re.findall(r"^lcores: auto: .*$", dry.output, re.MULTILINE)
        expect(dry.status == 0 and told, f"{dry}")
        roles = re.search(r"control on CPU (\d+); rx, worker and tx on CPU (\d+)$", told[0])
        expect(roles is not None and {int(cpu) for cpu in roles.groups()} <= set(allowed), f"of {allowed}: {told}")
        expect((roles[1] == roles[2]) == (len(allowed) == 1), f"of {allowed}: {told}")
        switch = lab.ready_weir(lab.namespace(), file)
        expect(all(f"weir: {line}\n" in switch.output() for line in told), f"{told}: {switch.output()}")
        switch.stop()
    os.sched_setaffinity(0, cpus)


@smoke_test("lcores-that-lose")
def split_lcores(lab: Lab) -> None:
    """Roles by hand that hand over each frame are warned of."""
    cpus = sorted(os.sched_getaffinity(0))
    split = f"  - {{ id: {cpus[0]}, roles: [rx, tx] }}\n  - {{ id: {cpus[-1]}, roles: [worker] }}\n"
    dry = run_to_end([WEIR, "--config", lab.file("weir.yaml", configuration([QUIET_PORT], split)), "--dry-run"])
    expect(dry.status == 0 and "warning: lcores: no lcore that receives works too" in dry.output, f"{dry}")


# A file with an unknown key in the map at this place, whose keys the error then names.
UNKNOWN = "{ unknown: 1 }"
MAPS = {
    "": UNKNOWN,
    "eal.": f"eal: {UNKNOWN}",
    "ports[].": f"ports: [{UNKNOWN}]",
    "lcores[].": f"ports: [PORT]\nlcores: [{UNKNOWN}]",
    "l2.": f"ports: [PORT]\nl2: {UNKNOWN}",
    "connections.": f"ports: [PORT]\nconnections: {UNKNOWN}",
    "metrics.": f"ports: [PORT]\nmetrics: {UNKNOWN}",
    "control.": f"ports: [PORT]\ncontrol: {UNKNOWN}",
    "control.tls.": f"ports: [PORT]\ncontrol: {{ listen: ['127.0.0.1:1'], tls: {UNKNOWN} }}",
    "tenants[].": f"ports: [PORT]\ntenants: [{UNKNOWN}]",
    "operators[].": f"ports: [PORT]\noperators: [{UNKNOWN}]",
    "regions.": f"ports: [PORT]\nregions: {UNKNOWN}",
    "regions.rooms.": f"ports: [PORT]\nregions: {{ address: 10.0.0.3, mac: '02:57:45:00:00:01', rooms: {UNKNOWN} }}",
    "spare.": f"ports: [PORT]\nspare: {UNKNOWN}",
    "stations[].": f"ports: [PORT]\nstations: [{UNKNOWN}]",
    "rings[].": f"ports: [PORT]\nrings: [{UNKNOWN}]",
    "rings[].members[].": "ports: [PORT]\nrings: [{ id: 1, window: 1, max_message_bytes: 40, members: "
                          f"[{UNKNOWN}, {UNKNOWN}] }}]",
    "rings[].parent.": f"ports: [PORT]\nrings: [{{ id: 1, window: 1, max_message_bytes: 40, members: MEMBERS, "
                        f"parent: {UNKNOWN} }}]",
    "rings[].children[].": "ports: [PORT]\nrings: [{ id: 1, window: 1, max_message_bytes: 40, members: MEMBERS, "
                           f"children: [{UNKNOWN}] }}]",
}
MEMBERS = "[{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }]"
PORT = "{ name: p0, device: net_null0 }"


def keys_that_are_read(lab: Lab) -> set[str]:
    """As the switch lists them itself, map by map."""
    keys = set()
    for place, text in MAPS.items():
        ended = run_to_end([WEIR, "--config", lab.file("unknown.yaml", text.replace("PORT", PORT).replace("MEMBERS", MEMBERS))])
        listed = re.search(r"unknown: found an unknown key; allowed: ([\w, ]+)", ended.errors)
        expect(listed, f"{place}: {ended}")
        keys |= {place + name for name in listed[1].split(", ")}
    return keys


@smoke_test("config-manual")
def manual(lab: Lab) -> None:
    """weir.yaml(5) has each key that the switch reads, and no other. A map's own name is there as that of its keys."""
    page = (BUILD / "app/man/weir.yaml.5").read_text()
    explained = {name.replace("\\-", "-") for name in re.findall(r"^\.TP\n\\fB(\S+)\\fR$", page, re.MULTILINE)}
    read = keys_that_are_read(lab)
    maps = {key for key in read if f"{key}." in MAPS}
    expect(len(explained) > 20 and explained == read - maps,
           f"not on the page: {sorted(read - maps - explained)}; not read: {sorted(explained - read)}")
