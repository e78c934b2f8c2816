#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the Debian packages, installs them on a bare Debian and runs the switch there as its operator would.

The bare Debian is a folder, booted with systemd as its first process: the unit's sandbox is the real one. It has a
network of its own, and mounts that end with it. Needs root. Ends in "packages: N passed, N failed, N skipped".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import bare_debian
from bare_debian import ALONE, KILLED_WITH_US, QUIETLY, folder_of_our_own
from install import ROOT, VERSION, cache_of_tests, expect, options_of_tests, output_of, summary, verdict
from style import tracked_files

PACKAGES = ("libweir-dev", "libweir1", "libweir1-nccl", "libweir1-switch", "weir", "weir-mpi", "weir-tools")
PROGRAMS = ("weir", "weir-manager", "weir-nccl-check", "weir-operator", "weir-plan", "weir-replay", "weir-worker", "weirctl")
SOURCES = ("app", "config", "debian", "include", "lib", "meson.build", "meson_options.txt", "proto", "tools")  # of all programs
UNIT = "weir.service"
# What a reviewer of such a unit would accept: systemd's own scale is from 0 to 100.
MOST_EXPOSED = 32
# After the options of the tests' build; these are what debian/rules has otherwise.
UNLIKE_PACKAGES = ("--buildtype=debugoptimized", "-Db_lto=false", "-Dwerror=true")
KEPT = ROOT / "build/packages"
BOOT_S = 60.0
ENDS_S = 20.0


