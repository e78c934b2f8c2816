# SPDX-License-Identifier: BSD-3-Clause
"""What clients by the network can do to the control service: each connection has a process of its own."""
from __future__ import annotations

import configparser
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
from pathlib import Path

from gate_attacks import flood, is_running, processes_of
from lab import Lab, smoke_test
from netns import KILLED_WITH_US, Namespace
from test_control import CLIENT, NULL_PORTS, TCP, WEIRCTL, Authority, resident_kib, said, socket_of, weirctl
from torch_ranks import PYTHON
from weir import BUILD, Weir, expect, run_to_end, wait_for

FLOOD_S = 4.0
MOST_GROWTH_KIB = 8 << 10  # a reset stream took more than 100 MiB of it a second
SPARE = "spare: { rings: 2, members: 4, frames: 64 }\nstate_directory: %s\n"


def guarded(lab: Lab, authority: Authority) -> str:
    """A switch's configuration with a Unix socket, an address of the network, and room for rings."""
    certificate, key = authority.sign("switch")
    return (f'{NULL_PORTS}{SPARE % (lab.directory / "state")}control:\n  listen: ["{TCP}", "unix:{socket_of(lab)}"]\n  tls: {{ certificate: "{certificate}", '
            f'key: "{key}", client_authority: "{authority.certificate}" }}\n')


def client_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(*authority.sign("client"))
    return context


def started(lab: Lab, fabric: Namespace, *words: str) -> subprocess.Popen[str]:
    with fabric.entered():
        process = subprocess.Popen([*KILLED_WITH_US, PYTHON, str(CLIENT), *words], stdout=subprocess.PIPE, text=True)
    lab.on_end(process.kill)
    return process


def has_ring_9(lab: Lab) -> bool:
    return weirctl("show", "ring", "9", server=socket_of(lab)).status == 0


def tls_words(authority: Authority) -> list[str]:
    return ["--tls", *authority.sign("client"), authority.certificate, TCP]


@smoke_test("gate-rapid-reset")
def rapid_reset(lab: Lab) -> None:
    """Streams that are begun and reset take the switch no memory; the Unix socket answers meanwhile; another client's held
    ring stays; and a new client is served."""
    ours, fabric = Authority(lab, "ours"), lab.namespace()
    switch = lab.ready_weir(fabric, guarded(lab, ours))
    ring = {"id": 9, "window": 1, "max_message_bytes": 1024, "members": [{"ip": "10.78.0.1"}, {"ip": "10.78.0.2"}]}
    owner = started(lab, fabric, *tls_words(ours), "hold", json.dumps({"ring": ring}))
    assert owner.stdout is not None
    expect('"id": 9' in owner.stdout.readline(), "no ring is held")
    said(lab, "help")
    before = resident_kib(switch)
    context = client_context(ours)
    streams, until = 0, time.monotonic() + FLOOD_S
    answered = 0
    while time.monotonic() < until:
        streams += flood(fabric, TCP, context, "/weir.v1.Switch/ListRings", min(until, time.monotonic() + 1))
        answered += has_ring_9(lab)
    grown = resident_kib(switch) - before
    expect(streams > 1000 and answered > 0, f"{streams} streams, {answered} answers")
    expect(grown < MOST_GROWTH_KIB, f"{streams} streams took {grown} KiB")
    expect(owner.poll() is None and has_ring_9(lab), "another client's ring has gone")
    wait_for(lambda: served(fabric, ours), 20, "no new client is served")
    expect(resident_kib(switch) - before < MOST_GROWTH_KIB, "it grows afterwards")
    switch.stop()


def served(fabric: Namespace, authority: Authority) -> bool:
    certificate, key = authority.sign("client")
    with fabric.entered():
        ended = run_to_end([str(WEIRCTL), "--server", TCP, "--tls-certificate", certificate, "--tls-key", key,
                            "--tls-authority", authority.certificate, "help"])
    return ended.status == 0


