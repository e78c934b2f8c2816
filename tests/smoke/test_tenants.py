# SPDX-License-Identifier: BSD-3-Clause
"""Tenants: what each may have of a switch, over TLS and in packets per second."""
from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from hosts import RANKS, Job, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from netns import KILLED_WITH_US, Namespace
from test_control import CLIENT, TCP, Authority, end, socket_of, with_tls
from test_rings import added, spare
from terminal import Terminal
from torch_ranks import PYTHON
from weir import configuration, expect, run_to_end, wait_for

RATE = 20_000  # packets a second: 400 may wait, more than the job's windows have, and 64 need not


def caller(fabric: Namespace, authority: Authority, name: str) -> Callable[..., Any]:
    """Calls the switch with a certificate of this common name."""
    files = [*authority.sign(name), authority.certificate]

    def call(method: str, **request: object) -> Any:
        with fabric.entered():
            ended = run_to_end([PYTHON, str(CLIENT), "--tls", *files, TCP, "call", method, json.dumps(request)])
        expect(ended.status == 0, f"{name}: {method}: {ended.errors[-1500:]}")
        return json.loads(ended.output)
    return call


def ring(number: int, **more: object) -> dict[str, Any]:
    """Of two hosts of its own."""
    members = [{"ip": f"10.78.{number}.{host}"} for host in (1, 2)]
    return {"id": number, "window": 4, "max_message_bytes": 1024, "members": members} | more


@smoke_test("tenants-over-tls")
def over_tls(lab: Lab) -> None:
    """A tenant has rings of its own, as many as it may, and orders nobody else's. An operator does all. A stranger, nothing."""
    fabric, _ = ring_of_hosts(lab)
    authority = Authority(lab, "ours")
    certificate, key = authority.sign("switch")
    switch = lab.ready_weir(fabric, f"""{spare(lab.directory / "state", rings=4)}
control:
  listen: ["{TCP}"]
  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{authority.certificate}" }}
  operators: [root]
tenants:
  - {{ name: red, rings: 1 }}
  - {{ name: blue, memory_mib: 0 }}
  - {{ name: green, hosts: [192.0.2.0/24, "2001:db8::/32"] }}
""")
    root, red, blue, green, stranger = (caller(fabric, authority, name) for name in ("root", "red", "blue", "green", "stranger"))

    def refused(answer: Any, code: str, text: str) -> None:
        expect(answer.get("code") == code and text in answer.get("message", ""), f"wanted {code}, {text}: {answer}")
    expect(root("AddRing", ring=ring(1)) == {}, "an operator's ring")
    expect(red("AddRing", ring=ring(2)) == {}, "a tenant's ring")
    owners = {row["ring"]["id"]: row["ring"].get("tenant", "") for row in red("ListRings")["rings"]}
    expect(owners == {1: "", 2: "red"}, f"{owners}")
    refused(red("AddRing", ring=ring(3)), "RESOURCE_EXHAUSTED", "tenant red may have 1 rings and has 1: ring 2")
    refused(blue("AddRing", ring=ring(3)), "RESOURCE_EXHAUSTED", "tenant blue may have 0 and has 0.0, held by no ring")
    refused(blue("AddRing", ring=ring(3, tenant="red")), "PERMISSION_DENIED", "ring.tenant: found red; allowed: blue")
    refused(root("AddRing", ring=ring(2, id=3, tenant="blue")), "FAILED_PRECONDITION", "in ring 2, which is of tenant red")
    for method, asked in (("AddRing", {"ring": ring(3)}), ("HoldRing", {"ring": ring(3)})):
        refused(green(method, **asked), "FAILED_PRECONDITION", "which is no host of tenant green; allowed: an address in its "
                "hosts:, 192.0.2.0/24, 2001:db8::/32")
    refused(root("AddRing", ring=ring(3, tenant="green")), "INVALID_ARGUMENT", "which is no host of tenant green")
    refused(red("RemoveRing", id=1), "PERMISSION_DENIED", "ring: found 1, which is not of tenant red")
    for words in (["reset", "ring", "1"], ["withdraw", "ring", "1"], ["set", "trace", "on"],
                  ["capture", "port", "all", str(lab.directory / "x")]):
        refused(red("Execute", words=words), "PERMISSION_DENIED", "red")
    expect(red("Execute", words=["reset", "ring", "2"]) == {"text": "ring 2: reset\n"}, "its own ring")
    for method, request in (("ListRings", {}), ("Execute", {"words": ["help"]}), ("Complete", {"line": "s"}),
                            ("AddRing", {"ring": ring(3)}), ("RemoveRing", {"id": 1})):
        refused(stranger(method, **request), "PERMISSION_DENIED", "found the common name 'stranger'")
    expect(red("RemoveRing", id=2) == {} and red("AddRing", ring=ring(3)) == {}, "another one for the first")
    expect(root("RemoveRing", id=3) == {}, "an operator withdraws a tenant's ring")
    switch.stop()


