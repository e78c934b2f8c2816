# SPDX-License-Identifier: BSD-3-Clause
"""What clients by the network can do to a fabric's manager: each connection has a process of its own."""
from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import time
from pathlib import Path

from allocation_lab import ADDRESS, SCHEDULER, AllocationFabric
from fabric_lab import MANAGER
from gate_attacks import flood, is_running, processes_of
from lab import Lab, smoke_test
from test_control import Authority
from test_worker import Process
from weir import expect, run_to_end, wait_for

FLOOD_S = 4.0
MOST_GROWTH_KIB = 8 << 10
PATIENCE_S = 20
A_SECOND = 100  # requests of a name
CALLS = 300
DAY_S = 86400
OF_AN_ADDRESS = 64
NOTICED_S = 10  # that a manager stands still; by itself the call has 30


def resident_kib(fabric: AllocationFabric) -> int:
    return int(Path(f"/proc/{fabric.manager.pid}/status").read_text().split("VmRSS:")[1].split()[0])


def is_served(fabric: AllocationFabric) -> bool:
    return fabric.ctl(SCHEDULER, "allocation", "list").status == 0


def caller(lab: Lab, fabric: AllocationFabric, call: str, *options: str) -> Process:
    program = Path(__file__).with_name("fabric_caller.py")
    return Process(lab, fabric.namespace, [sys.executable, program, ADDRESS, fabric.authority.certificate, call, *options])


@smoke_test("fabric-gate")
def gate(lab: Lab) -> None:
    """Streams of a stranger without a certificate that are begun and reset take the manager no memory; the process that accepts is
    started again; an address has so many connections; who asks too often is told, and nobody else is."""
    fabric = AllocationFabric(lab)
    expect(is_served(fabric), "before")
    takes_no_memory(fabric)
    is_started_again(fabric)
    has_so_many_of_an_address(fabric)
    has_a_rate(lab, fabric)
    fabric.wait_for_placed(2)
    expect(not fabric.log_has("over {"), "a running job has ended")


def takes_no_memory(fabric: AllocationFabric) -> None:
    before = resident_kib(fabric)
    context = ssl.create_default_context(cafile=fabric.authority.certificate)
    context.set_alpn_protocols(["h2"])
    streams, answered, until = 0, 0, time.monotonic() + FLOOD_S
    while time.monotonic() < until:
        streams += flood(fabric.namespace, ADDRESS, context, "/weir.v1.Fabric/ListJobs", min(until, time.monotonic() + 1))
        answered += fabric.ctl("", "jobs").status == 0
    expect(streams > 1000 and answered > 0, f"{streams} streams, {answered} answers")
    grown = resident_kib(fabric) - before
    expect(grown < MOST_GROWTH_KIB, f"{streams} streams took {grown} KiB")
    wait_for(lambda: is_served(fabric), PATIENCE_S, "no new client is served")


def is_started_again(fabric: AllocationFabric) -> None:
    wait_for(lambda: len(processes_of(fabric.manager.pid)) == 1, PATIENCE_S, "connections have processes still")
    killed = counted(fabric, "connection")
    [accepting] = processes_of(fabric.manager.pid)
    os.kill(accepting, signal.SIGKILL)
    wait_for(lambda: counted(fabric, "acceptor") == 1 and fabric.log_has("weir-manager: gate_ended: "), PATIENCE_S, "nobody says that the gate has ended")
    wait_for(lambda: is_served(fabric), PATIENCE_S, "no new client is served")
    expect(counted(fabric, "connection") == killed, "a connection was counted too")


def has_so_many_of_an_address(fabric: AllocationFabric) -> None:
    """They are silent. Another address is served meanwhile."""
    context = ssl.create_default_context(cafile=fabric.authority.certificate)
    host, port = ADDRESS.split(":")
    with contextlib.ExitStack() as open_ones, fabric.namespace.entered():
        for _ in range(OF_AN_ADDRESS + 4):
            open_ones.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
        wait_for(lambda: len(processes_of(fabric.manager.pid)) > OF_AN_ADDRESS, PATIENCE_S, "they have no processes")
        other = open_ones.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S, source_address=("127.0.0.2", 0)))
        open_ones.enter_context(context.wrap_socket(other, server_hostname=host))
        expect(len(processes_of(fabric.manager.pid)) == 1 + OF_AN_ADDRESS + 1, "an address has more connections than it may")
    wait_for(lambda: is_served(fabric), PATIENCE_S, "the address is not served afterwards")


