# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks behind one NIC: hosts whose processes share an interface, each host a network namespace of its own."""
from __future__ import annotations

import itertools
import json
import os
import re
import signal
from pathlib import Path

from lab import Lab, smoke_test
from netns import Namespace, veth
from test_control import socket_of
from test_held_rings import ENDED, MODULE, with_room
from test_held_rings import switch_and_hosts as switch_with_room
from test_worker import COLLECTIVES, WORKER, Process
from weir import Weir, configuration, expect, wait_for

HOSTS = 2
RANKS_PER_HOST = 3
WORLD = HOSTS * RANKS_PER_HOST
RENDEZVOUS = "10.77.0.1:7471"
RING = ("  - id: 7\n    window: 4\n    max_message_bytes: 16384\n    mtu: 1024\n    members:\n"
        + "".join(f"      - {{ ip: 10.77.0.{host + 1}, port: p{host} }}\n" for host in range(HOSTS)))
PORTS = [f'name: p{host}, device: "net_af_packet{host},iface=tap{host}"' for host in range(HOSTS)]


def switch_and_hosts(lab: Lab) -> tuple[Weir, list[Namespace]]:
    """A switch with a ring of two members, and a namespace for each."""
    fabric, hosts = lab.namespace(), [lab.namespace() for _ in range(HOSTS)]
    for number, host in enumerate(hosts):
        veth(fabric, f"tap{number}", host, "eth0")
        host.ip(f"addr add 10.77.0.{number + 1}/24 dev eth0")
    return lab.ready_weir(fabric, configuration(PORTS, rings=RING)), hosts


def command(host: int, *options: str) -> list[str | Path]:
    return [WORKER, "--rank", str(host * RANKS_PER_HOST), "--local-ranks", str(RANKS_PER_HOST), "--world", str(WORLD),
            "--rendezvous", RENDEZVOUS, "--ring", "7", "--device", "iface=eth0", "--window", "4", "--message-bytes", "16384",
            *options]


def start(lab: Lab, hosts: list[Namespace], *options: str) -> list[Process]:
    return [Process(lab, host, command(number, *options)) for number, host in enumerate(hosts)]


def ranks_of(process: Process) -> list[int]:
    """The process ids of the ranks that one command has started, lowest rank first."""
    children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children")
    return [int(child) for child in children.read_text().split()]


def formed(process: Process) -> str:
    """What the ranks of one command have said when all have a group."""
    assert process.process.stdout is not None
    said = b""
    while said.count(b"algorithm=") < RANKS_PER_HOST:
        more = os.read(process.process.stdout.fileno(), 4096)
        expect(more != b"", f"it has ended: {said.decode()}")
        said += more
    return said.decode()


def expect_each(processes: list[Process], status: int, due: str, of_rank: set[int]) -> None:
    """Each command ends so; `due` stands once for each of these ranks, with its number for {rank}."""
    output = ""
    for process in processes:
        ended, text = process.wait()
        output += text
        expect(ended == status, f"{ended}: {text}")
    for rank in sorted(of_rank):
        expect(due.format(rank=rank) in output, f"rank {rank}: {output}; should say {due}")


@smoke_test("shared-nics")
def shared_nics(lab: Lab) -> None:
    """Each collective by two hosts of three ranks, under loss as well: every element is compared, bit for bit, with the fold
    over the hosts of the folds over their ranks. The switch has two members."""
    switch, hosts = switch_and_hosts(lab)
    for number, name in enumerate(COLLECTIVES):
        placement = ("--in-place", "--out-of-place")[number % 2]
        ranks = start(lab, hosts, "--collective", name, "--root", "4", "--size", "480000", "--repeat", "2", placement,
                      "--loss", "0.01" if number % 3 == 0 else "0")
        expect_each(ranks, 0, "result: rank={rank} bytes=" if name == "barrier" else "result: rank={rank} bytes=480000 ",
                    set(range(WORLD)))
    for kind, operation in (("bf16", "sum"), ("f16", "average"), ("f32", "product"), ("i8", "max")):
        ranks = start(lab, hosts, "--type", kind, "--op", operation, "--size", "480000")
        expect_each(ranks, 0, f"result: rank={{rank}} bytes=480000 type={kind} op={operation} ", set(range(WORLD)))
    ranks = start(lab, hosts, "--collective", "sparse-all-reduce", "--size", "480000", "--density", "0.1")
    expect_each(ranks, 0, "result: rank={rank} bytes=480000 ", set(range(WORLD)))
    switch.stop()


