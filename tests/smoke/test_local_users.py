# SPDX-License-Identifier: BSD-3-Clause
"""What a user without rights can do on the switch's machine: reach nothing, read nothing, hold up nothing."""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from hosts import ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from test_control import WEIRCTL
from weir import NO_HUGEPAGES, ONE_CORE, QUIET_PORT, ROOT, WEIR, Weir, configuration, expect, run_to_end, wait_for

NOBODY = 65534
SQUATTER = "squatter"  # what it makes where it can
CLONE_NEWNS = 0x00020000
WITH_FILES = NO_HUGEPAGES.replace(', "--no-shconf"', "")
MADE_BY_SWITCH = ("/run", "/tmp")  # and the test's own folder


def as_nobody(switch: Weir, do: Callable[[], object]) -> tuple[int, int]:
    """Starts a child without rights that sees the switch's files. Its process id, and a pipe with the result as JSON."""
    files = os.open(f"/proc/{switch.process.pid}/ns/mnt", os.O_RDONLY)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            signal.alarm(60)
            if ctypes.CDLL(None).setns(files, CLONE_NEWNS) != 0:
                os._exit(1)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writes, json.dumps(do()).encode() + b"\n")
            signal.pause()  # it keeps what it has
        finally:
            os._exit(1)
    os.close(files)
    os.close(writes)
    return child, reads


@contextlib.contextmanager
def nobody(switch: Weir, do: Callable[[], object]) -> Iterator[list[list[str]]]:
    """What such a child has found, while it lives."""
    child, reads = as_nobody(switch, do)
    with os.fdopen(reads) as pipe:
        line = pipe.readline()
    try:
        expect(line, "the child without rights has ended")
        yield json.loads(line)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def connects(path: Path) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as caller:
            caller.connect(str(path))
            return True
    return False


def opens(path: Path, flags: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, flags | os.O_NONBLOCK)
    return None


def reached(folders: list[Path]) -> list[tuple[str, str]]:
    """All that a user can do to files below these folders. Locks whatever it can open, for as long as it lives."""
    done: list[tuple[str, str]] = []

    def attempt(path: Path) -> None:
        mode = path.lstat().st_mode
        if stat.S_ISSOCK(mode):
            if connects(path):
                done.append(("connect", str(path)))
            return
        reader = opens(path, os.O_RDONLY)
        if reader is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(reader, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISREG(mode):
                done.append(("read", str(path)))
        if stat.S_ISDIR(mode):
            if opens(path / SQUATTER, os.O_WRONLY | os.O_CREAT) is not None:
                done.append(("create", str(path)))
        elif opens(path, os.O_WRONLY) is not None:
            done.append(("write", str(path)))

    for folder in folders:
        attempt(folder)
        for place, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if Path(place) / name != ROOT]  # the tree that is tested
            for name in {*inner, *files} - {SQUATTER}:
                with contextlib.suppress(OSError):
                    attempt(Path(place) / name)
    return done


def open_folder(lab: Lab) -> Path:
    """As systemd makes /run/weir: all may look into it."""
    lab.directory.chmod(0o755)
    folder = lab.directory / "run"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    return folder


