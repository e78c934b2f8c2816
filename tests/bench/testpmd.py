# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's testpmd and Weir in turn, as programs, with the same frames: one lcore forwards between two ports.

The ports are DPDK's net_pcap, which gives the frames of a file again and again and drops what it is given to send. The
frames are UDP datagrams of no ring, with a UDP checksum, so that testpmd's csum engine reads every byte.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from comparison import Missing, Options, Pair, need, report, tell_progress
from rounds import Parameters

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/support"), str(ROOT / "tests/replay")]

import demonstrate  # noqa: E402
import roce  # noqa: E402
import telemetry  # noqa: E402

ABOUT = "forwarding"
TESTPMD = "dpdk-testpmd", "dpdk-dev"  # program, package
ENGINES = ("rxonly", "io", "macswap", "csum")
PAYLOADS = (64, 256, 1024)  # bytes
QUICK_PAYLOADS = (1024,)
PORTS = 2
FRAMES = 64  # in each file
START_S = 30.0
STOP_S = 20.0
EAL = ["--no-huge", "-m", "512", "--no-pci"]
ADDRESSES = ipaddress.ip_network("192.0.2.0/24")  # RFC 5737


def datagram(port: int, payload: bytes) -> bytes:
    """From the station behind this port to the one behind the other; `payload` is of even length."""
    stations = [bytes([0x02, 0x20, 0, 0, 0, number]) for number in range(PORTS)]
    source, destination = (ADDRESSES[1 + number].packed for number in (port, 1 - port))
    length = 8 + len(payload)
    udp = struct.pack(">HHH", 49153, 9, length)
    pseudo_header = source + destination + struct.pack(">HH", 17, length)
    udp += struct.pack(">H", roce.internet_checksum(pseudo_header + udp + bytes(2) + payload))
    ip = struct.pack(">BBHHHBB", 0x45, 0, 20 + length, 0, 0x4000, 64, 17)
    ip += struct.pack(">H", roce.internet_checksum(ip + bytes(2) + source + destination))
    return stations[1 - port] + stations[port] + b"\x08\x00" + ip + source + destination + udp + payload


def capture(port: int, payload: int) -> bytes:
    """A pcap file of Ethernet frames."""
    return roce.pcap_bytes([datagram(port, bytes([number]) * payload) for number in range(FRAMES)])


def devices_in(folder: Path, payload: int) -> list[str]:
    """What both programs are told of their ports. Writes the frames."""
    devices = []
    for port in range(PORTS):
        file = folder / f"in{port}-{payload}.pcap"
        file.write_bytes(capture(port, payload))
        devices.append(f"net_pcap{port},rx_pcap={file},infinite_rx=1")
    return devices


def lcores() -> tuple[int, int]:
    """That of control and the one that forwards, by their CPUs. Raises Missing."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Missing("one CPU is too few: forwarding takes one, control another")
    return cpus[0], cpus[-1]


class Counters:
    """Frames of a running program, as `counter` of DPDK's ethdev says, and its forwarding thread's computing."""

    def __init__(self, process: demonstrate.Process, folder: Path, counter: str) -> None:
        self._process = process
        self._folder = folder
        self._counter = counter

    def sockets(self) -> list[Path]:
        return list(self._folder.glob("**/dpdk_telemetry.v2"))

    def frames(self) -> int:
        [socket] = self.sockets()
        answers = [json.loads(telemetry.ask(socket, f"/ethdev/stats,{port}"))["/ethdev/stats"] for port in range(PORTS)]
        return sum(answer[self._counter] for answer in answers if answer is not None)  # none: no such port yet

    def seconds(self) -> float:
        """Of the thread that EAL made for the lcore."""
        name = f"worker-{lcores()[1]}"
        for task in Path(f"/proc/{self._process.pid()}/task").iterdir():
            if (task / "comm").read_text().strip().endswith(name):
                return int((task / "schedstat").read_text().split()[0]) * 1e-9
        raise OSError(f"no thread is called …{name}\n{self._process.tail()}")

    def forwards(self) -> bool:
        try:
            return len(self.sockets()) == 1 and self.frames() > 0
        except ConnectionRefusedError:  # the socket is there, but nobody listens yet
            return False


def wait_until(is_so: Callable[[], bool], process: demonstrate.Process) -> None:
    deadline = time.monotonic() + START_S
    while not is_so():
        if process.status() is not None or time.monotonic() > deadline:
            raise OSError(f"{process.name} forwards nothing\n{process.tail()}")
        time.sleep(0.02)


def rate_of(process: demonstrate.Process, folder: Path, options: Options, counter: str = "opackets") -> float:
    """Million frames for each second of the lcore's computing."""
    counters = Counters(process, folder, counter)
    wait_until(counters.forwards, process)
    frames, seconds = counters.frames(), counters.seconds()
    time.sleep(0.3 if options.is_quick else 0.5)
    return (counters.frames() - frames) / (counters.seconds() - seconds) / 1e6


