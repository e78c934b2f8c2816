#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts `weir` and one `weir-worker` per rank, connected by shared memory (memif), and lets them all-reduce.

Needs no NIC, no hugepages and no root. Prints progress, each worker's result, the switch's own tables and, last,
"demo: OK" or what went wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from output import end_with  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("WEIR_BUILD", "build-demo")
WEIR = BUILD / "app/weir"
WORKER = BUILD / "app/weir-worker"
RING = 1
READY_TIMEOUT_S = 60
STALL_TIMEOUT_S = 60  # a worker gives up after this time without progress
MAX_RANKS = 30  # each needs a DPDK port, and Debian's build has 32
PROGRESS = re.compile(r"^progress: .*repetition=(\d+)/(\d+) percent=(\d+)")


OTHERS = """other demonstrations, with options of their own (tools/demo --fabric --help):
  --fabric              three switches that add in a tree, of which one dies; no root
  --training            four ranks of PyTorch, whose cables lose frames; needs root
"""


class DemoFailure(Exception):
    """What went wrong, in a sentence."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__, epilog=OTHERS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help=f"workers, 2 .. {MAX_RANKS} (default 4)")
    parser.add_argument("--size", default="64MiB", help="bytes of tensor per worker (default 64MiB)")
    parser.add_argument("--mtu", type=int, default=1024, choices=[256, 512, 1024, 2048, 4096],
                        help="path MTU (default 1024)")
    parser.add_argument("--type", default="f32", help="data type (default f32)")
    parser.add_argument("--op", default="sum", help="operation (default sum)")
    parser.add_argument("--loss", type=float, default=0.0,
                        help="share of frames that the workers lose on purpose, 0 .. 0.2 (default 0)")
    parser.add_argument("--repeat", type=int, default=1, help="all-reduces in a row (default 1)")
    parser.add_argument("--window", type=int, default=8, help="messages under way per worker (default 8)")
    parser.add_argument("--message-bytes", type=int, default=32768, help="bytes of a message (default 32768)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds until the demo gives up (default 300)")
    parser.add_argument("--keep", action="store_true", help="keep the run's folder with all logs")
    options = parser.parse_args()
    if not 2 <= options.ranks <= MAX_RANKS:
        parser.error(f"--ranks: found {options.ranks}; allowed: 2 .. {MAX_RANKS}")
    if not 0 <= options.loss <= 0.2:
        parser.error(f"--loss: found {options.loss}; allowed: 0 .. 0.2")
    return options


def address_of(rank: int) -> str:
    return f"10.0.0.{rank + 1}"


def memif(index: int, role: str, port: int, folder: Path) -> str:
    return f"net_memif{index},role={role},id={port},socket={folder}/memif.sock,socket-abstract=no,bsize=8192,rsize=11"


def configuration(options: argparse.Namespace, folder: Path) -> str:
    """config/demo.yaml for any number of ranks."""
    cores = sorted(os.sched_getaffinity(0))
    ports = "".join(f'  - {{ name: p{rank}, device: "{memif(rank, "server", rank, folder)}", '
                    f"mtu: {max(1500, options.mtu + 100)} }}\n" for rank in range(options.ranks))
    members = "".join(f"      - {{ ip: {address_of(rank)}, port: p{rank} }}\n" for rank in range(options.ranks))
    return (f'eal:\n  options: ["--no-huge", "-m", "1024", "--no-pci", "--file-prefix={folder.name}", '
            f'"--log-level", "*:error"]\n'
            f"ports:\n{ports}"
            f"lcores:\n  - {{ id: {cores[0]}, roles: [control] }}\n"
            f"  - {{ id: {cores[-1]}, roles: [rx, worker, tx], idle: yield }}\n"
            f"rings:\n  - id: {RING}\n    window: {options.window}\n    max_message_bytes: {options.message_bytes}\n"
            f"    mtu: {options.mtu}\n    members:\n{members}")


class Process:
    """A child whose output goes to a file and is read line by line."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.lines: list[str] = []
        self.percent = 0
        # For EAL's runtime files, so that they are removed with the folder.
        environment = os.environ | {"RUNTIME_DIRECTORY": str(folder)}
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment,
                                       stderr=subprocess.STDOUT, text=True, errors="replace")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self.log.open("w") as log:
            for line in self._child.stdout:
                log.write(line)
                log.flush()
                self.lines.append(line.rstrip("\n"))
                if found := PROGRESS.match(line):
                    repetition, repetitions, percent = (int(number) for number in found.groups())
                    self.percent = (100 * (repetition - 1) + percent) // repetitions

    def status(self) -> int | None:
        return self._child.poll()

    def pid(self) -> int:
        return self._child.pid

    def ending(self) -> str:
        """How it ended and its last output, for a message."""
        status = self._child.poll()
        how = f"with status {status}" if status is None or status >= 0 else f"by signal {signal.Signals(-status).name}"
        return f"{self.name} ended {how}\n{self.tail()}"

    def wait(self, seconds: float) -> int:
        status = self._child.wait(seconds)
        self._reader.join(5)
        return status

    def interrupt(self) -> None:
        if self.status() is None:
            self._child.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self.status() is None:
            self._child.kill()
            self._child.wait()

    def tail(self, lines: int = 12) -> str:
        return "\n".join(f"  {self.name}: {line}" for line in self.lines[-lines:])