def counted(fabric: AllocationFabric, process: str) -> int:
    line = f'weir_fabric_gate_ended_processes_total{{process="{process}"}} '
    found = [text for text in fabric.metrics_or_nothing().splitlines() if text.startswith(line)]
    return int(found[0].removeprefix(line)) if found else -1


def has_a_rate(lab: Lab, fabric: AllocationFabric) -> None:
    """The gate itself lets pass more of a connection."""
    flooding = caller(lab, fabric, "allocations", "--as", *fabric.signed(SCHEDULER), "--times", str(CALLS))
    other = caller(lab, fabric, "allocations", "--as", *fabric.signed("host0"))
    status, said = flooding.wait()
    codes = json.loads(said)
    expect(status == 0 and set(codes) == {"OK", "UNAVAILABLE"} and A_SECOND <= codes["OK"] < CALLS, f"{codes}")
    status, said = other.wait()
    expect(status == 0 and "under schedulers" in said, f"another name's answer: {said}")


@smoke_test("fabric-gate-stands-still")
def stands_still(lab: Lab) -> None:
    """The gate of a manager that is stopped ends the calls, so that callers try another manager. One that is killed takes its gate along."""
    fabric = AllocationFabric(lab)
    fabric.manager.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    status, said = caller(lab, fabric, "allocations", "--as", *fabric.signed(SCHEDULER)).wait()
    took = time.monotonic() - begun
    fabric.manager.send_signal(signal.SIGCONT)
    expect(status == 0 and said.startswith("UNAVAILABLE ") and took < NOTICED_S, f"after {took:.1f} s: {said}")
    wait_for(lambda: is_served(fabric), PATIENCE_S, "it serves nobody afterwards")
    own = processes_of(fabric.manager.pid)
    fabric.kill_manager()
    wait_for(lambda: not any(map(is_running, own)), PATIENCE_S, "a process of the gate outlives the manager")


@smoke_test("fabric-gate-new-certificate")
def new_certificate(lab: Lab) -> None:
    """The next connection has the certificate that the files have then; files that are none leave the last one in force."""
    fabric = AllocationFabric(lab)
    certificate, key = map(Path, fabric.signed("manager"))
    old = certificate.read_bytes(), key.read_bytes()
    key.write_text("no key")
    expect(is_served(fabric), "not served with the last files")
    wait_for(lambda: fabric.log_has("weir-manager: gate: tls.key: found "), PATIENCE_S, "nobody says what is wrong with the files")
    other = Authority(lab, "other")
    for file, new in zip((certificate, key), other.sign("manager"), strict=True):
        shutil.copy(new, file)
    refused = fabric.ctl(SCHEDULER, "allocation", "list")
    expect(refused.status != 0, "served with a certificate of another authority")
    certificate.write_bytes(old[0])
    key.write_bytes(old[1])
    expect(is_served(fabric), "not served with the first files")
    says_when_it_ends(fabric, certificate)


def says_when_it_ends(fabric: AllocationFabric, certificate: Path) -> None:
    """Two days after the test has made it: in a number, in the log of the start, and to who checks the file."""
    left = re.findall(r'weir_fabric_certificate_seconds_left\{file="tls.certificate"\} ([\d.e+]+)\n', fabric.metrics_or_nothing())
    expect(len(left) == 1 and DAY_S < float(left[0]) <= 2 * DAY_S, f"{left}")
    line = f"weir-manager: certificate: tls.certificate: {certificate} ends in "
    expect(fabric.log_has(line), "the start does not say that the certificate ends")
    checked = run_to_end([str(MANAGER), "--check", str(fabric.folder / "manager.yaml")])
    expect(checked.status == 0 and re.search(re.escape(line) + "[12] days\n", checked.errors) is not None, f"{checked}")