@contextlib.contextmanager
def careless() -> Iterator[None]:
    """Started by somebody who has no umask."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def control(folder: Path) -> str:
    return f'control: {{ listen: ["unix:{folder}/control.sock"] }}\n'


@smoke_test("local-user")
def local_user(lab: Lab) -> None:
    """A user without rights sees the folder with all that the switch makes, and gets at none of it; nor do its locks keep the
    next switch from listening."""
    folder = open_folder(lab)
    fabric, hosts = ring_of_hosts(lab)
    device = f"net_memif0,role=server,id=0,socket={folder}/port.sock,socket-abstract=no"
    config = configuration([*ring_ports(), f'name: m0, device: "{device}"'], ONE_CORE, eal=WITH_FILES) + control(folder) + \
        f"state_directory: {folder}/state\nspare: {{ rings: 1, members: 4, frames: 64 }}\n"
    with careless():
        switch = lab.ready_weir(fabric, config)
    server = ["--server", f"unix:{folder}/control.sock"]
    told = run_to_end([WEIRCTL, *server, "capture", "port", "all", folder / "all.pcapng"], namespace=fabric)
    expect(told.status == 0, f"{told}")
    wait_for(lambda: (folder / "all.pcapng").exists(), 5, "no capture")
    made = {"port.sock", "control.sock", "state", "all.pcapng"}
    expect(made <= {path.name for path in folder.iterdir()}, f"the switch has not made all of {made}")
    folders = [folder, *map(Path, MADE_BY_SWITCH)]
    with nobody(switch, lambda: reached(folders)) as done:
        own_tmp = [["create", "/tmp"]]  # the test's tmpfs, where the switch has nothing
        expect(done in ([], own_tmp, [["create", "/run"], *own_tmp]), f"nobody did {done}")
        switch.stop()
        second = lab.ready_weir(fabric, config)
        wait_for(lambda: run_to_end([WEIRCTL, *server, "show", "lcores"], namespace=fabric).status == 0, 15,
                 f"held up by another user's lock: {second.output()}")
    names = Path(f"/proc/{second.process.pid}/net/unix").read_text()
    expect("@" not in names, f"an abstract socket, which has no owner: {names}")
    second.stop()


@smoke_test("local-user-shared-folders")
def shared_folders(lab: Lab) -> None:
    """No socket, journal or device is in a folder where others can put theirs first, or whose name they can turn."""
    fabric, _ = ring_of_hosts(lab)
    lab.directory.chmod(0o755)
    shared = lab.directory / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    theirs = shared / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    lured = shared / "lured"
    lured.symlink_to(open_folder(lab))
    os.lchown(lured, NOBODY, NOBODY)
    flaws = ((shared, f"{shared} may be written to by others (mode 1777)"), (theirs, f"{theirs} belongs to user {NOBODY}"),
             (lured, f"{lured} belongs to user {NOBODY}"))
    for folder, flaw in flaws:
        for device in (f"net_memif0,role=server,id=0,socket={folder}/port.sock,socket-abstract=no",
                       f"net_memif0,role=client,id=0,socket={folder}/port.sock,socket-abstract=no",
                       f"net_vhost0,iface={folder}/port.sock"):
            config = configuration([f'name: p0, device: "{device}"'], eal=WITH_FILES)
            ended = lab.weir(fabric, config, "--no-interactive").refusal()
            expect(ended.status == 1 and f"weir: port p0: device {device}: {flaw}; allowed: " in ended.output, f"{ended}")
        config = configuration([QUIET_PORT]) + \
            f"state_directory: {folder}\nspare: {{ rings: 1, members: 4, frames: 64 }}\n"
        ended = lab.weir(fabric, config, "--no-interactive").refusal()
        expect(ended.status == 2 and f"weir: state_directory: {flaw}; allowed: " in ended.output, f"{ended}")
    switch = lab.ready_weir(fabric, configuration([QUIET_PORT]) + control(shared))
    expect(f"cannot listen at unix:{shared}/control.sock: {flaws[0][1]}; allowed: " in switch.output(), switch.output())
    switch.stop()
    expect(sorted(path.name for path in shared.iterdir()) == ["lured", "theirs"], f"{[*shared.iterdir()]}")


@smoke_test("local-user-first-in-tmp")
def first_in_tmp(lab: Lab) -> None:
    """EAL of a user without /run and XDG_RUNTIME_DIR keeps its files in /tmp/dpdk. Whoever is first there has them."""
    config = lab.file("null.yaml", configuration([QUIET_PORT], eal=WITH_FILES))
    lab.directory.chmod(0o755)
    squat = 'mkdir -m 755 /tmp/dpdk; chown 1 /tmp/dpdk; chmod 1777 /tmp; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
    program = lab.directory / "weir"
    program.write_bytes(WEIR.read_bytes())  # the build's folder may be root's alone
    program.chmod(0o755)
    config.chmod(0o644)
    ended = run_to_end(["env", "-u", "XDG_RUNTIME_DIR", "-u", "RUNTIME_DIRECTORY", "sh", "-ec", squat, "sh", program, "--config", config,
                        "--no-interactive"], namespace=lab.namespace())
    expect(ended.status == 1 and "weir: EAL does not start: /tmp/dpdk belongs to user 1; allowed: " in ended.errors, f"{ended}")


@smoke_test("abstract-sockets")
def abstract_sockets(lab: Lab) -> None:
    """Everybody can reach these, and bind their names first. DPDK's memif has them unless told otherwise."""
    for devargs in ("role=server,id=0", "role=client,id=0,socket=/run/x.sock", "role=server,id=0,socket=x,socket-abstract=yes"):
        config = lab.file("abstract.yaml", configuration([f'name: p0, device: "net_memif0,{devargs}"']))
        ended = run_to_end([WEIR, "--config", config], namespace=lab.namespace())
        expect(ended.status == 2 and "ports[0].device: found " in ended.errors and "socket-abstract=no" in ended.errors, f"{ended}")


