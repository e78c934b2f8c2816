# SPDX-License-Identifier: BSD-3-Clause
"""Every file of config/ works: those that need no NIC start, the others are read without error."""
from __future__ import annotations

import stat
from pathlib import Path

from hosts import RANKS, acknowledgements, captured_incarnation, frame_of, model, ring_of_hosts
from lab import Lab, smoke_test
from weir import REPLAY, ROOT, expect, run_to_end, wait_for

CONFIG = ROOT / "config"
STARTED = {"af_packet.yaml", "tap.yaml", "pcap.yaml", "demo.yaml"}


@smoke_test("config-af_packet")
def af_packet(lab: Lab) -> None:
    fabric, _ = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, CONFIG / "af_packet.yaml")
    ports = switch.ask("/weir/port/info")["port_info"].values()
    expect([(port["driver"], port["promiscuous"], port["link"][:2]) for port in ports]
           == [("net_af_packet", "on", "up")] * RANKS, f"{list(ports)}")
    switch.stop()


@smoke_test("config-tap")
def tap(lab: Lab) -> None:
    fabric = lab.namespace()
    switch = lab.ready_weir(fabric, CONFIG / "tap.yaml")
    expect(fabric.interfaces() == ["lo", "weir0", "weir1"], f"{fabric.interfaces()}")
    switch.stop()
    expect(fabric.interfaces() == ["lo"], f"taps are left behind: {fabric.interfaces()}")


@smoke_test("config-pcap")
def pcap(lab: Lab) -> None:
    """One capture per port as input. Each port sends the hellos' results, and acknowledgements unchanged."""
    inputs = [[frame_of(rank, 0, captured_incarnation()), *(frame for sender, frame in acknowledgements() if sender == rank)]
              for rank in range(RANKS)]
    for rank, own in enumerate(inputs):
        (lab.directory / f"in{rank}.pcap").write_bytes(model.pcap_bytes(own))
    switch = lab.weir(lab.namespace(), CONFIG / "pcap.yaml", "--no-interactive", directory=lab.directory)
    switch.wait_ready()
    wait_for(lambda: switch.ask("/weir/accounting")["accounting"]["0"]["received"] == sum(map(len, inputs)), 10,
             "not every frame of the captures was received")
    totals = switch.stop()
    expect(totals.accounting["consumed"] == RANKS and not totals.drops, f"{totals}")
    for rank in range(RANKS):
        hellos = [roce.ina() for frame in model.read_pcap(lab.directory / f"out{(rank + 1) % RANKS}.pcap")
                  if (roce := model.parse_roce(frame)) and roce.starts_message]
        found = [(ina.rank, ina.flags) for ina in hellos if ina]
        expect(found == [(rank, 1)], f"what leaves for rank {rank}'s successor: {hellos}")
    passed = totals.accounting["forwarded"]
    expect(passed == len(acknowledgements()), f"{passed} of {len(acknowledgements())} acknowledgements were forwarded")


@smoke_test("config-demo")
def demo(lab: Lab) -> None:
    switch = lab.ready_weir(lab.namespace(), CONFIG / "demo.yaml")
    server = Path(f"/proc/{switch.process.pid}/root/tmp/weir-demo.sock")
    expect(server.exists() and stat.S_ISSOCK(server.stat().st_mode), f"no memif server at {server}")
    expect([row["driver"] for row in switch.ask("/weir/port/info")["port_info"].values()] == ["net_memif"] * 4, "ports")
    switch.stop()


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
