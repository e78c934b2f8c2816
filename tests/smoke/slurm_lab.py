# SPDX-License-Identifier: BSD-3-Clause
"""Slurm of this system beside a fabric's manager: munged, slurmctld and nodes as processes in the fabric's namespace."""
from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from allocation_lab import ADDRESS, SCHEDULER, WEIRCTL, AllocationFabric
from lab import Lab
from netns import run
from weir import ROOT, Ended, Skipped, expect, run_to_end, wait_for

SCRIPTS = ROOT / "tools/slurm"
NODES = 4
CLUSTER = "lab"
PATIENCE_S = 40
UNPACKED = ROOT / "build"  # by tools/prepare
PROGRAMS = {"slurmctld": "slurmctld/usr/sbin/slurmctld-wlm", "slurmd": "slurmd/usr/sbin/slurmd-wlm", "munged": "munge/usr/sbin/munged",
            "slurmstepd": "slurmd/usr/sbin/slurmstepd-wlm",
            **{name: f"slurm-client/usr/bin/{name}" for name in ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")}}
LIBRARIES = ("libmunge2/usr/lib/x86_64-linux-gnu", "slurm-wlm-basic-plugins/usr/lib/x86_64-linux-gnu/slurm-wlm")
USER = "nobody"


def slurm_environment(folder: Path) -> dict[str, str]:
    """With the programs in a folder of their own: copies of those that `tools/prepare test` has unpacked, or the system's.

    Copies, because a clone may lie where no other user may look, or in a folder with blanks, which Slurm's configuration has no path with.
    """
    folder.mkdir()
    folder.chmod(0o755)
    is_unpacked = all((UNPACKED / file).exists() for file in PROGRAMS.values())
    for program, file in PROGRAMS.items():
        found = shutil.which(program)
        if is_unpacked:
            shutil.copy(UNPACKED / file, folder / program)
        elif found is None:
            raise Skipped(f"there is no {program}: `tools/prepare test` unpacks it")
        else:
            (folder / program).symlink_to(found)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    if is_unpacked:
        copies = [shutil.copytree(UNPACKED / library, folder / Path(library).name, symlinks=True) for library in LIBRARIES]
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, copies))
    return environment


class Scripts:
    """Weir's scripts for Slurm as they are installed on a machine: with a configuration of its own."""

    def __init__(self, fabric: AllocationFabric, machine: str) -> None:
        """The machine's certificate has this name."""
        self.folder = fabric.folder / f"scripts-{machine}"
        self.tokens = self.folder / "tokens"
        (self.folder / "weir/slurm").mkdir(parents=True)
        self.said = fabric.folder / f"said-{machine}"  # in place of the system's log
        for script in SCRIPTS.glob("*.in"):
            text = script.read_text().replace("@bindir@", str(WEIRCTL.parent)).replace("@sysconfdir@", str(self.folder))
            text = text.replace("@slurmdir@", str(self.path(""))).replace("=/run/weir-slurm\n", f"={self.tokens}\n")
            self.path(script.stem).write_text(text.replace("logger -t weir-slurm -- ", f"echo >>{self.said} "))
            self.path(script.stem).chmod(0o755)
        certificate, key = fabric.signed(machine)
        self._lines = f"certificate: {certificate}\nkey: {key}\nauthority: {fabric.authority.certificate}\n"
        self.configure()

    def configure(self, more: str = "", managers: str = ADDRESS) -> None:
        (self.folder / "weir/slurm.yaml").write_text(f"manager: {managers}\n{self._lines}{more}")

    def path(self, name: str) -> Path:
        return self.folder / "weir/slurm" / name


