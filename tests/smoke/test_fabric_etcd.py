# SPDX-License-Identifier: BSD-3-Clause
"""Two managers with etcd: what dies, and that no job notices."""
from __future__ import annotations

import configparser
import json
import re
import signal

from etcd_lab import MANAGERS, PATIENCE_S, EtcdFabric, address_of_manager
from fabric_lab import LISTEN, Fabric
from lab import Lab, smoke_test
from weir import BUILD, Ended, expect, run_to_end, wait_for

FENCED, FOLLOWED = 3, 4
STARTS = 2  # one more than the first manager's


def other_than(name: str) -> str:
    return next(each for each in MANAGERS if each != name)


def ctl(fabric: EtcdFabric, *managers: str, words: tuple[str, ...] = ("jobs",)) -> Ended:
    servers = ",".join(f"unix:{fabric.folder}/{name}.sock" for name in managers)
    return run_to_end([BUILD / "app" / "weirctl", "--server", servers, "fabric", *words])


def expect_calm(fabric: EtcdFabric) -> None:
    """No ring was taken down, and no owner was told of an end."""
    for word in (" removes [", "over {", "ABORTED"):
        expect(not fabric.log_has(word), f"somebody has said {word!r}")


@smoke_test("fabric-etcd")
def with_etcd(lab: Lab) -> None:
    """The leader gets kill -9, then SIGSTOP; one member of etcd dies, then another one, and one comes back."""
    fabric = EtcdFabric(lab)
    leader = fabric.leader()
    tells_who_leads(fabric, leader)

    fabric.wait_until(lambda metrics: "weir_fabric_standbys 1\n" in metrics, "nobody stands by")
    fabric.managers[leader].kill()
    fabric.managers[leader].wait()
    wait_for(lambda: fabric.leads(other_than(leader)), PATIENCE_S, f"{other_than(leader)} does not take over from {leader}")
    fabric.wait_for_placed(2)
    fabric.wait_until(lambda metrics: "weir_fabric_standbys 0\n" in metrics, "it does not say that nobody stands by")
    fabric.start_one(lab, leader)
    wait_for(lambda: "weir_fabric_stands_by" in fabric.page(leader, "/metrics"), PATIENCE_S, f"{leader} does not stand by")
    leader = other_than(leader)

    fabric.managers[leader].send_signal(signal.SIGSTOP)
    wait_for(lambda: fabric.leads(other_than(leader)), PATIENCE_S, f"{other_than(leader)} does not take over from {leader}")
    fabric.hold("while-one-stands-still", [1, 4])
    fabric.wait_for_placed(3)
    fabric.managers[leader].send_signal(signal.SIGCONT)
    status = fabric.managers[leader].wait(PATIENCE_S)
    expect(status == FOLLOWED and fabric.log_has("weir-manager: fenced: "), f"{leader} ends with {status} after it stood still")
    expect_calm(fabric)
    loses_members(lab, fabric)


@smoke_test("fabric-fenced")
def fenced(lab: Lab) -> None:
    """With SQLite: a manager of another store takes the switches. The first one ends for good, and its unit does not start it."""
    fabric = Fabric(lab, ("train", "eval"))
    text = (fabric.folder / "manager.yaml").read_text()
    for word, another in (("mgr1", "other"), ("manager.sock", "other.sock"), ("fabric.db", "other.db"), (LISTEN, "127.0.0.1:9472")):
        text = text.replace(word, another)
    lab.file("other.yaml", text)
    for start in range(1, STARTS + 1):  # each raises its term
        other = fabric.start_from(lab, "other.yaml")
        wait_for(lambda: fabric.log_has(f"other leads the fabric lab with term 1.{start}\n"), PATIENCE_S, f"start {start} does not lead")
        if start < STARTS:
            other.kill()
            other.wait()
    status = fabric.manager.wait(PATIENCE_S)
    expect(status == FENCED and fabric.log_has(" is over: "), f"the first manager ends with {status}")
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.read(BUILD / "config" / "weir-manager.service")
    prevented = unit["Service"]["RestartPreventExitStatus"].split()
    expect(unit["Service"]["Restart"] == "on-failure" and str(FENCED) in prevented and str(FOLLOWED) not in prevented, f"{prevented}")
    expect(unit["Unit"]["StartLimitIntervalSec"] == "0", "the unit gives up")