@smoke_test("tenants-two-common-names")
def two_common_names(lab: Lab) -> None:
    """A certificate with a second common name is nobody's, in whichever order."""
    fabric = lab.namespace()
    authority = Authority(lab, "ours")
    switch = lab.ready_weir(fabric, with_tls(authority, *authority.sign("switch")))
    for names in ("red/CN=root", "root/CN=red", "root/CN=root"):
        answer = caller(fabric, authority, names)("ListRings")
        expect(answer.get("code") == "PERMISSION_DENIED" and "found 2 common names; allowed: one" in answer["message"], f"{answer}")
    expect(caller(fabric, authority, "root")("ListRings") == {}, "one name")
    switch.stop()


FLOOD_CALLS = 33  # one more than the watchers of all tenants
QUESTIONS = 40


@smoke_test("tenants-flood")
def flood(lab: Lab) -> None:
    """Beside a tenant that watches as often as it may and asks without pause, all questions of operators are answered,
    they may watch, and another tenant's ring is made."""
    fabric, _ = ring_of_hosts(lab)
    authority = Authority(lab, "ours")
    certificate, key = authority.sign("switch")
    switch = lab.ready_weir(fabric, f"""{spare(lab.directory / "state", rings=4)}
control:
  listen: ["{TCP}", "unix:{socket_of(lab)}"]
  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{authority.certificate}" }}
  operators: [root]
tenants: [{{ name: red, rings: 1 }}, {{ name: blue, rings: 1 }}]
""")
    by_root = ["--tls", *authority.sign("root"), authority.certificate, TCP]
    with fabric.entered():
        red = subprocess.Popen([*KILLED_WITH_US, PYTHON, str(CLIENT), "--tls", *authority.sign("red"), authority.certificate,
                                TCP, "flood", str(FLOOD_CALLS)], stdout=subprocess.PIPE, text=True)
    lab.on_end(red.kill)
    assert red.stdout is not None
    expect(red.stdout.readline() == "RESOURCE_EXHAUSTED\n", "nobody refuses the flood")
    for way in (by_root, [f"unix:{socket_of(lab)}"]):
        with fabric.entered():
            counted = run_to_end([PYTHON, str(CLIENT), *way, "count", str(QUESTIONS)])
            watched = run_to_end([PYTHON, str(CLIENT), *way, "watch",
                                  json.dumps({"words": ["show", "memory"], "period_ms": 100}), "2"])
        expect(counted.output == f"{QUESTIONS}\n", f"an operator's questions that were answered: {counted}")
        expect(len(json.loads(watched.output)) == 2, f"an operator watches: {watched}")
    blue = caller(fabric, authority, "blue")
    expect(blue("AddRing", ring=ring(2)) == {}, "another tenant's ring")
    answer = blue("HoldRing", ring=ring(3))
    expect("tenant blue may have 1 rings" in answer.get("message", ""), f"its quota decides, and not the flood: {answer}")
    switch.stop()


def of_a_tenant(limit: str) -> str:
    """Ring 7 is red's."""
    return (configuration(ring_ports()) + f"tenants: [{{ name: red, {limit} }}]\nrings:\n"
            + ring_7().replace("    mtu:", "    tenant: red\n    mtu:"))