class Slurm:
    """Nodes with the first hosts' names. Each has the scripts of its own host."""

    def __init__(self, lab: Lab, fabric: AllocationFabric, environment: dict[str, str]) -> None:
        self._lab, self._fabric = lab, fabric
        self._conf = fabric.folder / "slurm.conf"
        self._environment = [f"{name}={value}" for name, value in environment.items()] + [f"SLURM_CONF={self._conf}"]
        lab.on_end(self._end_jobs)
        self._plugins = environment.get("LD_LIBRARY_PATH", "").rpartition(":")[2]
        self.folder = fabric.folder
        self.controller = Scripts(fabric, SCHEDULER)
        self.nodes = [Scripts(fabric, f"host{node}") for node in range(NODES)]
        self.folder.chmod(0o755)  # munged and other users' jobs look into it
        for name in ("munge", "state"):
            (self.folder / name).mkdir(mode=0o755)
        self._lay_cables()
        self._write_configuration()
        self._start_munge()
        self.start_controller()
        for node in range(NODES):
            self.start(["slurmd", "-D", "-N", f"host{node}", "-d", str(self.folder / "bin/slurmstepd")])
        self.wait_until_idle()

    def _write_configuration(self) -> None:
        """A script of a node is one that runs the node's."""
        for name in ("prolog", "task-prolog", "epilog"):
            switch = self.folder / name
            switch.write_text(f'#!/bin/sh\nexec "{self.folder}/scripts-$SLURMD_NODENAME/weir/slurm/{name}"\n')
            switch.chmod(0o755)
        host = socket.gethostname()
        nodes = "".join(f"NodeName=host{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={17100 + node} CPUs=1 State=UNKNOWN\n"
                        for node in range(NODES))
        plugins = f"PluginDir={self._plugins}\n" if self._plugins else ""
        self._conf.write_text(
            f"ClusterName={CLUSTER}\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={self.folder}/munge/socket\nCredType=cred/munge\n"
            f"StateSaveLocation={self.folder}/state\nSlurmdSpoolDir={self.folder}/spool.%n\n"
            f"SlurmctldPidFile={self.folder}/slurmctld.pid\nSlurmdPidFile={self.folder}/slurmd.%n.pid\n"
            f"SlurmctldPort=17091\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n"
            f"JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nReturnToService=2\n"
            f"SelectType=select/linear\nKillWait=1\nMinJobAge=300\nSlurmctldParameters=idle_on_node_suspend\n"
            f"PrologSlurmctld={self.controller.path('prolog-slurmctld')}\nEpilogSlurmctld={self.controller.path('epilog-slurmctld')}\n"
            f"Prolog={self.folder}/prolog\nEpilog={self.folder}/epilog\nTaskProlog={self.folder}/task-prolog\n"
            f"{plugins}{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return self._fabric.start(self._lab, "env", *self._environment, *command)

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.start(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/socket", f"--pid-file={folder}/pid",
                     f"--seed-file={folder}/seed", f"--log-file={folder}/log"])
        wait_for(lambda: (folder / "socket").exists(), PATIENCE_S, "munged does not begin")

    def start_controller(self) -> None:
        self.slurmctld = self.start(["slurmctld", "-D"])

    def wait_until_saved(self, job: int) -> None:
        """slurmctld saves what is new every few seconds: a job that it knew for less it forgets when it is killed."""
        file, begun = self.folder / "state/job_state", time.time()
        self("scontrol", "update", f"JobId={job}", "Comment=new")
        wait_for(lambda: file.exists() and file.stat().st_mtime > begun, PATIENCE_S, "slurmctld does not save its state")

    def kill_controller(self) -> None:
        self.slurmctld.kill()
        self.slurmctld.wait()

    def __call__(self, *command: str) -> Ended:
        with self._fabric.entered():
            return run_to_end(["env", *self._environment, *command])

    def wait_until_idle(self) -> None:
        """None is drained either."""
        wait_for(lambda: self("sinfo", "--noheader", "--format=%D %t").output == f"{NODES} idle\n", PATIENCE_S,
                 f"not all nodes are idle: {self('sinfo')}")

    def submit(self, script: str, *options: str, user: str = "root") -> int:
        folder = self.folder / f"job-{user}"
        folder.mkdir(exist_ok=True)
        who = pwd.getpwnam(user)
        shutil.chown(folder, who.pw_uid)
        file = folder / "script"
        file.write_text(f"#!/bin/sh\n{script}\n")
        ended = self("setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups", "sbatch", "--parsable", f"--chdir={folder}",
                     f"--output={folder}/%j.out", *options, str(file))
        expect(ended.status == 0, f"{ended}")
        return int(ended.output)

    def output_of(self, job: int, user: str = "root") -> str:
        file = self.folder / f"job-{user}" / f"{job}.out"
        return file.read_text() if file.exists() else ""

    def state_of(self, job: int) -> str:
        return self("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").output.strip()

    def _end_jobs(self) -> None:
        """What slurmd has started lives on without it."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self._conf).encode() in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    def _lay_cables(self) -> None:
        """An interface for each node. One has an address: where there is none but loopback's, Slurm finds no address at all."""
        with self._fabric.entered():
            for node in range(NODES):
                run("ip", "link", "add", f"host{node}", "type", "veth", "peer", "name", f"cable{node}")
                for interface in (f"host{node}", f"cable{node}"):
                    run("ip", "link", "set", interface, "up")
            run("ip", "address", "add", "10.98.0.1/24", "dev", "cable0")
