# SPDX-License-Identifier: BSD-3-Clause
"""Two managers with etcd: what dies, and that no job notices."""
from __future__ import annotations

import signal

from etcd_lab import MANAGERS, PATIENCE_S, EtcdFabric
from lab import Lab, smoke_test
from weir import BUILD, Ended, expect, run_to_end, wait_for

FENCED = 3


def other_than(name: str) -> str:
    return next(each for each in MANAGERS if each != name)


def ctl(fabric: EtcdFabric, *managers: str) -> Ended:
    servers = ",".join(f"unix:{fabric.folder}/{name}.sock" for name in managers)
    return run_to_end([BUILD / "app" / "weirctl", "--server", servers, "fabric", "jobs"])


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

    fabric.managers[leader].kill()
    fabric.managers[leader].wait()
    wait_for(lambda: fabric.leads(other_than(leader)), PATIENCE_S, f"{other_than(leader)} does not take over from {leader}")
    fabric.wait_for_placed(2)
    fabric.start_one(lab, leader)
    wait_for(lambda: "weir_fabric_stands_by" in fabric.page(leader, "/metrics"), PATIENCE_S, f"{leader} does not stand by")
    leader = other_than(leader)

    fabric.managers[leader].send_signal(signal.SIGSTOP)
    wait_for(lambda: fabric.leads(other_than(leader)), PATIENCE_S, f"{other_than(leader)} does not take over from {leader}")
    fabric.hold("while-one-stands-still", [1, 4])
    fabric.wait_for_placed(3)
    fabric.managers[leader].send_signal(signal.SIGCONT)
    status = fabric.managers[leader].wait(PATIENCE_S)
    expect(status == FENCED and fabric.log_has("weir-manager: fenced: "), f"{leader} ends with {status} after it stood still")
    expect_calm(fabric)
    loses_members(lab, fabric)


def tells_who_leads(fabric: EtcdFabric, leader: str) -> None:
    standby = other_than(leader)
    wait_for(lambda: f'weir_fabric_stands_by{{leader="{leader}"}} 1\n' in fabric.page(standby, "/metrics"), PATIENCE_S,
             f"{standby} does not say that {leader} leads")
    expect("weir_fabric_leader 0\n" in fabric.page(standby, "/metrics"), fabric.page(standby, "/metrics"))
    page = fabric.page(standby, "/fabric")
    expect(f"{standby} stands by" in page and f"{leader} leads" in page and ".sock" not in page, page)
    for order in (MANAGERS, MANAGERS[::-1]):
        answer = ctl(fabric, *order)
        expect(answer.status == 0 and "train" in answer.output, f"{answer}")
    alone = ctl(fabric, standby)
    expect(alone.status == 1 and f"{standby} stands by: {leader} at unix:{fabric.folder}/{leader}.sock leads" in alone.errors, f"{alone}")


def loses_members(lab: Lab, fabric: EtcdFabric) -> None:
    fabric.kill_member(1)
    fabric.hold("with-two-members", [2, 5])
    fabric.wait_for_placed(4)
    fabric.kill_member(2)
    fabric.wait_until(lambda metrics: "weir_fabric_store_lost 1\n" in metrics, "the store is not lost")
    fabric.hold("with-one-member", [1, 5])
    wait_for(lambda: fabric.log_has("'with-one-member': StatusCode.UNAVAILABLE: the manager's store does not answer"), PATIENCE_S,
             "a new job is not told why it gets no rings")
    fabric.wait_for_placed(4)
    fabric.start_member(lab, 2)
    fabric.wait_for_placed(5)
    expect_calm(fabric)