def start_switch(options: argparse.Namespace, folder: Path) -> Process:
    return start_configured(WEIR, configuration(options, folder), folder)


def start_configured(program: Path, content: str, folder: Path, name: str = "weir") -> Process:
    """A switch with this configuration, when it is ready."""
    file = folder / f"{name}.yaml"
    file.write_text(content)
    weir = Process(name, [str(program), "--config", str(file), "--no-interactive"], folder)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while "weir: ready" not in weir.lines:
        if weir.status() is not None:
            raise DemoFailure(f"the switch {name} does not start\n{weir.tail()}")
        if time.monotonic() > deadline:
            weir.kill()
            raise DemoFailure(f"the switch {name} is not ready after {READY_TIMEOUT_S} s\n{weir.tail()}")
        time.sleep(0.05)
    return weir


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def rank_command(options: argparse.Namespace, folder: Path, rank: int, rendezvous: str,
                 program: Path = WORKER) -> list[str]:
    """A worker's command without its calls."""
    return [str(program), "--rank", str(rank), "--world", str(options.ranks), "--rendezvous", rendezvous,
            "--ring", str(RING), "--transport", "software", "--device", memif(0, "client", rank, folder),
            "--ip", address_of(rank), "--window", str(options.window), "--message-bytes", str(options.message_bytes),
            "--mtu", str(options.mtu), "--timeout", str(min(options.timeout, STALL_TIMEOUT_S)),
            "--json", str(folder / f"worker{rank}.json")]


def start_workers(options: argparse.Namespace, folder: Path, *more: str) -> list[Process]:
    """One per rank; `more` are options of theirs beside the demo's."""
    rendezvous = f"127.0.0.1:{free_port()}"
    workers = []
    for rank in range(options.ranks):
        command = [*rank_command(options, folder, rank, rendezvous), "--size", options.size, "--type", options.type,
                   "--op", options.op, "--repeat", str(options.repeat), "--loss", str(options.loss),
                   "--seed", str(rank + 1), "--progress", *more]
        workers.append(Process(f"worker{rank}", command, folder))
    return workers