@smoke_test("long-socket-paths")
def long_socket_paths(lab: Lab) -> None:
    """The kernel takes 107 bytes. Who has more reads that, not what a library makes of it."""
    long = "/run/" + "x" * 145
    said = "150 bytes; allowed: at most 107\n"
    for config in (configuration([f'name: p0, device: "net_memif0,role=server,socket={long},socket-abstract=no"']),
                   configuration([f'name: p0, device: "net_vhost0,iface={long}"']),
                   configuration([QUIET_PORT]) + f'control: {{ listen: ["unix:{long}"] }}\n'):
        ended = run_to_end([WEIR, "--config", lab.file("long.yaml", config)], namespace=lab.namespace())
        expect(ended.status == 2 and said in ended.errors, f"{ended}")
    ended = run_to_end([WEIRCTL, "--server", f"unix:{long}", "show", "lcores"])
    expect(ended.status == 1 and said in ended.errors, f"{ended}")


@smoke_test("socket-folder")
def socket_folder(lab: Lab) -> None:
    """The installed configuration, started by hand: the folder of its sockets is made, for this user alone. Where it cannot be
    made the error names it."""
    text = (ROOT / "config/weir.yaml").read_text()
    switch = lab.ready_weir(lab.namespace(), text)
    folder = Path(f"/proc/{switch.process.pid}/root/run/weir")
    expect(stat.S_IMODE(folder.stat().st_mode) == 0o700 and (folder / "first.sock").is_socket(), "the folder")
    expect("weir: port p0: made /run/weir for its socket [setting_refused " in switch.output(), switch.output())
    switch.stop()
    ended = lab.weir(lab.namespace(), text.replace("/run/weir/", "/run/a/b/"), "--no-interactive").refusal()
    expect(ended.status == 1 and "found no folder /run/a/b, and it cannot be made (No such file or directory)" in ended.output,
           f"{ended}")


@smoke_test("process-limits")
def process_limits(lab: Lab) -> None:
    """Too few open files or threads: an error with both numbers, not a library's abort; a soft limit is raised."""
    config = lab.file("null.yaml", configuration([QUIET_PORT]))
    quits = lab.file("quit", "quit\n")
    ended = run_to_end(["prlimit", "--nofile=64:64", WEIR, "--config", config], namespace=lab.namespace())
    expect(ended.status == 1 and "weir: found a limit of 64 open files; allowed: at least 264 for 1 ports" in ended.errors, f"{ended}")
    ended = run_to_end(["prlimit", "--nofile=64:4096", WEIR, "--config", config, "--cmd-file", quits], namespace=lab.namespace())
    expect(ended.status == 0, f"{ended}")
    lab.directory.chmod(0o755)
    config.chmod(0o644)
    program = lab.directory / "weir"
    program.write_bytes(WEIR.read_bytes())
    program.chmod(0o755)
    ended = run_to_end(["prlimit", "--nproc=16", "setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", program,
                        "--config", config], namespace=lab.namespace())
    expect(ended.status == 1 and "threads; allowed: at least 33 (ulimit -u" in ended.errors, f"{ended}")