def tells_who_leads(fabric: EtcdFabric, leader: str) -> None:
    standby = other_than(leader)
    wait_for(lambda: f'weir_fabric_stands_by{{leader="{leader}"}} 1\n' in fabric.page(standby, "/metrics"), PATIENCE_S,
             f"{standby} does not say that {leader} leads")
    expect("weir_fabric_leader 0\n" in fabric.page(standby, "/metrics"), fabric.page(standby, "/metrics"))
    page = fabric.page(standby, "/fabric")
    expect(f"{standby} stands by" in page and f"{leader} leads" in page and ".sock" not in page, page)
    for order in (MANAGERS, MANAGERS[::-1]):
        answer = ctl(fabric, *order)
        expect(answer.status == 0 and "train" in answer.output and "memory" not in answer.output, f"{answer}")
    alone, claim = ctl(fabric, standby), ctl(fabric, standby, words=("claim",))
    refuses_by_the_leader_alone(fabric, leader)
    told = f"{standby} stands by: {leader} at unix:{fabric.folder}/{leader}.sock, {address_of_manager(leader)} leads"
    expect(alone.status == 1 and told in alone.errors, f"{alone}")
    expect(claim.status == 1 and told in claim.errors, f"{claim}")


def refuses_by_the_leader_alone(fabric: EtcdFabric, leader: str) -> None:
    """A manager that stands by may have another file: its opinion of who asks would end a running job at its owner."""
    options = fabric.options_of("stranger")
    for name, words in ((other_than(leader), "stands by"), (leader, "found the common name 'stranger'; allowed: ")):
        with fabric.entered():
            answer = run_to_end([BUILD / "app" / "weirctl", "--server", address_of_manager(name), *options, "fabric", "jobs"])
        expect(answer.status == 1 and words in answer.errors, f"{name}: {answer}")


def tells_its_doubt(fabric: EtcdFabric, leader: str) -> None:
    """In words, in JSON and as a number; while it leads, none of them."""
    fabric.wait_until(lambda metrics: "weir_fabric_in_doubt 1\n" in metrics, "it is in no doubt")
    doubt = "the manager does not know whether it leads: this is from its memory"
    shown = ctl(fabric, leader, words=("show",))
    expect(shown.status == 0 and re.match(rf"fabric lab, in doubt whether led by {leader}, term [\d.]+\n\n{doubt}\n", shown.output) is not None,
           f"{shown}")
    page = fabric.page(leader, "/fabric")
    expect(f"in doubt whether led by {leader}" in page and "in doubt: the manager does not know whether it leads" in page, page)
    for words in (("jobs",), ("why", "leaf0"), ("plan", "--hosts", "host[0-1]")):
        said = ctl(fabric, leader, words=words)
        expect(said.status == 0 and said.output.startswith(f"{doubt}\n"), f"{words}: {said}")
        told = ctl(fabric, leader, words=(*words, "--json"))
        expect(told.status == 0 and json.loads(told.output)["doubt"] == doubt, f"{words}: {told}")


def loses_members(lab: Lab, fabric: EtcdFabric) -> None:
    fabric.kill_member(1)
    fabric.hold("with-two-members", [2, 5])
    fabric.wait_for_placed(4)
    fabric.kill_member(2)
    fabric.wait_until(lambda metrics: "weir_fabric_store_lost 1\n" in metrics, "the store is not lost")
    tells_its_doubt(fabric, fabric.leader())
    fabric.hold("with-one-member", [1, 5])
    wait_for(lambda: fabric.log_has("'with-one-member': StatusCode.UNAVAILABLE: the manager's store does not answer"), PATIENCE_S,
             "a new job is not told why it gets no rings")
    fabric.wait_for_placed(4)
    fabric.start_member(lab, 2)
    fabric.wait_for_placed(5)
    expect_calm(fabric)