@smoke_test("shared-nics-made-rings")
def shared_nics_made_rings(lab: Lab) -> None:
    """Two NICs of one host, each with three ranks, and two rings that the switch makes for the job: their members are the
    NICs."""
    switch, host = switch_with_room(lab, with_room(lab))
    nics = [Process(lab, host, [
        WORKER, "--rank", str(3 * nic), "--local-ranks", "3", "--world", "6", "--rendezvous", "127.0.0.1:7471", "--device",
        f"iface=host{nic}", "--ip", f"10.77.0.{nic + 1}", "--window", "4", "--message-bytes", "16384", "--size", "480000",
        "--ring-count", "2", *(("--switch", f"unix:{socket_of(lab)}") if nic == 0 else ())], WEIR_SWITCH_MODULE=str(MODULE))
        for nic in range(2)]
    expect_each(nics, 0, "result: rank={rank} bytes=480000 ", set(range(6)))
    wait_for(lambda: switch.output().count(ENDED) == 2, 20, "not two rings were made")
    switch.stop()


@smoke_test("shared-nic-alone")
def shared_nic_alone(lab: Lab) -> None:
    """Ranks that are all behind one NIC need no switch: there is none."""
    host = lab.namespace()
    veth(lab.namespace(), "tap0", host, "eth0")
    host.ip("addr add 10.77.0.1/24 dev eth0")
    for name in COLLECTIVES:
        ranks = Process(lab, host, [WORKER, "--rank", "0", "--local-ranks", "3", "--world", "3", "--rendezvous", RENDEZVOUS,
                                    "--device", "iface=eth0", "--collective", name, "--root", "2", "--size", "480000"])
        expect_each([ranks], 0, f"retransmissions=0 algorithm=local verified=every_element collective={name}", {0})


def start_long_job(lab: Lab, hosts: list[Namespace], *options: str) -> list[Process]:
    """One that goes on until it is ended."""
    processes = start(lab, hosts, "--repeat", "1000000", "--size", "480000", "--no-verify", *options)
    for process in processes:
        said = formed(process)
        expect(said.count("algorithm=switch") == RANKS_PER_HOST, said)
    return processes


@smoke_test("shared-nic-sweep")
def shared_nic_sweep(lab: Lab) -> None:
    """One command for a host is a benchmark with one table; what its other ranks say are comments there."""
    host = lab.namespace()
    veth(lab.namespace(), "tap0", host, "eth0")
    host.ip("addr add 10.77.0.1/24 dev eth0")
    figures = lab.directory / "sweep.json"
    status, output = Process(lab, host, [
        WORKER, "--rank", "0", "--local-ranks", "3", "--world", "3", "--rendezvous", RENDEZVOUS, "--device", "iface=eth0", "-b",
        "8", "-e", "64K", "-f", "64", "-n", "5", "-c", "5", "--json", str(figures)]).wait()
    rows = [line.split()[0] for line in output.splitlines() if not line.startswith("#")]
    expect(status == 0 and rows == ["8", "512", "32768"], f"{status}, {output}")
    expect([row["in_place"]["wrong"] for row in json.loads(figures.read_text())["rows"]] == [0, 0, 0], figures.read_text())


@smoke_test("shared-nic-deaths", is_alone=True)
def shared_nic_deaths(lab: Lab) -> None:
    """Where a rank of a NIC is killed, leader or not, all others end at once and name it. One that is stopped is named when
    the time is over. Killed ranks leave nothing."""
    switch, hosts = switch_and_hosts(lab)
    before = set(os.listdir("/dev/shm"))
    for victim, number, due, options in ((4, signal.SIGKILL, "peer_died: ", ()), (3, signal.SIGKILL, "peer_died: ", ()),
                                         (1, signal.SIGKILL, "peer_died: ", ()),
                                         (5, signal.SIGSTOP, "timeout: ", ("--timeout", "3"))):
        processes = start_long_job(lab, hosts, *options)
        child = ranks_of(processes[victim // RANKS_PER_HOST])[victim % RANKS_PER_HOST]
        os.kill(child, number)
        outputs = [processes[0].wait()]
        if number == signal.SIGSTOP:
            os.kill(child, signal.SIGKILL)
        outputs.append(processes[1].wait())
        expect(all(status == 1 for status, _ in outputs), f"{outputs}")
        errors = re.findall(rf"weir-worker: {due}.*rank {victim}\b", "".join(output for _, output in outputs))
        expect(len(errors) == WORLD - 1, f"rank {victim}: {outputs}")
    for process in start_long_job(lab, hosts):
        # Stopped, none ends by itself when it hears of the first one's death.
        for number, child in itertools.product((signal.SIGSTOP, signal.SIGKILL), ranks_of(process)):
            os.kill(child, number)
        process.wait()
    for host in hosts:
        with host.entered():
            expect("weir-node" not in Path("/proc/thread-self/net/unix").read_text(), "a Unix socket is left")
    expect(set(os.listdir("/dev/shm")) <= before, f"{set(os.listdir('/dev/shm')) - before}")
    switch.stop()
