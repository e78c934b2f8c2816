# SPDX-License-Identifier: BSD-3-Clause
"""/weir/... on DPDK's telemetry socket: JSON, the same as the prompt's, and errors instead of crashes."""
from __future__ import annotations

import json
from typing import Any

from hosts import Job, ring_of_hosts
from lab import Lab, smoke_test
from terminal import Terminal
from weir import ROOT, expect, wait_for

# Of the prompt, and where telemetry has the same.
SAME = {"show port info all": "/weir/port/info", "show port stats all": "/weir/port/stats",
        "show port stats p2": "/weir/port/stats,p2", "show port xstats all": "/weir/port/xstats",
        "show ring all": "/weir/ring", "show ring 7": "/weir/ring,7", "show ring 7 stuck": "/weir/ring/stuck,7",
        "show conn all": "/weir/conn", "show drops": "/weir/drops", "show accounting": "/weir/accounting",
        "show fdb": "/weir/fdb", "show lcores": "/weir/lcores", "show memory": "/weir/memory"}
# What goes on while nothing happens, and numbers that telemetry gives as text.
MOVING = {"rounds", "busy_percent", "age_s", "idle_ms", "waiting_ms", "pool_mib", "ring_mib"}
MOVING_TABLES = {"stood_still"}  # every question adds to it
WRONG = {"/weir/ring,8": "allowed: 7", "/weir/ring,x": "allowed: 7", "/weir/ring/stuck": "allowed: 7",
         "/weir/ring/stuck,99999999999": "allowed: 7", "/weir/port/stats,eth9": "allowed: all, p0",
         "/weir/port/info,": "", "/weir/ring,7,7": "allowed: 7"}


def still(tables: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows without what moves; telemetry's numbered rows become a list."""
    plain = {}
    for name, table in tables.items():
        if name in MOVING_TABLES:
            continue
        rows = [table[str(index)] for index in range(len(table))] if isinstance(table, dict) else table
        plain[name] = [{key: cell for key, cell in row.items() if key not in MOVING} for row in rows]
    return plain


@smoke_test("telemetry")
def telemetry(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, ROOT / "config/af_packet.yaml")
    switch = terminal.switch
    hosts.say_hello()
    Job(hosts, last=2).run()
    hosts.send(0, 33)
    hosts.send(0, 33)
    hosts.send(2, 33)  # something stuck, and something dropped
    wait_for(lambda: held_and_dropped(terminal) == (2, 1), 5, "the last frames were not received")
    known = json.loads(switch.ask_raw("/"))["/"]
    paths = [path for path in known if path.startswith("/weir/")]
    expect(set(paths) == {path.partition(",")[0] for path in SAME.values()}, f"paths: {paths}")
    for command, path in SAME.items():
        by_prompt = still(json.loads(terminal.ask(f"{command} json")))
        by_socket = still(switch.ask(path))
        expect(by_prompt == by_socket, f"{path}: {by_socket}\nthe prompt: {by_prompt}")
    for path in paths:
        help_answer = json.loads(switch.ask_raw(f"/help,{path}"))["/help"]
        expect(help_answer[path], f"no help for {path}")
    for request, right in WRONG.items():
        answer = switch.ask(request)
        expect(right in answer.get("error", ""), f"{request}: {answer}")
    expect("/ethdev/list" in known, "DPDK's own telemetry is not there")
    terminal.press("quit\n")
    expect(terminal.end().status == 0, "quit")


@smoke_test("telemetry-many-rows")
def many_rows(lab: Lab) -> None:
    """More rows than DPDK's dictionaries and answers take: cut short, but JSON. The prompt shows all."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, ROOT / "config/af_packet.yaml")
    stations = 700
    for number in range(stations):
        source = b"\x02" + number.to_bytes(5, "big")
        hosts.send_raw(number % 4, source + source + b"\x88\xb5" + bytes(46))
        if number % 100 == 99:
            wait_for(lambda: switch_received(terminal) == number + 1, 5, "not every frame was received")
    by_prompt = json.loads(terminal.ask("show fdb json"))["fdb"]
    expect(len(by_prompt) == stations, f"{len(by_prompt)} stations, not {stations}")
    by_socket = terminal.switch.ask("/weir/fdb")["fdb"]
    known = {(row["mac"], row["port"]) for row in by_prompt}
    expect(len(by_socket) >= 100 and {(row["mac"], row["port"]) for row in by_socket.values()} <= known,
           f"{len(by_socket)} rows by telemetry")
    terminal.press("quit\n")
    expect(terminal.end().status == 0, "quit")


def accounting(terminal: Terminal) -> dict[str, Any]:
    return dict(terminal.switch.ask("/weir/accounting")["accounting"]["0"])


def switch_received(terminal: Terminal) -> int:
    return int(accounting(terminal)["received"])


def held_and_dropped(terminal: Terminal) -> tuple[int, int]:
    row = accounting(terminal)
    return int(row["held"]), int(row["dropped"])