def wait_for(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        expect(time.monotonic() < deadline, f"{otherwise} in {seconds:.0f} s")
        time.sleep(0.1)


class Machine:
    """A bare Debian in a folder: a place to install, and then a running system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._console = root.parent / "console.log"
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def make(self) -> None:
        bare_debian.make(self.root)

    def in_folder(self, *command: object) -> str:
        """Runs a command where nothing else runs."""
        return bare_debian.run_in(self.root, *command)

    def boot(self) -> None:
        command = ("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=read-only",
                   "--private-network", "--capability=all", "--bind-ro=/sys/module", "--boot",
                   "--directory", str(self.root))
        with self._console.open("wb") as log:
            self._nspawn = subprocess.Popen([*ALONE, "--mount-proc", *command], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT)
        wait_for(self._is_up, BOOT_S, "systemd does not come up")

    def _is_up(self) -> bool:
        assert self._nspawn is not None
        expect(self._nspawn.poll() is None, f"systemd-nspawn ended: {self._console.read_text()[-2000:]}")
        nspawn = children_of(self._nspawn.pid)  # the other is unshare
        system = children_of(nspawn[0]) if nspawn else []
        if not system:
            return False
        self._leader = system[0]
        asked = subprocess.run([*self._entry(), "systemctl", "is-system-running"], text=True, capture_output=True)
        return asked.stdout.strip() in ("running", "degraded")

    def _entry(self) -> list[str]:
        return ["nsenter", f"--target={self._leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]

    def run(self, *command: object, status: int = 0) -> str:
        return output_of(*self._entry(), *command, environment=QUIETLY, status=status)

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*KILLED_WITH_US, *self._entry(), *command], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def unit(self, name: str) -> str:
        """A property of the switch's unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", UNIT).strip()

    def journal(self) -> str:
        return self.run("journalctl", "--unit", UNIT, "--output=cat", "--no-pager")

    def close(self) -> None:
        if self._nspawn is not None and self._nspawn.poll() is None:
            self._nspawn.kill()  # systemd-nspawn ends with it, and all others, which are in its process namespace
            self._nspawn.wait()
            wait_for(lambda: not Path(f"/proc/{self._leader}").exists(), ENDS_S, "the bare Debian does not end")
        remove_empty_groups()


def children_of(process: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def remove_empty_groups() -> None:
    """The two control groups that systemd-nspawn makes in ours and leaves there."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        mount = "unified" if not controllers else controllers.removeprefix("name=")
        for name in ("payload", "supervisor"):
            folder = Path("/sys/fs/cgroup") / mount / group.lstrip("/") / name
            for below in sorted([folder, *folder.rglob("*/")], reverse=True):
                with contextlib.suppress(OSError):
                    below.rmdir()


def digest_of_sources() -> str:
    """Of what the packages' programs are made from."""
    digest = hashlib.sha256()
    for file in sorted(tracked_files()):
        name = file.relative_to(ROOT)
        if name.parts[0] in SOURCES:
            digest.update(f"{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class Made:
    folder: Path
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine(self.folder / "machine")

    @property
    def packages(self) -> list[Path]:
        return sorted(self.folder.glob("*.deb"))


def as_for_tests(tree: Path) -> dict[str, str]:
    """As cache_of_tests(). The cache would look for itself in the home that debhelper invents."""
    options = (*UNLIKE_PACKAGES, *options_of_tests())
    return {"DEB_BUILD_OPTIONS": f"nocheck noautodbgsym nodwz parallel={os.cpu_count()}", "MESON_OPTIONS": shlex.join(options),
            "BUILD_FOLDER": "build", "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(Path.home() / ".cache/ccache")),
            **cache_of_tests(tree)}


def build(made: Made) -> None:
    """In a copy, because packages are built inside the source tree; in a path without blanks, which compilers' options
    with prefixes do not bear."""
    tree = made.folder / f"weir-{VERSION}"
    for file in tracked_files():
        target = tree / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    output_of("dpkg-buildpackage", "--build=binary", "--unsigned-source", "--unsigned-changes", cwd=tree,
              environment=as_for_tests(tree))
    due = sorted(f"{name}_{VERSION}_amd64.deb" for name in PACKAGES)
    found = sorted(file.name for file in made.packages)
    expect(found == due, f"built {found}; should be {due}")
    keep(made.packages)


def keep(packages: Sequence[Path]) -> None:
    """For other tests of the same sources."""
    shutil.rmtree(KEPT, ignore_errors=True)
    folder = KEPT / digest_of_sources()
    folder.mkdir(parents=True)
    for package in packages:
        shutil.copy2(package, folder)


def kept_or_built() -> Path:
    """A folder with the packages: those that this stage has built of the same sources, if it has."""
    folder = KEPT / digest_of_sources()
    if not folder.exists():
        with folder_of_our_own("packages") as place:
            build(Made(place))
    return folder


def check_lintian(made: Made) -> None:
    changes = next(made.folder.glob("*.changes"))
    # In compiled code it takes an instruction after a word for a letter of that word. Debian's checks against overflows, which dpkg
    # gives to the compiler, are not in the tests' objects.
    said = output_of("lintian", "--allow-root", "--pedantic", "--display-info", "--tag-display-limit=0", "--info",
                     "--suppress-tags=spelling-error-in-binary,hardening-no-fortify-functions", "--fail-on=none", changes)
    expect(not said.strip(), f"lintian found:\n{said}")


def check_clean_machine(made: Made) -> None:
    made.machine.make()
    folder = made.machine.root / "packages"
    folder.mkdir()
    for package in made.packages:
        shutil.copy2(package, folder)


def check_install(made: Made) -> None:
    """With what the packages depend on, and nothing else."""
    made.machine.in_folder("apt-get", "update", "-qq")
    made.machine.in_folder("sh", "-ec", "apt-get install -qq --no-install-recommends /packages/*.deb")
    for program in PROGRAMS:
        said = made.machine.in_folder(program, "--version")
        expect(said == f"{program} {VERSION}\n", f"{program} --version says {said!r}")


def installed_files(machine: Machine) -> list[Path]:
    names = machine.in_folder("dpkg", "--listfiles", *PACKAGES).splitlines()
    return [machine.root / name.lstrip("/") for name in names if name.startswith("/") and name != "/."]


def check_files(made: Made) -> None:
    """All belong to root; nobody else may write them, and none gives its rights to who starts it."""
    for file in installed_files(made.machine):
        found = file.lstat()
        expect(found.st_uid == found.st_gid == 0, f"{file} belongs to {found.st_uid}:{found.st_gid}")
        if not file.is_symlink():
            wrong = found.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH)
            expect(not wrong, f"{file} has mode {found.st_mode:o}")
    machine = made.machine
    expect(machine.in_folder("id", "weir").startswith("uid="), "there is no user weir")


def check_boot(made: Made) -> None:
    """A fresh installation neither starts the switch nor will at the next boot."""
    made.machine.boot()
    found = made.machine.unit("ActiveState"), made.machine.unit("UnitFileState")
    expect(found == ("inactive", "disabled"), f"the unit is {found}")


def check_unit(made: Made) -> None:
    said = made.machine.run("systemd-analyze", "verify", "--man=no", UNIT)
    expect(not said, f"systemd-analyze verify says {said}")
    made.machine.run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", UNIT)
    made.machine.run("systemctl", "start", UNIT)
    wait_for(lambda: made.machine.unit("StatusText") == "forwards", 10, "systemd does not hear that it forwards")
    expect("the switch would start: wrong 0, " in made.machine.journal(), f"the server is not checked:\n{made.machine.journal()}")


def hexadecimal(process: str, name: str) -> int:
    return int(re.search(rf"^{name}:\s*([0-9a-f]+)$", process, re.MULTILINE)[1], 16)


def check_sandbox(made: Made) -> None:
    """The running switch is not root, and has of root's powers what the unit names."""
    machine = made.machine
    process = machine.run("cat", f"/proc/{machine.unit('MainPID')}/status")
    user = machine.run("id", "--user", "weir").strip()
    expect(re.search(rf"^Uid:\t{user}\t{user}\t{user}\t{user}$", process, re.MULTILINE), f"whose is it?\n{process}")
    named = machine.unit("CapabilityBoundingSet").split()
    held = hexadecimal(process, "CapEff")
    expect(0 < held == hexadecimal(process, "CapBnd") and held.bit_count() == len(named) < 8,
           f"the unit names {named}, and the process has {held:x}")
    for name, due in (("NoNewPrivs", 1), ("Seccomp", 2)):
        expect(hexadecimal(process, name) == due, f"{name} should be {due}:\n{process}")


def documented_workers() -> list[list[str]]:
    """The commands in the head of the first configuration."""
    head = re.sub(r"^# ?", "", (ROOT / "config/weir.yaml").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [line.rstrip(" &").split() for line in head.splitlines() if line.lstrip().startswith("weir-worker ")]


def check_all_reduce(made: Made) -> None:
    """What the first configuration tells a person to type."""
    commands = documented_workers()
    expect(len(commands) == 2, f"found {commands} in config/weir.yaml; should be two workers")
    workers = [made.machine.start("timeout", "60", *command, "--size", "1MiB") for command in commands]
    for rank, worker in enumerate(workers):
        said, _ = worker.communicate()
        expect(worker.returncode == 0 and f"result: rank={rank} " in said and "algorithm=switch" in said
               and "verified=every_element" in said, f"rank {rank} ended with {worker.returncode} and said {said}")


def check_journal(made: Made) -> None:
    """The journal has the switch's events with fields that one can ask for."""
    def asked() -> list[dict[str, str]]:
        said = made.machine.run("journalctl", "--unit", UNIT, "WEIR_EVENT=job_began", "WEIR_RING=1", "--output=json", "--no-pager")
        return [json.loads(line) for line in said.splitlines()]

    wait_for(lambda: bool(asked()), 10, "the journal does not hear of the job")
    wanted = {"PRIORITY": "5", "SYSLOG_IDENTIFIER": "weir", "WEIR_RANKS": str(len(documented_workers()))}
    expect(asked()[0].items() >= wanted.items(), f"the journal has another line: {asked()}")


def check_switch_module(made: Made) -> None:
    """The worker finds the module: it asks a switch, which is not there."""
    workers = [made.machine.start("timeout", "60", *command, "--switch", "/nowhere.sock") for command in documented_workers()]
    for rank, worker in enumerate(workers):
        said, _ = worker.communicate()
        expect(worker.returncode == 1 and "switch /nowhere.sock: no answer: " in said,
               f"rank {rank} ended with {worker.returncode} and said {said}")


def check_control(made: Made) -> None:
    """weirctl finds the service's switch by itself, as root and as the service's user; nobody else gets an answer."""
    ask = ("weirctl", "show", "ring", "1", "json")
    row = json.loads(made.machine.run(*ask))["rings"][0]
    expect(row["connected"] == len(documented_workers()), f"show ring 1 says {row}")
    made.machine.run("setpriv", "--reuid=weir", "--regid=weir", "--clear-groups", *ask)
    made.machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *ask, status=1)


def check_appliance(made: Made) -> None:
    """The installed switch, with jobs that come, go and die: a short day of tests/appliance.py."""
    said = output_of(ROOT / "tests/appliance.py", "--rounds", "10", "--pairs", "1", "--seconds", "4",
                     "--weir", made.machine.root / "usr/bin/weir")
    print("".join(line + "\n" for line in said.splitlines() if line.startswith("appliance: ")), end="", flush=True)


def check_upgrade(made: Made) -> None:
    """A running switch goes on, and the operator's configuration stays."""
    machine = made.machine
    config = machine.root / "etc/weir/weir.yaml"
    config.write_text(config.read_text() + "# mine\n")
    before = machine.unit("MainPID")
    machine.run("sh", "-ec", "dpkg --install --force-confdef /packages/*.deb")
    expect(machine.unit("MainPID") == before != "0", "an upgrade restarted the switch")
    expect(config.read_text().endswith("# mine\n"), "an upgrade changed the configuration")


def check_wrong_configuration(made: Made) -> None:
    """The journal has the line, and systemd does not try it again and again."""
    machine = made.machine
    config = machine.root / "etc/weir/weir.yaml"
    right = config.read_text()
    config.write_text(right.replace("window: 8", "windw: 8"))
    machine.run("systemctl", "stop", UNIT)
    machine.run("systemctl", "start", UNIT, status=1)
    found = machine.unit("ExecMainStatus"), machine.unit("NRestarts"), machine.unit("ActiveState")
    expect(found == ("2", "0", "failed"), f"status, restarts and state are {found}")
    expect("rings[0].windw: found an unknown key" in machine.journal(), f"the journal has\n{machine.journal()}")
    config.write_text(right)
    machine.run("systemctl", "enable", "--now", UNIT)


def remains(machine: Machine) -> list[str]:
    """Files with weir in their names, but for the packages themselves."""
    return machine.run("find", "/", "-xdev", "-path", "/packages", "-prune", "-o", "-name", "*weir*", "-print").split()


def check_purge(made: Made) -> None:
    machine = made.machine
    expect(machine.unit("ActiveState") == "active", "the switch does not run before it is removed")
    process = machine.unit("MainPID")
    machine.run("apt-get", "remove", "-qq", "weir")
    machine.run("test", "!", "-e", f"/proc/{process}")
    expect((machine.root / "etc/weir/weir.yaml").exists(), "a removal took the configuration with it")
    machine.run("apt-get", "purge", "-qq", *PACKAGES)
    expect(not remains(machine), f"left behind: {remains(machine)}")


CHECKS: tuple[Callable[[Made], None], ...] = (
    check_lintian, check_clean_machine, check_install, check_files, check_boot, check_unit, check_sandbox,
    check_all_reduce, check_journal, check_switch_module, check_control, check_appliance, check_upgrade,
    check_wrong_configuration, check_purge,
)


def main() -> int:
    if os.geteuid() != 0:
        print("packages: 0 passed, 0 failed, 1 skipped\n  only root can make a bare Debian")
        return 0
    words = []
    with folder_of_our_own("packages") as folder:
        made = Made(folder)
        try:
            for check in (build, *CHECKS):
                words.append(verdict(check.__name__.removeprefix("check_").replace("_", " "), lambda: check(made)))
                if words[-1] == "FAILED" and check is not check_lintian:
                    break  # each goes on where the one before it ended
        finally:
            made.machine.close()
    return summary("packages", words)


if __name__ == "__main__":
    sys.exit(main())