@smoke_test("tenants-packets-per-second")
def packets_per_second(lab: Lab) -> None:
    """A job that sends more than its tenant may is slowed down, and its results are exact."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, of_a_tenant(f"packets_per_second: {RATE}"))
    hosts.say_hello()
    # It finds a whole window when it goes on, however slowly the hosts send.
    terminal.switch.process.send_signal(signal.SIGSTOP)
    threading.Timer(0.5, terminal.switch.process.send_signal, [signal.SIGCONT]).start()
    Job(hosts).run()

    def red() -> dict[str, Any]:
        [row] = json.loads(terminal.ask("show tenants json"))["tenants"]
        return dict(row)
    wait_for(lambda: red()["waiting"] == 0, 10, "frames wait for ever")
    row = red()
    expect((row["tenant"], row["rings"], row["packets_per_second"]) == ("red", 1, RATE), f"{row}")
    expect(row["waited"] > RANKS and row["over_rate"] == 0, f"nothing had to wait, or too much: {row}")
    [line] = json.loads(terminal.ask("show ring 7 json"))["ring_queue"]
    expect(line == {"tenant": "red", "packets_per_second": RATE} | {key: row[key] for key in
           ("waiting", "waited", "queue_full", "over_rate")}, f"{line}, {row}")
    accounting = json.loads(terminal.ask("show accounting json"))["accounting"]
    expect(accounting[0]["balances"] == "yes", f"{accounting}")
    end(terminal)


@smoke_test("tenants-checked-at-start")
def checked_at_start(lab: Lab) -> None:
    """Configured rings count, and a file that gives a tenant too many does not start a switch."""
    fabric, _ = ring_of_hosts(lab)
    for limit, text in (("rings: 0", "tenants: tenant red has 1 rings under rings:; allowed: 0, its rings:"),
                        ("memory_mib: 0", "tenants: the rings of tenant red need 1.")):
        ended = lab.weir(fabric, of_a_tenant(limit), "--no-interactive").refusal()
        expect(ended.status != 0 and text in ended.output, f"{limit}: {ended}")


@smoke_test("tenants-leave-neighbours")
def leave_neighbours(lab: Lab) -> None:
    """A tenant's rings come and go. It leaves no more neighbours in the switch's memory than it may, across a restart too."""
    fabric, _ = ring_of_hosts(lab)
    config = spare(lab.directory / "state", rings=2) + f"tenants: [{{ name: red, neighbours: {RANKS} }}]\n"
    first, second = (ring_7().replace("    mtu:", "    tenant: red\n    mtu:").replace("10.77.0", f"10.78.{network}")
                     for network in (1, 2))
    for start in ("first", "second"):
        terminal = Terminal(lab, fabric, config)
        for _ in range(2):
            expect(added(lab, terminal, first) == "added: ring 7\n", f"{start} start: hosts that are known")
            expect(terminal.ask("withdraw ring 7") == "ring 7: withdrawn\n", "`withdraw ring`")
        answer = added(lab, terminal, second)
        expect(f"ring 7: has {RANKS} new neighbours; tenant red may leave {RANKS} in the switch's memory and has left {RANKS}"
               in answer, f"{start} start: {answer}")
        [row] = json.loads(terminal.ask("show tenants json"))["tenants"]
        expect((row["neighbours"], row["most_neighbours"]) == (RANKS, RANKS), f"{row}")
        terminal.event("neighbours_short")
        if start == "first":
            beside = lab.weir(fabric, config, "--forget-neighbours", "red").wait()
            expect(beside.status == 2 and "has it" in beside.output, f"forgotten beside a switch: {beside}")
        end(terminal)
    forgotten = lab.weir(fabric, config, "--forget-neighbours", "red").wait()
    expect((forgotten.status, forgotten.output) == (0, "weir: rings of tenant red forgotten: 1\n"), f"{forgotten}")
    terminal = Terminal(lab, fabric, config)
    expect(added(lab, terminal, second) == "added: ring 7\n", "what was forgotten makes room")
    end(terminal)
