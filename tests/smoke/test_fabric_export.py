# SPDX-License-Identifier: BSD-3-Clause
"""A fabric for schedulers of jobs, as weirctl gets it from the manager; tests/manager/test_page.py has what it is of other fabrics."""
from __future__ import annotations

from fabric_lab import HOSTS, Fabric
from lab import Lab, smoke_test
from weir import BUILD, Ended, expect, run_to_end

SLURM = "SwitchName=leaf0 Nodes=host0,host1,host2\nSwitchName=leaf1 Nodes=host3,host4,host5\nSwitchName=spine0 Switches=leaf0,leaf1\n"


@smoke_test("fabric-export")
def export(lab: Lab) -> None:
    """As Slurm's topology.conf, as labels of Kubernetes' nodes by keys of one's own, and what is refused."""
    fabric = Fabric(lab)

    def exported(*options: str) -> Ended:
        return run_to_end([BUILD / "app" / "weirctl", "--server", f"unix:{fabric.folder}/manager.sock", "fabric", "export", *options])

    slurm = exported("--slurm")
    expect(slurm.status == 0 and slurm.output == SLURM, f"{slurm}")
    labels = exported("--kubernetes", "--keys", "x/leaf,x/all")
    lines = [f"kubectl label --overwrite node host{host} x/leaf=leaf{host // 3} x/all=spine0" for host in range(HOSTS)]
    expect(labels.status == 0 and labels.output.splitlines() == lines, f"{labels}")
    few = exported("--kubernetes", "--keys", "x/leaf")
    expect(few.status == 1 and "found 1 keys; allowed: one for each level of the fabric" in few.errors, f"{few}")
    for options in ((), ("--slurm", "--kubernetes")):
        wrong = exported(*options)
        expect(wrong.status == 2 and "allowed: --slurm or --kubernetes" in wrong.errors, f"{options}: {wrong}")
