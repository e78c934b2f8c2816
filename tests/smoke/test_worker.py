# SPDX-License-Identifier: BSD-3-Clause
"""Ranks as processes: the C API, weir-worker's required options, and what killed processes leave behind."""
from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from hosts import RANKS, ring_7, ring_ports
from lab import Lab, smoke_test
from netns import KILLED_WITH_US, Namespace, veth
from weir import BUILD, NO_HUGEPAGES, Failed, Weir, configuration, expect, run_to_end, wait_for

WORKER = BUILD / "app" / "weir-worker"
SUPPORT = BUILD / "tests" / "support"
C_RANK = SUPPORT / "c_rank"
RENDEZVOUS = "127.0.0.1:7471"
JOB_S = 60.0


class Process:
    """A process that is killed at the end of the test at the latest."""

    def __init__(self, lab: Lab, namespace: Namespace, command: Sequence[str | Path], **environment: str) -> None:
        with namespace.entered():
            self.process = subprocess.Popen([*KILLED_WITH_US, *map(str, command)], env=os.environ | environment, text=True,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lab.on_end(self.kill)

    def wait(self) -> tuple[int, str]:
        try:
            output = self.process.communicate(timeout=JOB_S)[0]
        except subprocess.TimeoutExpired:
            raise Failed(f"`{self.process.args!r}` does not end") from None
        return self.process.returncode, output

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def run_ranks(lab: Lab, outside: Namespace, program: Path, ring: str, says: str) -> None:
    """Four ranks of a program that takes c_rank's arguments; each must end well and say so."""
    transport = ["software"] if program == C_RANK else []
    ranks = [Process(lab, outside, [program, str(rank), str(RANKS), RENDEZVOUS, ring, *transport, f"host{rank}",
                                    f"10.77.0.{rank + 1}"]) for rank in range(RANKS)]
    for number, process in enumerate(ranks):
        status, output = process.wait()
        expect(status == 0 and says in output, f"{program.name}: rank {number}: {status}, {output}")


def switch_and_hosts(lab: Lab, ring: str) -> tuple[Weir, Namespace]:
    """A switch with a ring, and the namespace of its hosts' interfaces."""
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", outside, f"host{rank}")
    return lab.ready_weir(fabric, configuration(ring_ports(), rings=ring)), outside


@smoke_test("c-api")
def c_api(lab: Lab) -> None:
    """Four ranks in C over the software transport: through a ring of the switch, then through one it does not know."""
    switch, outside = switch_and_hosts(lab, ring_7())
    run_ranks(lab, outside, C_RANK, "7", "c_rank: exact by way of the switch")
    run_ranks(lab, outside, C_RANK, "8", "c_rank: exact by way of the ring no RESULT flag: ")
    switch.stop()


@smoke_test("examples")
def examples(lab: Lab) -> None:
    """The programs of docs/examples, whose options are the defaults."""
    switch, outside = switch_and_hosts(lab, ring_7(window=8, max_message_bytes=65536))
    run_ranks(lab, outside, SUPPORT / "example_c", "7", "10 by way of the switch")
    run_ranks(lab, outside, SUPPORT / "example_cpp", "7", "10 and 3 by way of the switch")
    switch.stop()


COLLECTIVES = ("all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "barrier")


@smoke_test("collectives")
def collectives(lab: Lab) -> None:
    """Each collective by weir-worker, with one rank's frames lost now and then, in place and not; by the switch and without."""
    switch, outside = switch_and_hosts(lab, ring_7())
    for ring, way in (("7", "switch"), ("8", "ring")):
        for number, name in enumerate(COLLECTIVES):
            placement = ("--in-place", "--out-of-place")[number % 2]
            ranks = [Process(lab, outside, [
                WORKER, "--rank", str(rank), "--world", str(RANKS), "--rendezvous", RENDEZVOUS, "--ring", ring,
                "--device", f"iface=host{rank}", "--ip", f"10.77.0.{rank + 1}", "--window", "4", "--message-bytes", "16384",
                "--collective", name, "--root", "2", "--size", "160000", "--repeat", "3", "--fallback", "ring", placement,
                *(("--loss", "0.01") if rank == 1 else ())]) for rank in range(RANKS)]
            for rank, process in enumerate(ranks):
                status, output = process.wait()
                due = f"algorithm={way} verified=every_element collective={name}"
                expect(status == 0 and due in output, f"{name}: rank {rank}: {status}, {output}")
    switch.stop()


@smoke_test("worker-usage")
def worker_usage(lab: Lab) -> None:
    complete = {"--rank": "0", "--world": "2", "--rendezvous": RENDEZVOUS, "--device": "iface=lo", "--ip": "10.0.0.1"}
    for option in ("--rank", "--world", "--rendezvous", "--device"):
        given = [word for name, value in complete.items() if name != option for word in (name, value)]
        ended = run_to_end([WORKER, *given])
        expect(ended.status == 2 and f"missing: {option};" in ended.errors, f"without {option}: {ended}")
    ended = run_to_end([WORKER])
    expect(ended.status == 2 and "missing: --rank, --world, --rendezvous, --device;" in ended.errors, f"{ended}")
    given = [word for name, value in complete.items() if name != "--ip" for word in (name, value)]
    ended = run_to_end([WORKER, *given])
    expect(ended.status == 2 and "ip: found ''" in ended.errors, f"{ended}")
    everything = [word for pair in complete.items() for word in pair]
    for size in ("4.5B", "-1", "1GB", "", "65537GiB", str(2**64)):
        ended = run_to_end([WORKER, *everything, "--size", size])
        expect(ended.status == 2 and f"--size: found '{size}'; allowed: " in ended.errors, f"{ended}")
    for loss in ("nan", "1", "-0.1"):
        ended = run_to_end([WORKER, *everything, "--loss", loss])
        expect(ended.status == 2 and f"--loss: found '{loss}'; allowed: 0 .. 0.9" in ended.errors, f"{ended}")
    ended = run_to_end(["prlimit", f"--as={2**31}", WORKER, *everything, "--size", "4GiB"])
    expect(ended.status == 1 and f"no memory for a tensor of {2**32} bytes" in ended.errors, f"{ended}")
    largest = ["--window", "512", "--message-bytes", "16MiB", "--mtu", "4096"]
    ended = run_to_end(["prlimit", f"--as={2**31}", WORKER, *everything, *largest])
    expect(ended.status == 1 and "no memory for 1 x 1024 slots of 16777216 bytes" in ended.errors, f"{ended}")
    ended = run_to_end([WORKER, *everything, "--window", "1024", "--message-bytes", "1GiB"])
    expect(ended.status == 2 and "window: found 1024" in ended.errors, f"{ended}")


def memif(folder: Path, role: str) -> str:
    return f"net_memif0,role={role},id=0,socket={folder}/memif.sock,socket-abstract=no"


def memif_switch(folder: Path) -> str:
    eal = NO_HUGEPAGES.replace(', "--no-shconf"', "")
    return configuration([f'name: p0, device: "{memif(folder, "server")}"'], eal=eal)


@smoke_test("worker-last-words")
def worker_last_words(lab: Lab) -> None:
    """A worker that a signal ends prints a line, and its status is still that of the signal."""
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT):
        worker = Process(lab, lab.namespace(), [WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS, "--ip",
                                                "10.0.0.1", "--device", "iface=lo", "--timeout", "60"])
        listening = f":{int(RENDEZVOUS.rpartition(':')[2]):04X} "
        wait_for(lambda: listening in Path(f"/proc/{worker.process.pid}/net/tcp").read_text(), 20, "it does not listen")
        worker.process.send_signal(number)
        status, output = worker.wait()
        expect(status == -number and f"weir-worker: ended by signal {number.name}" in output, f"{status}, {output}")


def greet_and_hang_up(listener: socket.socket) -> None:
    """A memif server that has ended when the client answers its hello (DPDK's memif.h: type, name, versions, limits)."""
    hello = struct.pack("=H32sHHHHHB", 2, b"test", 0x200, 0x200, 255, 255, 255, 14).ljust(128, b"\0")
    with contextlib.suppress(OSError):
        while True:
            connection = listener.accept()[0]
            with connection, contextlib.suppress(OSError):
                connection.send(hello)


@smoke_test("switch-that-hangs-up")
def switch_that_hangs_up(lab: Lab) -> None:
    """memif's client writes to a socket whose other end is closed: it must print an error, not die of SIGPIPE."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(lab.directory / "memif.sock"))
        listener.listen()
        threading.Thread(target=greet_and_hang_up, args=(listener,), daemon=True).start()
        worker = Process(lab, lab.namespace(), [WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS, "--ip",
                                                "10.0.0.1", "--device", memif(lab.directory, "client"), "--timeout", "2"],
                         RUNTIME_DIRECTORY=str(lab.directory))
        status, output = worker.wait()
        expect(status == 1 and "no link after 2000 ms" in output, f"{status}, {output}")
        listener.shutdown(socket.SHUT_RDWR)


@smoke_test("killed-switch-socket")
def killed_switch_socket(lab: Lab) -> None:
    """A killed switch leaves its memif socket. The next one removes it, but not the socket of a living switch."""
    namespace = lab.namespace()
    file = lab.directory / "memif.sock"
    first = lab.ready_weir(namespace, memif_switch(lab.directory))
    second = lab.weir(namespace, memif_switch(lab.directory), "--no-interactive").wait()
    expect(second.status == 1 and "port p0: device net_memif0" in second.output, f"{second}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:  # memif's are of another type
        expect(connection.connect_ex(str(file)) == errno.EPROTOTYPE, "the first's socket is gone")
    expect(first.process.poll() is None, f"the first is gone: {first.output()}")
    os.killpg(first.process.pid, signal.SIGKILL)
    first.process.wait()
    expect(file.is_socket(), "nothing is left, so there is nothing to test")
    third = lab.ready_weir(namespace, memif_switch(lab.directory))
    expect(f"weir: port p0: removed {file}" in third.output(), f"it does not say so: {third.output()}")
    third.stop()
    file.write_text("no socket")
    fourth = lab.weir(namespace, memif_switch(lab.directory), "--no-interactive").wait()
    expect(fourth.status == 1 and file.read_text() == "no socket", f"{fourth}")


def inherited_sockets(process: int) -> dict[str, bool]:
    """The memif connections of a process, and whether its children inherit each."""
    table = [line.split() for line in Path(f"/proc/{process}/net/unix").read_text().splitlines()[1:]]
    memif_links = {f"socket:[{row[6]}]" for row in table if int(row[4], 16) == socket.SOCK_SEQPACKET}
    inherited = {}
    for entry in Path(f"/proc/{process}/fd").iterdir():
        if os.readlink(entry) in memif_links:
            flags = Path(f"/proc/{process}/fdinfo/{entry.name}").read_text().partition("flags:")[2].split()[0]
            inherited[entry.name] = not int(flags, 8) & os.O_CLOEXEC
    return inherited


@smoke_test("worker-sockets")
def worker_sockets(lab: Lab) -> None:
    """A program started by a rank does not inherit the rank's memif connection."""
    namespace = lab.namespace()
    lab.ready_weir(namespace, memif_switch(lab.directory))
    worker = Process(lab, namespace, [WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS, "--ip", "10.0.0.1",
                                      "--device", memif(lab.directory, "client"), "--timeout", "60"],
                     RUNTIME_DIRECTORY=str(lab.directory))
    listening = f":{int(RENDEZVOUS.rpartition(':')[2]):04X} "
    wait_for(lambda: listening in Path(f"/proc/{worker.process.pid}/net/tcp").read_text(), 20, "it does not listen")
    sockets = inherited_sockets(worker.process.pid)
    expect(sockets and not any(sockets.values()), f"by descriptor, whether it is inherited: {sockets}")


@smoke_test("killed-worker-files")
def killed_worker_files(lab: Lab) -> None:
    """A killed worker leaves EAL's runtime directory. The next one removes it, but not that of a living worker."""
    namespace = lab.namespace()
    lab.ready_weir(namespace, memif_switch(lab.directory))
    runtime = lab.directory / "dpdk"

    def start_worker() -> tuple[Process, Path]:
        worker = Process(lab, namespace, [WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS, "--ip",
                                          "10.0.0.1", "--device", memif(lab.directory, "client"), "--timeout", "60"],
                         RUNTIME_DIRECTORY=str(lab.directory))
        directory = runtime / f"weir-worker-{worker.process.pid}"
        wait_for(lambda: (directory / "config").exists(), 20, f"no {directory}")
        return worker, directory

    killed, left = start_worker()
    killed.kill()
    expect(left.is_dir(), "nothing is left, so there is nothing to test")
    alive, kept = start_worker()
    wait_for(lambda: not left.exists(), 20, f"{left} is still there")
    start_worker()
    expect(kept.is_dir() and alive.process.poll() is None, f"{kept} of a living worker is gone")
