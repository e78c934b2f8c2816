# SPDX-License-Identifier: BSD-3-Clause
"""What schedulers grant, over TLS: who may grant, end, fetch a token; and jobs of the library that have a token and no certificate."""
from __future__ import annotations

import json
import re
import socket
import stat
import sys
from pathlib import Path

from allocation_lab import ADDRESS, SCHEDULER, AllocationFabric
from fabric_lab import PATIENCE_S, address_of
from lab import Lab, smoke_test
from netns import run
from test_worker import RENDEZVOUS, WORKER, Process
from weir import BUILD, expect, wait_for

NAME = "slurm:prod:4711"
GRANT = ("allocation", "grant", NAME, "--tenant", "red", "--hosts", "host[0-1]")
MODULE = BUILD / "lib/host/switch_rings/libweir_switch.so"
STRANGER = "'; allowed: a name under operators or under tenants"
RANKS = 2


def refuses(fabric: AllocationFabric, name: str, words: tuple[str, ...], why: str) -> None:
    answer = fabric.ctl(name, *words)
    expect(answer.status != 0 and why in answer.errors, f"{name} {words}: {answer}; due: {why}")


def fetch(fabric: AllocationFabric, host: str, name: str = NAME) -> Path:
    file = fabric.folder / f"token-{host}-{name}"
    expect(fabric.ctl(host, "allocation", "token", name, "--file", str(file)).output == f"written: {file}\n", f"no {file}")
    return file


def start(lab: Lab, fabric: AllocationFabric, token: Path, hosts: tuple[int, ...], **more: str) -> list[Process]:
    """Ranks on these hosts. Rank 0 alone is told of the manager; no switch passes their packets."""
    given = {"WEIR_MANAGER": ADDRESS, "WEIR_TOKEN_FILE": str(token), "WEIR_SWITCH_AUTHORITY": fabric.authority.certificate,
             "WEIR_SWITCH_MODULE": str(MODULE), **more}
    return [Process(lab, fabric.namespace, [
        WORKER, "--rank", str(rank), "--world", str(RANKS), "--rendezvous", RENDEZVOUS, "--device", f"iface=host{rank}",
        "--ip", address_of(host), "--size", "160000", "--ring-count", "1", "--timeout", str(PATIENCE_S)], **(given if rank == 0 else {}))
        for rank, host in enumerate(hosts)]


def is_refused(lab: Lab, fabric: AllocationFabric, token: Path, why: str, hosts: tuple[int, ...] = (0, 1), **more: str) -> None:
    ranks = start(lab, fabric, token, hosts, **more)
    status, said = ranks[0].wait()
    expect(status == 1 and why in said, f"{status}: {said}; due: {why}")
    for rank in ranks:
        rank.wait()


def jobs_of(fabric: AllocationFabric) -> list[int]:
    listed = json.loads(fabric.ctl(SCHEDULER, "allocation", "list", "--json").output)["allocations"]
    return [int(job) for allocation in listed for job in allocation["jobs"]]


def is_gone(fabric: AllocationFabric) -> bool:
    """The two jobs of nobody's allocation are left, and their rings."""
    listed = json.loads(fabric.ctl("", "jobs", "--json").output)["jobs"]
    return [job["name"] for job in listed] == ["train", "eval"] and fabric.log_has(" removes [")


@smoke_test("fabric-allocations")
def allocations(lab: Lab) -> None:
    """A scheduler grants, a host fetches the token, a job of it has rings, and loses them when the scheduler ends it."""
    fabric = AllocationFabric(lab)
    expect(fabric.ctl(SCHEDULER, *GRANT).output == f"granted: {NAME}, allocation 1\n", f"{fabric.ctl(SCHEDULER, *GRANT)}")
    token = fetch(fabric, "host0")
    expect(re.fullmatch(r"1 [0-9a-f]{64}\n", token.read_text()) is not None, "no token")
    expect(stat.S_IMODE(token.stat().st_mode) == 0o400, f"{token.stat()}")
    with fabric.entered():
        silent = socket.create_connection(("127.0.0.1", int(ADDRESS.rpartition(":")[2])), timeout=PATIENCE_S)
    by_name(fabric)
    takes_no_token_in_vain(fabric, token)
    for rank in range(RANKS):
        with fabric.entered():
            run("ip", "link", "add", f"host{rank}", "type", "veth", "peer", "name", f"cable{rank}")
            for interface in (f"host{rank}", f"cable{rank}"):
                run("ip", "link", "set", interface, "up")
    by_token(lab, fabric, token)
    ranks = start(lab, fabric, token, (0, 1))
    fabric.wait_for_placed(3)
    fabric.hold("of-4711", [0, 1], token=str(token))
    fabric.wait_for_placed(4)
    jobs = jobs_of(fabric)
    ended = fabric.ctl(SCHEDULER, "allocation", "end", NAME)
    expect(len(jobs) == 2 and ended.output == f"ended: {NAME}; its jobs: {jobs[0]}, {jobs[1]}\n", f"{ended}")
    why = f"allocation {NAME} was ended by {SCHEDULER}"
    expect(fabric.log_has(f"allocation_ended: {why}\n"), "the log does not say so")
    wait_for(lambda: fabric.log_has(f"'of-4711': StatusCode.ABORTED: {why}\n"), PATIENCE_S, "its owner is not told")
    wait_for(lambda: is_gone(fabric), PATIENCE_S, "its rings stay")
    for rank in ranks:
        rank.kill()
    is_refused(lab, fabric, token, "token: found one that is not allocation 1's")
    is_kept_by_nobody(fabric, token)
    with silent:
        while silent.recv(64):  # until the manager closes it; TimeoutError: it does not
            pass