def watch(workers: list[Process], weir: Process, seconds: int) -> None:
    """Shows progress until all workers are done; raises for the first that fails."""
    started = time.monotonic()
    interactive = sys.stdout.isatty()
    shown = -1
    while any(worker.status() is None for worker in workers):
        for process in [weir, *workers]:
            if process.status() not in (None, 0):
                raise DemoFailure(process.ending())
        if time.monotonic() - started > seconds + 30:
            raise DemoFailure(f"not done after {seconds + 30} s\n" + "\n".join(w.tail(3) for w in workers))
        percent = min(worker.percent for worker in workers)
        if interactive:
            bars = "  ".join(f"r{rank} {worker.percent:3d}%" for rank, worker in enumerate(workers[:8]))
            print(f"\r  {bars}  {time.monotonic() - started:5.1f} s ", end="", flush=True)
        elif shown < 0 or percent // 10 > shown // 10:
            print(f"  {percent:3d} % after {time.monotonic() - started:.1f} s", flush=True)
            shown = percent
        time.sleep(0.05)
    if interactive:
        print()
    for worker in workers:
        if worker.wait(10) != 0:
            raise DemoFailure(worker.ending())


def report_workers(options: argparse.Namespace, folder: Path) -> None:
    print("\nworkers")
    results = [json.loads((folder / f"worker{rank}.json").read_text()) for rank in range(options.ranks)]
    for rank, result in enumerate(results):
        if result["verified"] != "every_element":
            raise DemoFailure(f"worker {rank} did not verify its result: {result}")
        print(f"  rank {rank}: {result['bytes']} bytes in {result['seconds']:.3f} s, "
              f"algorithm bandwidth {result['algbw_gb_s']:.3f} GB/s, bus bandwidth {result['busbw_gb_s']:.3f} GB/s, "
              f"{result['retransmissions']} packets repeated, every element verified, algorithm: {result['algorithm']}")
    explain_repeats(options, results)


def explain_repeats(options: argparse.Namespace, results: list[dict]) -> None:
    """Repeats are no riddle where nothing is lost on purpose."""
    if options.loss == 0 and any(result["retransmissions"] for result in results):
        print("  nothing was lost on purpose (--loss): packets are repeated when their answer comes later than the ACK timeout, as where "
              "more processes run than there are CPUs", flush=True)


def make_folder() -> Path:
    """Makes a folder whose path memif accepts: without commas, and at most 107 bytes for the kernel."""
    usable = re.fullmatch(r"[\w./ -]{1,70}", tempfile.gettempdir(), re.ASCII)
    return Path(tempfile.mkdtemp(prefix="weir-demo-", dir=None if usable else "/tmp"))


def where_logs_are(options: argparse.Namespace, folder: Path) -> str:
    return f"logs and configuration stay in {folder}" if options.keep else "--keep keeps logs and configuration"


def demonstrate(options: argparse.Namespace, folder: Path) -> None:
    print(f"demo: {options.ranks} workers all-reduce {options.size} of {options.type} ({options.op}), path MTU "
          f"{options.mtu}, loss {options.loss:g}; {where_logs_are(options, folder)}", flush=True)
    weir = start_switch(options, folder)
    workers: list[Process] = []
    try:
        print("demo: the switch forwards; starting the workers", flush=True)
        workers = start_workers(options, folder)
        watch(workers, weir, options.timeout)
        report_workers(options, folder)
        weir.interrupt()
        if weir.wait(30) != 0:
            raise DemoFailure(weir.ending())
        print("\nswitch")
        start = weir.lines.index("weir: ready") + 1
        print("\n".join(weir.lines[start:]))
    finally:
        for process in [*workers, weir]:
            process.kill()


def run(options: argparse.Namespace, demonstrate_in: Callable[[argparse.Namespace, Path], None]) -> int:
    """A demonstration in a folder of its own, from its first line to its last; its exit status."""
    folder = make_folder()
    try:
        demonstrate_in(options, folder)
    except DemoFailure as failure:
        print(f"\ndemo: FAILED: {failure}\nlogs: {folder}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", flush=True)
        return 1
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print("demo: OK", flush=True)
    return 0


def main() -> int:
    return run(parse_options(), demonstrate)


if __name__ == "__main__":
    end_with("tools/demo", main)