@contextlib.contextmanager
def ending(process: demonstrate.Process, folder: Path) -> Iterator[demonstrate.Process]:
    """Ends it, and removes what EAL leaves behind."""
    try:
        yield process
        process.interrupt()
        if process.wait(STOP_S) not in (0, -signal.SIGINT):
            raise OSError(process.ending())
    finally:
        process.kill()
        shutil.rmtree(folder / "dpdk", ignore_errors=True)


def rate_of_testpmd(engine: str, devices: list[str], folder: Path, options: Options) -> float:
    control, forwarding = lcores()
    command = [need(*TESTPMD), *EAL, f"--file-prefix={folder.name}", "-l", f"{control},{forwarding}",
               *(f"--vdev={device}" for device in devices), "--", f"--forward-mode={engine}", "--nb-cores=1",
               "--total-num-mbufs=20000", "--no-mlockall", "--stats-period=3600"]  # without: it ends with its input
    counter = "ipackets" if engine == "rxonly" else "opackets"
    with ending(demonstrate.Process(f"testpmd-{engine}", command, folder), folder) as process:
        return rate_of(process, folder, options, counter)


def configuration(devices: list[str], folder: Path) -> str:
    eal = json.dumps([*EAL, f"--file-prefix={folder.name}"])
    ports = "".join(f'  - {{ name: p{port}, device: "{device}" }}\n' for port, device in enumerate(devices))
    control, forwarding = lcores()
    return (f"eal:\n  options: {eal}\nports:\n{ports}lcores:\n  - {{ id: {control}, roles: [control] }}\n"
            f"  - {{ id: {forwarding}, roles: [rx, worker, tx] }}\n")


def rate_of_weir(build: Path, devices: list[str], folder: Path, options: Options) -> float:
    weir = demonstrate.start_configured(build / "app/weir", configuration(devices, folder), folder)
    with ending(weir, folder) as process:
        return rate_of(process, folder, options)


def case_of(engine: str, payload: int) -> Parameters:
    return {"about": ABOUT, "rival": f"testpmd {engine}", "payload": payload}


def pairs_of(build: Path, devices: list[str], payload: int, engines: list[str], folder: Path,
             options: Options) -> Iterator[Pair]:
    """Weir, and the engines after it."""
    weir = rate_of_weir(build, devices, folder, options)
    for engine in engines:
        yield Pair(case_of(engine, payload), weir, rate_of_testpmd(engine, devices, folder, options), "Mpps")


def measure(build: Path, options: Options) -> None:
    engines = {payload: [engine for engine in ENGINES if options.wants(case_of(engine, payload))]
               for payload in (QUICK_PAYLOADS if options.is_quick else PAYLOADS)}
    wanted = {payload: some for payload, some in engines.items() if some}
    if not wanted:
        return
    need(*TESTPMD)
    lcores()
    folder = demonstrate.make_folder()
    try:
        devices = {payload: devices_in(folder, payload) for payload in wanted}
        for round_number in range(options.rounds):
            tell_progress(ABOUT, round_number, options)
            for payload, some in wanted.items():
                report(pairs_of(build, devices[payload], payload, some, folder, options), round_number)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
