# SPDX-License-Identifier: BSD-3-Clause
"""/weir/... on DPDK's telemetry socket: JSON, the same as the prompt's, and errors instead of crashes."""
from __future__ import annotations

import json
from typing import Any

from hosts import Hosts, Job, ring_of_hosts
from lab import Lab, smoke_test
from terminal import Terminal, lines_of
from weir import ROOT, expect, wait_for

# The prompt's questions and telemetry's paths of the same answers.
PATHS = {"show port info <name|all>": "/weir/port/info", "show port stats <name|all>": "/weir/port/stats",
         "show port xstats <name|all>": "/weir/port/xstats",
         "show port steering <name|all>": "/weir/port/steering", "show port bridge <name|all>": "/weir/port/bridge",
         "show ring <id|all>": "/weir/ring",
         "show ring <id> stuck": "/weir/ring/stuck", "show hellos": "/weir/hellos", "show reclaimed": "/weir/reclaimed", "show tenants": "/weir/tenants", "show region <region|all>": "/weir/region",
         "show gate": "/weir/gate",
         "show conn all": "/weir/conn", "show drops": "/weir/drops", "show graph": "/weir/graph",
         "show accounting": "/weir/accounting", "show fdb": "/weir/fdb", "show lcores": "/weir/lcores",
         "show memory": "/weir/memory", "show capture": "/weir/capture", "show trace": "/weir/trace"}
# Values that change without traffic, and numbers that telemetry gives as text.
MOVING = {"rounds", "idle_rounds", "busy_percent", "age_s", "idle_ms", "waiting_ms", "waited_for_ms", "last_packet_ms",
          "asked_ms", "pool_mib", "ring_mib", "time_us", "closed_s"}
MOVING_TABLES = {"stood_still"}  # every question adds to it
NOT_HERE = {"show operators"}  # each caller sees other ones
WRONG = {"/weir/ring,8": "allowed: 7", "/weir/ring,x": "allowed: 7", "/weir/ring/stuck": "allowed: 7",
         "/weir/ring/stuck,99999999999": "allowed: 7", "/weir/port/stats,eth9": "allowed: all, p0",
         "/weir/port/info,": "", "/weir/ring,7,7": "allowed: 7"}


def still(tables: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows without changing values; telemetry's numbered rows become a list."""
    plain = {}
    for name, table in tables.items():
        if name in MOVING_TABLES:
            continue
        rows = [table[str(index)] for index in range(len(table))] if isinstance(table, dict) else table
        plain[name] = [{key: cell for key, cell in row.items() if key not in MOVING} for row in rows]
    return plain


def requests(path: str, value: str) -> list[str]:
    """The requests for one answer; "all" may be left out."""
    if value == "":
        return [path]
    return [path, f"{path},all"] if value == "all" else [f"{path},{value}"]


def same_answers(terminal: Terminal, grammar: str) -> None:
    """Compares the prompt's and the socket's answers, with each value of a question."""
    for line, value in lines_of(grammar):
        by_prompt = still(json.loads(terminal.ask(f"{line} json")))
        for request in requests(PATHS[grammar], value):
            by_socket = still(terminal.switch.ask(request))
            expect(by_prompt == by_socket, f"{request}: {by_socket}\nthe prompt: {by_prompt}")


@smoke_test("telemetry")
def telemetry(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, ROOT / "config/af_packet.yaml")
    switch = terminal.switch
    hosts.say_hello()
    Job(hosts, last=2).run()
    terminal.ask("set trace on")
    hosts.send(0, 33)
    hosts.send(0, 33)
    hosts.send(2, 33)  # something stuck, and something dropped
    wait_for(lambda: held_and_dropped(terminal) == (2, 1), 5, "the last frames were not received")
    known = json.loads(switch.ask_raw("/"))["/"]
    paths = [path for path in known if path.startswith("/weir/")]
    expect(set(paths) == set(PATHS.values()), f"paths: {paths}")
    expect(set(terminal.questions()) - NOT_HERE == set(PATHS), f"the prompt's questions: {terminal.questions()}")
    for grammar in PATHS:
        same_answers(terminal, grammar)
    for path in paths:
        help_answer = json.loads(switch.ask_raw(f"/help,{path}"))["/help"]
        expect(help_answer[path], f"no help for {path}")
    expect(len(switch.ask("/weir/trace")["trace"]) == 3, "the trace is not of the last three frames")
    for request, right in WRONG.items():
        answer = switch.ask(request)
        expect(right in answer.get("error", ""), f"{request}: {answer}")
    expect("/ethdev/list" in known, "DPDK's own telemetry is not there")
    terminal.quit()


@smoke_test("telemetry-many-rows")
def many_rows(lab: Lab) -> None:
    """More rows than DPDK's dictionaries and answers can hold: cut, but valid JSON. The prompt shows all."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, ROOT / "config/af_packet.yaml")
    stations = 700
    for long_frames in range(0, 60, 8):
        cut_anywhere(terminal, hosts, long_frames)
    terminal.ask("set trace on")
    already = switch_received(terminal)
    for number in range(stations):
        source = b"\x02" + number.to_bytes(5, "big")
        hosts.send_raw(number % 4, source + source + b"\x88\xb5" + bytes(46))
        if number % 100 == 99:
            wait_for(lambda: switch_received(terminal) == already + number + 1, 5, "not every frame was received")
    by_prompt = json.loads(terminal.ask("show fdb json"))["fdb"]
    expect(len(by_prompt) == stations, f"{len(by_prompt)} stations, not {stations}")
    by_socket = terminal.switch.ask("/weir/fdb")["fdb"]
    known = {(row["mac"], row["port"]) for row in by_prompt}
    expect(len(by_socket) >= 100 and {(row["mac"], row["port"]) for row in by_socket.values()} <= known,
           f"{len(by_socket)} rows by telemetry")
    all_records = json.loads(terminal.ask("show trace json"))["trace"]
    expect(len(all_records) == stations, f"{len(all_records)} records, not {stations}")
    records = still(terminal.switch.ask("/weir/trace"))["trace"]
    first_records = still({"trace": all_records[:len(records)]})["trace"]
    expect(len(records) >= 50 and records == first_records, f"{len(records)} records by telemetry: {records}")
    terminal.quit()


def cut_anywhere(terminal: Terminal, hosts: Hosts, long_frames: int) -> None:
    """Each long frame takes two digits more: wherever the answer is cut in a row, the table stays."""
    terminal.ask("set trace on")
    before = switch_received(terminal)
    for number in range(200):
        hosts.send_raw(0, bytes(6) + b"\x02\0\0\0\0\1\x88\xb5" + bytes(1000 if number < long_frames else 46))
    wait_for(lambda: switch_received(terminal) == before + 200, 5, "not every frame was received")
    answer = terminal.switch.ask("/weir/trace")
    expect(50 <= len(answer.get("trace", ())) < 200, f"{long_frames} long frames: {str(answer)[:200]}")


def accounting(terminal: Terminal) -> dict[str, Any]:
    return dict(terminal.switch.ask("/weir/accounting")["accounting"]["0"])


def switch_received(terminal: Terminal) -> int:
    return int(accounting(terminal)["received"])


def held_and_dropped(terminal: Terminal) -> tuple[int, int]:
    row = accounting(terminal)
    return int(row["held"]), int(row["dropped"])
