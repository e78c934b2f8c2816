# SPDX-License-Identifier: BSD-3-Clause
"""Weir's scripts for Slurm: what they do by themselves, and in the Slurm of this system."""
from __future__ import annotations

import json
import os
import pwd
import socket
import stat
import subprocess
import time
from pathlib import Path

from allocation_lab import ADDRESS, SCHEDULER, WEIRCTL, AllocationFabric
from lab import Lab, smoke_test
from mpi_jobs import build_without_blanks
from slurm_lab import CLUSTER, PATIENCE_S, USER, Scripts, Slurm, slurm_environment
from test_fabric_allocations import MODULE
from test_worker import RENDEZVOUS, WORKER
from weir import BUILD, Failed, expect, wait_for

JOB = "4711"
PROMISED_S = 5
BEFORE = 2  # jobs of nobody's allocation


def run_script(fabric: AllocationFabric, script: Path, **more: str) -> tuple[int, str]:
    """As Slurm does, with little else in the environment."""
    return run_shell(fabric, f'"{script}"', **more)


def run_shell(fabric: AllocationFabric, words: str, **more: str) -> tuple[int, str]:
    given = {"SLURM_CLUSTER_NAME": CLUSTER, "SLURM_JOB_ID": JOB, "SLURM_JOB_NODELIST": "host[0,2-3]", "SLURM_JOB_ACCOUNT": "red",
             "SLURM_JOB_UID": str(pwd.getpwnam(USER).pw_uid)}
    with fabric.entered():
        done = subprocess.run(["sh", "-c", words], env=given | more, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


def allocations_of(fabric: AllocationFabric) -> dict[str, tuple[str, list[str], list[int]]]:
    listed = json.loads(fabric.ctl(SCHEDULER, "allocation", "list", "--json").output)["allocations"]
    return {one["name"]: (one["tenant"], one["hosts"], [int(job) for job in one["jobs"]]) for one in listed}


@smoke_test("fabric-slurm-scripts")
def scripts(lab: Lab) -> None:
    """Each script by itself: what it asks, the file that it leaves, what it prints; and that no manager delays no job."""
    fabric = AllocationFabric(lab)
    controller, node, stranger = (Scripts(fabric, name) for name in (SCHEDULER, "host2", "host1"))
    expect(run_script(fabric, controller.path("prolog-slurmctld")) == (0, ""), "it does not grant")
    name = f"slurm:{CLUSTER}:{JOB}"
    expect(allocations_of(fabric) == {name: ("red", ["host0", "host2", "host3"], [])}, f"{allocations_of(fabric)}")
    expect(run_script(fabric, controller.path("prolog-slurmctld"), SLURM_JOB_NODELIST="host[2-3]") == (0, ""),
           "it does not grant a job that was put back into the queue")
    expect(allocations_of(fabric) == {name: ("red", ["host2", "host3"], [])}, f"{allocations_of(fabric)}")
    expect(run_script(fabric, controller.path("prolog-slurmctld"), SLURM_JOB_ACCOUNT="(null)") == (0, ""), "a job waits for the fabric")
    expect(controller.said.read_text() == f"{name}: no rings: weirctl: tenant: found none; allowed: a name under tenants\n",
           controller.said.read_text())
    expect(allocations_of(fabric) == {}, "the former job of this number has its hosts still")
    is_new_each_time(fabric, controller, node)
    token = node.tokens / f"{JOB}.token"
    expect(run_script(fabric, node.path("task-prolog")) == (0, ""), "it exports what is not there")
    expect(run_script(fabric, node.path("prolog")) == (0, ""), "no token")
    found = token.stat()
    expect((stat.S_IMODE(found.st_mode), found.st_uid) == (0o400, pwd.getpwnam(USER).pw_uid), f"{found}")
    status, said = run_script(fabric, node.path("task-prolog"))
    expect(status == 0 and said == f"export WEIR_MANAGER=127.0.0.1:9480\nexport WEIR_TOKEN_FILE={token}\n"
                                   f"export WEIR_SWITCH_AUTHORITY={fabric.authority.certificate}\n", f"{status}: {said}")
    expect(run_script(fabric, node.path("task-prolog"), WEIR_SWITCH="unix:/x") == (0, ""), "it overrules the user")
    expect(run_script(fabric, stranger.path("prolog")) == (0, "") and not (stranger.tokens / f"{JOB}.token").exists(), "host1 has a token")
    expect(run_script(fabric, node.path("epilog")) == (0, "") and not token.exists(), "the token stays")
    expect(run_script(fabric, controller.path("epilog-slurmctld")) == (0, "") and allocations_of(fabric) == {}, "it stays granted")
    ends_in_time(fabric, controller)
    beside_a_silent_manager(fabric, controller, node)
    says_what_its_file_lacks(fabric, controller)
    without_manager(fabric, controller, node)


def says_what_its_file_lacks(fabric: AllocationFabric, controller: Scripts) -> None:
    file = controller.folder / "weir/slurm.yaml"
    for text, due in (("", ()), ("required: no\n", ()), ("required: true\n", ("required: found 'true', which is as no; allowed: yes, no",))):
        controller.said.write_text("")
        file.write_text(text)
        expect(run_script(fabric, controller.path("prolog-slurmctld")) == (0, ""), f"a job waits for the fabric: {text}")
        said = controller.said.read_text()
        lacks = f"no rings: found no line 'manager: ADDRESS,…' in {file}; allowed: one, in a file that can be read"
        expect(said == "".join(f"slurm:{CLUSTER}:{JOB}: {line}\n" for line in (lacks, *due)), said)


def ends_in_time(fabric: AllocationFabric, controller: Scripts) -> None:
    """With a clock that stands still; and with the last second over between two looks at what is left: no limit is none for timeout."""
    begin = f'. {controller.path("common")}; timeout() {{ echo "$3"; [ "$3" -gt 0 ]; return 124; }}; give 2'
    looks = f"{controller.folder}/looks"
    passes = f"left() {{ echo look >>{looks}; echo $((2 - $(wc -l <{looks}))); }}"
    for change in ("date() { echo 1000000; }", passes):
        done = run_shell(fabric, f'{begin}; {change}; ask list; echo "$?: $said"')
        expect(done in ((0, "1: no answer in time: 1\n"), (0, "1: no answer in time: 2\n")), f"{done}")


def is_new_each_time(fabric: AllocationFabric, controller: Scripts, node: Scripts) -> None:
    """A job that Slurm has forgotten may have had the same number, and the same hosts: its token is for nothing."""
    numbers = []
    for _ in range(2):
        run_script(fabric, controller.path("prolog-slurmctld"), SLURM_JOB_NODELIST="host[2-3]")
        run_script(fabric, node.path("prolog"))
        numbers.append((node.tokens / f"{JOB}.token").read_text().split()[0])
        run_script(fabric, node.path("epilog"))
    expect(numbers[0] != numbers[1], f"{numbers}")


def beside_a_silent_manager(fabric: AllocationFabric, controller: Scripts, node: Scripts) -> None:
    """Two managers' machines take calls and answer none, as where they stand still; the third one leads."""
    with fabric.entered():
        silent = socket.create_server(("127.0.0.1", 9499))
    with silent:
        for scripts in (controller, node):
            scripts.configure(managers=f"127.0.0.1:9499,127.0.0.1:9499,{ADDRESS}")
        for script in (controller.path("prolog-slurmctld"), node.path("prolog")):
            expect(run_script(fabric, script) == (0, ""), f"{script} delays a job")
        expect((node.tokens / f"{JOB}.token").exists(), f"no token: {controller.said.read_text()}")
        run_script(fabric, controller.path("epilog-slurmctld"))
        expect(allocations_of(fabric) == {}, "it stays granted")
    for scripts in (controller, node):
        scripts.configure()


def without_manager(fabric: AllocationFabric, controller: Scripts, node: Scripts) -> None:
    fabric.kill_manager()
    for script, required, due in (("prolog-slurmctld", "", 0), ("prolog-slurmctld", "required: yes\n", 1)):
        controller.configure(required)
        begun = time.monotonic()
        status, _ = run_script(fabric, controller.path(script))
        took = time.monotonic() - begun
        expect(status == due and took < PROMISED_S + 1, f"{script} {required}: {status} after {took:.1f} s")
        expect("no rings: no answer in time: weirctl: no answer from " in controller.said.read_text(), controller.said.read_text())
    expect(run_script(fabric, node.path("prolog"))[0] == 0, "Slurm would drain the node")


@smoke_test("fabric-slurm")
def with_slurm(lab: Lab) -> None:
    """sbatch, scancel, kill -9 of slurmctld: each job has its rings, and none stays."""
    environment = slurm_environment(lab.directory / "bin")
    fabric = AllocationFabric(lab)
    slurm = Slurm(lab, fabric, environment)
    module, program = (build_without_blanks() / file.relative_to(BUILD) for file in (MODULE, WORKER))
    worker = (f"WEIR_SWITCH_MODULE={module} exec {program} --rank $SLURM_PROCID --world 2 --rendezvous {RENDEZVOUS} "
              f"--device iface=$SLURMD_NODENAME --ip 10.0.0.$((${{SLURMD_NODENAME#host}} + 1)) --ring-count 1 --timeout 60")
    ranks = f"srun --ntasks=2 --ntasks-per-node=1 sh -c '{worker}'"

    first = slurm.submit(ranks, "--nodes=2", "--nodelist=host[1-2]", "--account=red")
    fabric.wait_for_placed(BEFORE + 1)
    granted = allocations_of(fabric)[f"slurm:{CLUSTER}:{first}"]
    expect(granted[:2] == ("red", ["host1", "host2"]) and len(granted[2]) == 1, f"{granted}")
    cancelled = slurm("scancel", str(first))
    expect(cancelled.status == 0, f"{cancelled}")
    nothing_stays(fabric, slurm)

    of_a_user(slurm)
    nothing_stays(fabric, slurm)

    second = slurm.submit(ranks, "--nodes=2", "--account=red")
    fabric.wait_for_placed(BEFORE + 1)
    slurm.wait_until_saved(second)
    slurm.kill_controller()
    end_workers(slurm, second)
    slurm.start_controller()
    nothing_stays(fabric, slurm)
    slurm.wait_until_idle()
    goes_without_manager(fabric, slurm)


def of_a_user(slurm: Slurm) -> None:
    """The token is his alone, and he can read it."""
    job = slurm.submit('echo "$WEIR_MANAGER"; stat -c "%a %u" "$WEIR_TOKEN_FILE"; wc -c < "$WEIR_TOKEN_FILE"', "--account=red", user=USER)
    wait_for(lambda: slurm.state_of(job) == "COMPLETED", PATIENCE_S, f"job {job} does not end: {slurm.state_of(job)}")
    due = f"127.0.0.1:9480\n400 {pwd.getpwnam(USER).pw_uid}\n67\n"
    expect(slurm.output_of(job, USER) == due, slurm.output_of(job, USER))


def goes_without_manager(fabric: AllocationFabric, slurm: Slurm) -> None:
    """A job runs without rings; where they are required, it goes back into the queue."""
    fabric.kill_manager()
    job = slurm.submit('echo "manager: $WEIR_MANAGER"')
    wait_for(lambda: slurm.output_of(job) == "manager: \n", PATIENCE_S, "the job does not run")
    slurm.controller.configure("required: yes\n")
    job = slurm.submit("echo it runs")
    wait_for(lambda: " Restarts=1 " in slurm("scontrol", "--oneliner", "show", "job", str(job)).output, PATIENCE_S,
             f"it does not come back: {slurm('scontrol', '--oneliner', 'show', 'job', str(job))}")
    expect(slurm.output_of(job) == "", slurm.output_of(job))


def end_workers(slurm: Slurm, job: int) -> None:
    """The ranks die while nobody looks after the job."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"SLURM_JOB_ID={job}".encode() in (process / "environ").read_bytes().split(b"\0") and (process / "exe").readlink() == WORKER.resolve():
                os.kill(int(process.name), 9)
        except OSError:
            continue


def said_of(fabric: AllocationFabric) -> str:
    """By the scripts."""
    return "; ".join(file.read_text() for file in fabric.folder.glob("said-*"))


def nothing_stays(fabric: AllocationFabric, slurm: Slurm) -> None:
    try:
        wait_for(lambda: allocations_of(fabric) == {}, PATIENCE_S, "it is granted still")
    except Failed as late:
        jobs = slurm("squeue", "--noheader", "--states=all").output
        raise Failed(f"{late}: {allocations_of(fabric)}; said: {said_of(fabric)}; jobs: {jobs}") from None
    wait_for(lambda: len(json.loads(fabric.ctl("", "jobs", "--json").output)["jobs"]) == BEFORE, PATIENCE_S, "a job stays")
    fabric.wait_for_placed(BEFORE)
