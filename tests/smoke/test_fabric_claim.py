# SPDX-License-Identifier: BSD-3-Clause
"""A fabric whose store is restored from a backup, and that somebody claims."""
from __future__ import annotations

import json
import re
import shutil

from fabric_lab import PATIENCE_S, Fabric
from lab import Lab, smoke_test
from weir import BUILD, Ended, expect, run_to_end, wait_for

AGAIN = 4  # the manager's status: its unit starts it
PASSED = 1 << 24  # ids
FIRST_RING = 1 << 31
STARTS = 3  # in all, before the store is an old one


def ctl(fabric: Fabric, *words: str) -> Ended:
    return run_to_end([BUILD / "app" / "weirctl", "--server", f"unix:{fabric.folder}/manager.sock", "fabric", *words])


def start_again(lab: Lab, fabric: Fabric, term: str) -> None:
    fabric.start_manager(lab)
    wait_for(lambda: fabric.log_has(f"mgr1 leads the fabric lab with term {term}\n"), PATIENCE_S, f"no manager leads with {term}")
    fabric.wait_for_all_serving()


@smoke_test("fabric-claim")
def claim(lab: Lab) -> None:
    """Switches know a higher term than the restored store: the manager waits, takes nothing from one that lives, and goes on with new ids."""
    fabric = Fabric(lab, ("train", "eval"))
    fabric.kill_manager()
    for file in fabric.folder.glob("fabric.db*"):
        shutil.copy(file, fabric.folder / f"backup-{file.name}")
    for start in range(2, STARTS + 1):
        start_again(lab, fabric, f"1.{start}")
        fabric.kill_manager()
    for file in fabric.folder.glob("fabric.db*"):
        file.unlink()
    for file in fabric.folder.glob("backup-*"):
        shutil.copy(file, fabric.folder / file.name.removeprefix("backup-"))

    fabric.start_manager(lab)
    fabric.wait_until(lambda metrics: "weir_fabric_awaits_claim 1\n" in metrics and "weir_fabric_leader 0\n" in metrics, "it does not wait")
    why = "term 1.2 is over: (1, 3) has claimed this switch; no orders are given until `weirctl fabric claim`, or `adopt`"
    expect(re.search(rf"\n\w+: {re.escape(why)}\n", ctl(fabric, "show").output) is not None, f"{ctl(fabric, 'show')}")
    refusal = r"\w+ obeys mgr1 with term 1\.3, heard \d s ago; allowed: a claim when that manager has been stopped for 10 s"
    wait_for(lambda: re.search(refusal, ctl(fabric, "claim").errors) is not None, PATIENCE_S, f"{ctl(fabric, 'claim')}")
    fabric.say(heard_ms=10_000)
    claimed = f"claimed: epoch 2, rings from {FIRST_RING + PASSED + 2}, jobs from {PASSED + 3}; the manager ends, to begin again\n"
    wait_for(lambda: ctl(fabric, "claim").output == claimed, PATIENCE_S, f"{ctl(fabric, 'claim')}")
    expect(fabric.manager.wait(PATIENCE_S) == AGAIN, f"it ends with {fabric.manager.returncode}")
    goes_on(lab, fabric)


def goes_on(lab: Lab, fabric: Fabric) -> None:
    """No running job has noticed; a new one has ids that nobody had."""
    start_again(lab, fabric, "2.3")
    expect(not fabric.log_has(" removes [") and not fabric.log_has("over {"), "a ring was removed")
    fabric.hold("new", [1, 4])
    fabric.wait_for_placed(3)
    jobs = {job["name"]: (int(job["id"]), job["rings"]) for job in json.loads(ctl(fabric, "jobs", "--json").output)["jobs"]}
    expect(jobs == {"train": (1, [FIRST_RING]), "eval": (2, [FIRST_RING + 1]), "new": (PASSED + 3, [FIRST_RING + PASSED + 2])}, f"{jobs}")
    fabric.kill_manager()
    fabric.manager = fabric.start_from(lab, "manager.yaml", "--restored")
    wait_for(lambda: fabric.log_has("awaits_claim: the store was restored from a backup; "), PATIENCE_S, "it does not wait")
    fabric.wait_until(lambda metrics: "weir_fabric_awaits_claim 1\n" in metrics, "it does not say so")


@smoke_test("fabric-adopt")
def adopt(lab: Lab) -> None:
    """The store is gone. A new one learns from the switches what runs, all of it, before a manager gives orders."""
    fabric = Fabric(lab, ("train", "eval"))
    before = json.loads(ctl(fabric, "jobs", "--json").output)["jobs"]
    fabric.kill_manager()
    for file in fabric.folder.glob("fabric.db*"):
        file.unlink()
    fabric.manager = fabric.start_from(lab, "manager.yaml", "--restored")
    fabric.say(heard_ms=10_000, silent=["spine1"])
    claimed = f"claimed: epoch 2, rings from {FIRST_RING + PASSED}, jobs from {PASSED + 1}; the manager ends, to begin again\n"
    wait_for(lambda: ctl(fabric, "adopt").output == claimed, PATIENCE_S, f"{ctl(fabric, 'adopt')}")
    expect(fabric.manager.wait(PATIENCE_S) == AGAIN, f"it ends with {fabric.manager.returncode}")
    fabric.start_manager(lab)
    waits = "jobs that run are being adopted: spine1 must say what rings they have; without one: `weirctl fabric adopt --without NAME`"
    wait_for(lambda: waits in ctl(fabric, "show").output, PATIENCE_S, f"{ctl(fabric, 'show')}")
    wrong = ctl(fabric, "adopt", "--without", "spine9")
    expect(wrong.status != 0 and "without: found 'spine9'; allowed: a switch of the topology" in wrong.errors, f"{wrong}")
    fabric.say()
    fabric.wait_for_placed(2)
    after = json.loads(ctl(fabric, "jobs", "--json").output)["jobs"]
    expect(after == before, f"was: {before}, is: {after}")
    expect(not fabric.log_has(" removes [") and not fabric.log_has("over {"), "a ring was removed")
    fabric.wait_until(lambda metrics: "weir_fabric_leader 1\n" in metrics, "it does not lead")
    fabric.hold("new", [1, 4])
    fabric.wait_for_placed(3)