@smoke_test("gate-processes")
def processes(lab: Lab) -> None:
    """A process of the gate that dies takes its own connection along, and nothing else; one that accepts is started again;
    none of them has rights, or outlives the switch."""
    ours, fabric = Authority(lab, "ours"), lab.namespace()
    switch = lab.ready_weir(fabric, guarded(lab, ours))
    [accepting] = processes_of(switch.process.pid)
    own = Path(f"/proc/{accepting}/status")
    wait_for(lambda: "NoNewPrivs:\t1" in own.read_text(), 5, "the gate keeps its rights")
    status = own.read_text()
    for line in ("CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"):
        expect(line in status, f"no {line} in {status}")
    ring = {"id": 9, "window": 1, "max_message_bytes": 1024, "members": [{"ip": "10.78.0.1"}, {"ip": "10.78.0.2"}]}
    owner = started(lab, fabric, *tls_words(ours), "hold", json.dumps({"ring": ring}))
    assert owner.stdout is not None
    expect('"id": 9' in owner.stdout.readline(), "no ring is held")
    [of_owner] = set(processes_of(switch.process.pid)) - {accepting}
    watcher = started(lab, fabric, *tls_words(ours), "watch", json.dumps({"words": ["show", "memory"], "period_ms": 100}), "100000")
    wait_for(lambda: len(processes_of(switch.process.pid)) == 3, 20, "a connection has no process of its own")
    [of_watcher] = set(processes_of(switch.process.pid)) - {accepting, of_owner}
    os.kill(of_watcher, signal.SIGKILL)
    expect(watcher.wait(20) == 0, "the watcher goes on")
    wait_for(lambda: "by signal 9; others go on [gate_killed]" in switch.output(), 20, switch.output())
    os.kill(accepting, signal.SIGKILL)
    wait_for(lambda: "[gate_ended]" in switch.output(), 20, switch.output())
    counted = {row["process"]: row["count"] for row in json.loads(said(lab, "show gate json"))["gate"]}
    expect(counted == {"connection": 1, "acceptor": 1}, f"{counted}")
    wait_for(lambda: served(fabric, ours), 20, "no new client is served")
    expect(owner.poll() is None and has_ring_9(lab), "another client's ring has gone")
    os.kill(of_owner, signal.SIGKILL)
    wait_for(lambda: not has_ring_9(lab), 20, "its own ring stays")
    own = processes_of(switch.process.pid)
    switch.stop()
    wait_for(lambda: not any(is_running(process) for process in own), 20, "a process of the gate outlives the switch")


@smoke_test("gate-new-certificate")
def new_certificate(lab: Lab) -> None:
    """The next connection has the certificate that the files have then; files that are none leave the last one in force."""
    ours, other, fabric = Authority(lab, "ours"), Authority(lab, "other"), lab.namespace()
    switch = lab.ready_weir(fabric, guarded(lab, ours))
    expect(served(fabric, ours) and not served(fabric, other), "before")
    files = [Path(ours.file(name)) for name in ("switch.pem", "switch.key", "ca.pem")]
    old = {file: file.read_bytes() for file in files}
    files[1].write_text("no key")
    expect(served(fabric, ours), "not served with the last files")
    wait_for(lambda: "control.tls.key: found" in switch.output() and "had before" in switch.output(), 20, switch.output())
    for file, new in zip(files, (*other.sign("switch"), other.certificate), strict=True):
        shutil.copy(new, file)
    expect(served(fabric, other), "the new authority's client")
    for file, text in old.items():
        file.write_bytes(text)
    expect(served(fabric, ours) and not served(fabric, other), "the old files again")
    switch.stop()


@smoke_test("gate-units")
def units(lab: Lab) -> None:
    """The kernel ends a process of the gate first when memory is short. systemd would stop the whole service for it."""
    for name in ("weir", "weir-manager"):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.read(BUILD / "config" / f"{name}.service")
        expect(unit["Service"].get("OOMPolicy") == "continue", f"{name}.service stops with a client's process")