def by_name(fabric: AllocationFabric) -> None:
    """What each certificate may not."""
    token_of_host1 = ("allocation", "token", NAME, "--file", str(fabric.folder / "stolen"))
    for name in ("host0", "blue", "stranger"):
        refuses(fabric, name, GRANT, f"certificate: found '{name}'; allowed: a name under schedulers or under operators")
        refuses(fabric, name, ("allocation", "end", NAME), "allowed: a name under schedulers")
        refuses(fabric, name, ("allocation", "list"), "allowed: a name under schedulers")
    for name in (SCHEDULER, "blue", "host2", ""):
        refuses(fabric, name, token_of_host1, f"certificate: found '{name}'; allowed: that of a host of {NAME}, while it is granted\n")
    for words in (("jobs",), ("show",), ("why", "leaf0"), ("end", "1"), ("plan", "--hosts", "host[0-1]"), ("claim",),
                  ("drain", "switch", "leaf0")):
        for name in (SCHEDULER, "host0", "stranger"):
            refuses(fabric, name, words, f"found the common name '{name}{STRANGER}")
    refuses(fabric, SCHEDULER, (*GRANT[:3], "--tenant", "blue", "--hosts", "host[0-1]"), "found host0, which is not tenant blue's; allowed: host1")
    long = "x" * 100_000
    refuses(fabric, SCHEDULER, (*GRANT[:-1], long), "x…'; allowed: names as host[0-3,7],login1")
    refuses(fabric, "", ("plan", "--hosts", "host[0-1]", "--without", long), "without: found 'xxx")
    expect(not (fabric.folder / "stolen").exists(), "a token was stolen")


def takes_no_token_in_vain(fabric: AllocationFabric, token: Path) -> None:
    """A host has two tokens at once: more of them would push out the one that is in the file."""
    for _ in range(3):
        refuses(fabric, "host0", ("allocation", "token", NAME, "--file", str(token)), f"{token}: File exists; allowed: a new file")


def by_token(lab: Lab, fabric: AllocationFabric, token: Path) -> None:
    """What no token gives."""
    forged = lab.file("forged", f"1 {'0' * 64}\n")
    is_refused(lab, fabric, forged, "token: found one that is not allocation 1's; allowed: one that was issued for it, until it ends")
    is_refused(lab, fabric, lab.file("none", "secret"), "which has none; allowed: a file as `weirctl fabric allocation token` writes it")
    is_refused(lab, fabric, token, f"rank 1: found host2, which is not of allocation {NAME}; allowed: host0, host1", hosts=(0, 2))
    other = "slurm:prod:4712"
    fabric.ctl(SCHEDULER, "allocation", "grant", other, "--tenant", "red", "--hosts", "host2")
    others = fetch(fabric, "host2", other).read_text().split()[1]
    is_refused(lab, fabric, lab.file("others", f"1 {others}\n"), "found one that is not allocation 1's")
    fabric.ctl(SCHEDULER, "allocation", "end", other)
    for call, why in (("jobs", STRANGER), ("show", STRANGER), ("end", STRANGER), ("claim", STRANGER),
                      ("allocations", "under schedulers"), ("grant", "under schedulers"), ("token", f"of a host of {NAME}, while it is granted\n")):
        nobody = Process(lab, fabric.namespace, [sys.executable, Path(__file__).with_name("fabric_caller.py"), ADDRESS,
                                                 fabric.authority.certificate, call])
        status, said = nobody.wait()
        expect(status == 0 and why in said and "PERMISSION_DENIED" in said, f"{call}: {said}")


def is_kept_by_nobody(fabric: AllocationFabric, token: Path) -> None:
    """The token is in its own file alone: in no log, and not in the store, as text or as bytes."""
    text = token.read_text().split()[1]
    for file in fabric.folder.iterdir():
        if file.is_file() and not file.name.startswith("token-"):
            content = file.read_bytes()
            expect(text.encode() not in content and bytes.fromhex(text) not in content, f"{file} has the token")
