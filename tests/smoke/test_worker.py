# SPDX-License-Identifier: BSD-3-Clause
"""Ranks as processes: the C API, weir-worker's required options, and what killed processes leave behind."""
from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hosts import RANKS, ring_7, ring_ports
from lab import Lab, smoke_test
from netns import KILLED_WITH_US, Namespace, run, veth
from weir import BUILD, NO_HUGEPAGES, Failed, Weir, configuration, expect, run_to_end, wait_for

WORKER = BUILD / "app" / "weir-worker"
SUPPORT = BUILD / "tests" / "support"
C_RANK = SUPPORT / "c_rank"
RENDEZVOUS = "127.0.0.1:7471"
ALONE = (WORKER, "--rank", "0", "--world", "2", "--rendezvous", RENDEZVOUS)
JOB_S = 60.0


class Process:
    """A process that is killed at the end of the test at the latest."""

    def __init__(self, lab: Lab, namespace: Namespace, command: Sequence[str | Path], **environment: str) -> None:
        with namespace.entered():
            self.process = subprocess.Popen([*KILLED_WITH_US, *map(str, command)], env=os.environ | environment, text=True,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lab.on_end(self.kill)

    def wait(self, seconds: float = JOB_S) -> tuple[int, str]:
        try:
            output = self.process.communicate(timeout=seconds)[0]
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


@smoke_test("worker-devices")
def devices(lab: Lab) -> None:
    """Which devices a host has, as the kernel's tools set them."""
    inside, outside = lab.namespace(), lab.namespace()
    for name in ("one", "two", "none"):
        veth(inside, name, outside, name)
    inside.ip("address add 10.5.0.1/24 dev one")
    for address in ("10.6.0.1/24", "10.6.0.2/24"):
        inside.ip(f"address add {address} dev two")
    inside.ip("link set one mtu 4200")
    inside.ip("link set none down")
    status, output = Process(lab, inside, [WORKER, "--list-devices"]).wait()
    # veth says 10 Gbit/s of itself.
    expect(status == 0 and [line.split() for line in output.splitlines()[1:]] == [
        ["none", "software", "-", "-", "10000", "1500", "down", "-", "-"],
        ["one", "software", "-", "10.5.0.1", "10000", "4200", "up", "-", "-"],
        ["two", "software", "-", "-", "10000", "1500", "up", "-", "-"]], output)


@smoke_test("examples")
def examples(lab: Lab) -> None:
    """The programs of docs/examples, whose options are the defaults."""
    switch, outside = switch_and_hosts(lab, ring_7(window=8, max_message_bytes=65536))
    run_ranks(lab, outside, SUPPORT / "example_c", "7", "10 by way of the switch")
    run_ranks(lab, outside, SUPPORT / "example_cpp", "7", "10 and 3 by way of the switch")
    switch.stop()


COLLECTIVES = ("all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "barrier")


def start_workers(lab: Lab, outside: Namespace, ring: str, *options: str, of_rank: Sequence[Sequence[str]] = ()) -> list[Process]:
    """weir-worker on each host of ring 7; `of_rank` are options of single ranks, from 0."""
    return [Process(lab, outside, [
        WORKER, "--rank", str(rank), "--world", str(RANKS), "--rendezvous", RENDEZVOUS, "--ring", ring,
        "--device", f"iface=host{rank}", "--ip", f"10.77.0.{rank + 1}", "--window", "4", "--message-bytes", "16384",
        "--fallback", "ring", *options, *(of_rank[rank] if rank < len(of_rank) else ())]) for rank in range(RANKS)]


@smoke_test("collectives")
def collectives(lab: Lab) -> None:
    """Each collective by weir-worker, with one rank's frames lost now and then, in place and not; by the switch and without."""
    switch, outside = switch_and_hosts(lab, ring_7())
    for ring, way in (("7", "switch"), ("8", "ring")):
        for number, name in enumerate(COLLECTIVES):
            placement = ("--in-place", "--out-of-place")[number % 2]
            ranks = start_workers(lab, outside, ring, "--collective", name, "--root", "2", "--size", "160000", "--repeat", "3",
                                  "--op", "average", placement, of_rank=((), ("--loss", "0.01")))
            for rank, process in enumerate(ranks):
                status, output = process.wait()
                due = f"algorithm={way} verified=every_element collective={name}"
                expect(status == 0 and due in output, f"{name}: rank {rank}: {status}, {output}")
    switch.stop()


# Of nccl-tests' doc/PERFORMANCE.md, for four ranks: bus bandwidth by algorithm bandwidth.
BUS_FACTORS = {"all-reduce": 1.5, "reduce": 1, "broadcast": 1, "all-gather": 0.75, "reduce-scatter": 0.75, "barrier": 1}
SWEPT_BYTES = (8, 64, 512, 4096, 32768)  # -b 8 -e 64K -f 8
ROW_COLUMNS = 5 + 2 * 4 + 2 * 5  # the call; time, two bandwidths, wrong; min, p50, p95, p99, max


def check_measurement(row: dict[str, Any], which: str, checked: bool) -> None:
    measured = row[which]
    times = [measured[f"{name}_us"] for name in ("min", "p50", "p95", "p99", "max")]
    expect(0 < times[0] and times == sorted(times) and times[0] <= measured["mean_us"] <= times[-1], f"{row}")
    algbw = row["bytes"] / measured["mean_us"] / 1000
    for key, due in (("algbw_gb_s", algbw), ("busbw_gb_s", algbw * BUS_FACTORS[row["collective"]])):
        expect(abs(measured[key] - due) < 2e-6 + 1e-3 * due, f"{key} should be {due}: {row}")
    expect(measured["wrong"] == (0 if checked else None), f"{row}")


def check_table(output: str, rows: Sequence[dict[str, Any]]) -> None:
    """The table has the rows of the JSON file, in their order."""
    lines = [line.split() for line in output.splitlines() if not line.startswith("#")]
    expect(len(lines) == len(rows) and all(len(line) == ROW_COLUMNS for line in lines), output)
    for line, row in zip(lines, rows, strict=True):
        root = -1 if row["root"] is None else row["root"]
        expect(line[:5] == [str(row["bytes"]), str(row["count"]), row["type"], row["op"], str(root)], f"{line}: {row}")
        for which, at in (("out_of_place", 5), ("in_place", 9)):
            shown = "-" if row[which] is None else "N/A" if row[which]["wrong"] is None else str(row[which]["wrong"])
            expect(line[at + 3] == shown, f"{line}: {row}")


def swept(elements: int) -> list[int]:
    """The sizes, cut to whole elements for each rank."""
    return [size for size in SWEPT_BYTES if size >= elements]


@smoke_test("worker-sweep")
def worker_sweep(lab: Lab) -> None:
    """A sweep over four ranks, of which one loses frames and one has no thread: table, JSON file, by the switch and without."""
    switch, outside = switch_and_hosts(lab, ring_7())
    for ring, way, check in (("7", "switch", "2"), ("8", "ring", "0")):
        file = lab.directory / f"{way}.json"
        ranks = start_workers(lab, outside, ring, "-b", "8", "-e", "64K", "-f", "8", "-w", "1", "-n", "4", "-c", check,
                              "--collective", "all", "-d", "f32,u8", "-o", "sum,xor", "-r", "3",
                              of_rank=(("--json", str(file)), ("--loss", "0.01"), (), ("--progress-by", "caller")))
        endings = [process.wait() for process in ranks]
        expect(all(status == 0 for status, _ in endings), f"{endings}")
        said = json.loads(file.read_text())
        expect((said["world"], said["rank"], said["algorithm"]) == (RANKS, 0, way), f"{said}")
        found = [(row["collective"], row["type"], row["op"], row["root"], row["bytes"]) for row in said["rows"]]
        due = []
        for name in COLLECTIVES[:-1]:
            root = 3 if name in ("reduce", "broadcast") else None
            reductions = {"f32": ("sum",), "u8": ("sum", "xor")} if "reduce" in name else {"f32": ("none",), "u8": ("none",)}
            for kind, element in (("f32", 4), ("u8", 1)):
                shares = RANKS if name in ("all-gather", "reduce-scatter") else 1
                due += [(name, kind, op, root, size) for op in reductions[kind] for size in swept(element * shares)]
        expect(found == [*due, ("barrier", "none", "none", None, 0)], f"{found}; should be {due}")
        for row in said["rows"]:
            expect((row["out_of_place"] is None) == (row["collective"] in ("broadcast", "barrier")), f"{row}")
            for which in ("out_of_place", "in_place"):
                if row[which] is not None:
                    check_measurement(row, which, check != "0")
        check_table(endings[0][1], said["rows"])
        wrong = "# Wrong elements: " + ("nothing was checked" if check == "0" else "0")
        expect(f"algorithm={way}" in endings[0][1] and wrong in endings[0][1].splitlines(), endings[0][1])
        for rank, (_, output) in enumerate(endings[1:], 1):
            expect(f"result: rank={rank} rows={len(found)} wrong=0 " in output and "#" not in output, output)
    switch.stop()


SWEEP_MISTAKES = (
    ("--ring 1,2,3 --tree [0,1] --tree [0,1]", "--tree: found 2 of them; allowed: one, or 3 (--ring)"),
    ("--ring 1,2 --tree [0,1] --tree [0,1,2]", "--tree: found 3 ranks; allowed: 2 (--world)"),
    ("--missing-rings none", "--missing-rings: found 'none'; allowed: leave-out, refuse"),
    ("--progress-by nobody", "--progress-by: found 'nobody'; allowed: thread, caller"),
    ("--spin", "--spin: only in a sweep (--begin); see"),
    ("-e 8", "--end: only in a sweep (--begin); see"),
    ("-n 8", "--iterations: only in a sweep (--begin); see"),
    ("-b 8 --size 8", "--size: not in a sweep (--begin); see"),
    ("-b 8 --verify", "--verify: not in a sweep (--begin); see"),
    ("-b 8x", "--begin: found '8x'; allowed: bytes, such as 4096, 64KiB or 1G, in powers of 1024, from 1B to 65536GiB"),
    ("-b 0", "--begin: found '0'; allowed: "),
    ("-b 8 -e 70000G", "--end: found '70000G'; allowed: "),
    ("-b 64K -e 8", "--end: found '8B'; allowed: 64KiB (--begin) or more"),
    ("-b 8 -e 8K -f 1", "--factor: found '1'; allowed: 2 .. "),
    ("-b 8 -e 8K -i 0", "--increment: found '0'; allowed: "),
    ("-b 8 -e 8K -i 8 -f 2", "--increment: not with --factor; see"),
    ("-b 8 -e 1G -i 8", "--increment: found '8B'; allowed: what makes at most 10000 sizes"),
    ("-b 8 -n 0", "--iterations: found '0'; allowed: 1 .. 1000000"),
    ("-b 8 -w -1", "--warm-up: found '-1'; allowed: 0 .. 1000000"),
    ("-b 8 -n 4 -c 5", "--check: found '5'; allowed: 0 .. 4 (--iterations)"),
    ("-b 4 -d f64", "--end: found '4B'; allowed: 8 bytes or more, an element for each rank in all-reduce of f64"),
    ("-b 4 --collective all", "--end: found '4B'; allowed: 8 bytes or more, an element for each rank in all-gather of f32"),
    ("-b 8 -d f32,f33", "--type: found 'f32,f33'; allowed: f32, f64, "),
    ("-b 8 -d f32,f32", "--type: found 'f32,f32'; allowed: f32, f64, "),
    ("-b 8 -o sum,", "--op: found 'sum,'; allowed: sum, min, max, product, and, or, xor, average; in a sweep also several"),
    ("-b 8 -o sum,and", "--op: found and of f32; allowed: bits of integers only"),
    ("-o and", "--op: found and of f32; allowed: bits of integers only"),
    ("-d all", "--type: found 14 of them; allowed: one, or --begin"),
    ("-b 8 -r 2", "--root: found 2; allowed: 0 .. 1"),
    ("-b 8 --collective broadcast --out-of-place", "--out-of-place: a broadcast is in place only"),
)


@smoke_test("worker-usage")
def worker_usage(lab: Lab) -> None:
    complete = {"--rank": "0", "--world": "2", "--rendezvous": RENDEZVOUS, "--device": "iface=lo", "--ip": "10.0.0.1"}
    for option in ("--rank", "--world", "--rendezvous", "--device"):
        given = [word for name, value in complete.items() if name != option for word in (name, value)]
        ended = run_to_end([WORKER, *given])
        expect(ended.status == 2 and f"missing: {option};" in ended.errors, f"without {option}: {ended}")
    ended = run_to_end([WORKER])
    expect(ended.status == 2 and "missing: --rank, --world, --rendezvous, --device;" in ended.errors, f"{ended}")
    everything = [word for pair in complete.items() for word in pair]
    ended = run_to_end([WORKER, *everything, "--ip", "10.0.0"])
    expect(ended.status == 2 and "ip: found '10.0.0'" in ended.errors, f"{ended}")
    for size in ("4.5B", "-1", "1GB", "", "65537GiB", str(2**64)):
        ended = run_to_end([WORKER, *everything, "--size", size])
        expect(ended.status == 2 and f"--size: found '{size}'; allowed: " in ended.errors, f"{ended}")
    for loss in ("nan", "1", "-0.1"):
        ended = run_to_end([WORKER, *everything, "--loss", loss])
        expect(ended.status == 2 and f"--loss: found '{loss}'; allowed: 0 .. 0.9" in ended.errors, f"{ended}")
    for options, due in SWEEP_MISTAKES:
        ended = run_to_end([WORKER, *everything, *options.split()])
        expect(ended.status == 2 and due in ended.errors, f"{options}: {ended}; should say {due!r}")
    ended = run_to_end(["prlimit", f"--as={2**31}", WORKER, *everything, "--size", "4GiB"])
    expect(ended.status == 1 and f"no memory for a tensor of {2**32} bytes" in ended.errors, f"{ended}")
    ended = run_to_end(["prlimit", f"--as={2**31}", WORKER, *everything, "-b", "8", "-e", "4G"])
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


@smoke_test("worker-address")
def worker_address(lab: Lab) -> None:
    """Without --ip a rank takes its interface's address. It must be one, and of an interface."""
    namespace = lab.namespace()
    veth(lab.namespace(), "tap0", namespace, "host0")
    for address, due in (("", "interface host0 has no address that other hosts can use; allowed: "),
                         ("10.77.0.1/24", "did not come within 1000 ms"),
                         ("10.77.0.2/24", "interface host0 has 2 IPv4 addresses: 10.77.0.1, 10.77.0.2; allowed: ")):
        with namespace.entered():
            if address:
                run("ip", "address", "add", address, "dev", "host0")
        status, output = Process(lab, namespace, [*ALONE, "--device", "iface=host0", "--timeout", "1"]).wait()
        expect(status == 1 and due in output, f"{address}: {status}, {output}; should say {due}")
    status, output = Process(lab, namespace, [*ALONE, "--device", "net_null0"]).wait()
    expect(status == 1 and "ip: not given, and the device is no network interface" in output, f"{status}, {output}")


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


def leaves_no_socket(lab: Lab, file: Path, config: str, other_type: int, refusal: str) -> None:
    """A killed switch leaves its socket. The next one removes it, but not the socket of a living switch."""
    namespace = lab.namespace()
    first = lab.ready_weir(namespace, config)
    second = lab.weir(namespace, config, "--no-interactive").refusal()
    expect(second.status == 1 and "port p0: device net_" in second.output
           and refusal in second.output, f"{second}")
    with socket.socket(socket.AF_UNIX, other_type) as connection:
        expect(connection.connect_ex(str(file)) == errno.EPROTOTYPE, "the first's socket is gone")
    expect(first.process.poll() is None, f"the first is gone: {first.output()}")
    os.killpg(first.process.pid, signal.SIGKILL)
    first.process.wait()
    expect(file.is_socket(), "nothing is left, so there is nothing to test")
    third = lab.ready_weir(namespace, config)
    expect(f"weir: port p0: removed {file}" in third.output(), f"it does not say so: {third.output()}")
    third.stop()
    file.write_text("no socket")
    fourth = lab.weir(namespace, config, "--no-interactive").refusal()
    expect(fourth.status == 1 and f": {file} is no socket; allowed: " in fourth.output
           and file.read_text() == "no socket", f"{fourth}")


@smoke_test("killed-switch-socket")
def killed_switch_socket(lab: Lab) -> None:
    leaves_no_socket(lab, lab.directory / "memif.sock", memif_switch(lab.directory), socket.SOCK_STREAM, " cannot be probed: ")


@smoke_test("killed-switch-vhost-socket")
def killed_switch_vhost_socket(lab: Lab) -> None:
    file = lab.directory / "vhost.sock"
    leaves_no_socket(lab, file, configuration([f'name: p0, device: "net_vhost0,iface={file}"']), socket.SOCK_SEQPACKET,
                     f": a process listens on {file}, or this one may not open it; allowed: ")


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
