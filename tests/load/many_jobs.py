#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many jobs, one after the other, at one switch on a busy machine: tools/demo's switch and workers, and busy loops beside them.

A job that has not moved for some seconds is looked at while it stands: what every thread of every rank and of the switch
does, how much of the CPU it got, and what the switch says of the ring. All of it goes to a folder that stays when a job
was bad. Ends in "many_jobs: N passed, N failed, 0 skipped", and in a status that is not zero when a job was bad.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "support")]
os.environ.setdefault("WEIR_BUILD", "build")
import demonstrate  # noqa: E402
import telemetry  # noqa: E402
from demonstrate import Process  # noqa: E402

LOOK_S = 0.1
BUSY_LOOP = [sys.executable, "-c", "while True: pass"]
BUILD = [sys.executable, "-c", "import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', "
         "'for i in range(8_000_000): pass'], stdin=subprocess.DEVNULL)"]  # processes that come and go, as in a build
QUESTIONS = ["/weir/ring,1", "/weir/ring/stuck,1", "/weir/conn", "/weir/port/stats,all", "/weir/drops", "/weir/lcores"]
TIMEOUT_S = 120  # of a whole job
LOOKS_AT_A_STALL = 12  # one a second


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500, help="how many (default 500)")
    parser.add_argument("--size", default="64MiB", help="bytes of tensor per worker (default 64MiB)")
    parser.add_argument("--mtu", type=int, default=4096, help="path MTU (default 4096)")
    parser.add_argument("--hogs", type=int, default=0, help="busy loops in the jobs' session (default 0)")
    parser.add_argument("--strangers", type=int, default=0,
                        help="busy loops in sessions of their own, each a group to Linux's autogroups (default 0)")
    parser.add_argument("--builds", type=int, default=0,
                        help="sessions in which short-lived processes follow one another, as in builds (default 0)")
    parser.add_argument("--stall", type=float, default=3.0, help="seconds without a move until a job is looked at (default 3)")
    parser.add_argument("--timeout", type=int, default=10, help="the workers' own, seconds (default 10)")
    options = parser.parse_args()
    # What tools/demo would be told.
    vars(options).update(ranks=4, type="f32", op="sum", loss=0.0, repeat=1, window=8, message_bytes=32768)
    return options


@contextlib.contextmanager
def busy_loops(options: argparse.Namespace) -> Iterator[None]:
    loops = [subprocess.Popen(BUSY_LOOP) for _ in range(options.hogs)]
    loops += [subprocess.Popen(BUSY_LOOP, start_new_session=True) for _ in range(options.strangers)]
    loops += [subprocess.Popen(BUILD, start_new_session=True) for _ in range(options.builds)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def ask(folder: Path, question: str) -> str:
    """The switch's answer on its telemetry socket."""
    try:
        path = next(folder.glob("dpdk/*/dpdk_telemetry.v2"))
        return telemetry.ask(path, question)
    except (OSError, StopIteration) as problem:
        return f"no answer: {problem!r}"


def read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as problem:
        return repr(problem)


def threads(process: Process) -> str:
    """State, CPU, time on it, time waited for it and turns of each thread since its start, and where in the kernel it is."""
    lines = []
    for task in sorted(Path(f"/proc/{process.pid()}/task").glob("*")):
        stat = read(task / "stat").rpartition(")")[2].split()
        schedstat = read(task / "schedstat").split()
        if len(stat) > 36 and len(schedstat) == 3:
            lines.append(f"{process.name} {task.name} {read(task / 'comm'):16} {stat[0]} cpu {stat[36]} "
                         f"ran {int(schedstat[0]) / 1e9:.4f} s, waited {int(schedstat[1]) / 1e9:.3f} s, "
                         f"{schedstat[2]} turns, minor faults {stat[7]}, in {read(task / 'wchan')}, "
                         f"system call {read(task / 'syscall').partition(' ')[0]}")
    return "\n".join(lines)


def stacks(process: Process) -> str:
    if shutil.which("gdb") is None:
        return "no gdb, so no stacks"
    command = ["gdb", "-p", str(process.pid()), "-batch", "-ex", "thread apply all backtrace 24"]
    try:
        return subprocess.run(command, text=True, errors="replace", capture_output=True, timeout=60).stdout
    except subprocess.TimeoutExpired as late:
        return f"gdb does not end: {late.stdout!r}"


@dataclass
class Starvation:
    """Since when a process has wanted the CPU and had no turn on it."""

    turns: int = 0
    since: float = 0.0
    longest: float = 0.0

    def look(self, process: Process, now: float) -> None:
        turns, wants = 0, False
        for task in Path(f"/proc/{process.pid()}/task").glob("*"):
            schedstat = read(task / "schedstat").split()
            turns += int(schedstat[2]) if len(schedstat) == 3 else 0
            wants |= read(task / "stat").rpartition(")")[2].lstrip().startswith("R")
        if turns != self.turns or not wants:
            self.turns, self.since = turns, now
        self.longest = max(self.longest, now - self.since)


class Job:
    """One job of the many, watched."""

    def __init__(self, number: int, options: argparse.Namespace, weir: Process, folder: Path) -> None:
        self.number = number
        self._options = options
        self._weir = weir
        self._folder = folder
        self._evidence = folder / f"job{number}.txt"
        self._started = time.monotonic()
        self._workers = demonstrate.start_workers(options, folder, "--no-verify")
        self.seconds = 0.0
        self.longest_stall = 0.0
        self.starvation = [Starvation(since=self._started) for _ in self._workers]

    def note(self, title: str, text: str) -> None:
        with self._evidence.open("a") as file:
            file.write(f"## {title}, {time.monotonic() - self._started:.1f} s after the job's start, "
                       f"load {read(Path('/proc/loadavg'))}\n{text}\n")

    def state(self) -> list[tuple[int, int | None, bool]]:
        return [(worker.percent, worker.status(), bool(worker.lines)) for worker in self._workers]

    def look(self) -> None:
        """Cheap, so that it changes little."""
        everybody = [*self._workers, self._weir]
        self.note("threads", "\n".join(threads(process) for process in everybody))

    def look_closely(self) -> None:
        for question in QUESTIONS:
            self.note(question, ask(self._folder, question))
        for process in [*self._workers, self._weir]:
            self.note(f"stacks of {process.name}", stacks(process))

    def watch(self) -> None:
        """Returns when all workers have ended or time is up."""
        moved = looked = self._started
        looks = 0
        state = self.state()
        while any(status is None for _, status, _ in state) and time.monotonic() < self._started + TIMEOUT_S:
            time.sleep(LOOK_S)
            before, state = state, self.state()
            now = time.monotonic()
            for worker, starvation in zip(self._workers, self.starvation, strict=True):
                starvation.look(worker, now)
            if state != before:
                moved, looks = now, 0
            self.longest_stall = max(self.longest_stall, now - moved)
            if now - moved > self._options.stall and now - looked >= 1 and looks < LOOKS_AT_A_STALL:
                self.look()
                looks, looked = looks + 1, now
                if looks == 3:
                    self.look_closely()
        self.seconds = time.monotonic() - self._started

    def end(self) -> str:
        """What was bad; empty when nothing was. Nobody runs afterwards."""
        bad = [worker for worker in self._workers if worker.status() != 0
               or not any(line.startswith("result: ") for line in worker.lines)]
        text = "\n".join(worker.ending() for worker in bad)
        for worker in self._workers:
            worker.kill()
        if bad or self._weir.status() is not None:
            text += f"\nthe switch: {self._weir.ending()}"
            self.note("complaint", text)
        return text


def run_jobs(options: argparse.Namespace, folder: Path) -> int:
    """How many were bad."""
    weir = demonstrate.start_switch(options, folder)
    bad = 0
    seconds: list[float] = []
    stalls: list[float] = []
    waits: list[float] = []
    try:
        for number in range(1, options.jobs + 1):
            job = Job(number, options, weir, folder)
            try:
                job.watch()
            finally:
                complaint = job.end()
            seconds.append(job.seconds)
            stalls.append(job.longest_stall)
            waits.append(max(starvation.longest for starvation in job.starvation))
            if complaint:
                bad += 1
                print(f"job {number}: bad after {job.seconds:.1f} s\n{complaint}", flush=True)
            elif job.longest_stall > options.stall:
                print(f"job {number}: good after {job.seconds:.1f} s, stood for {job.longest_stall:.1f} s, "
                      f"a rank had no CPU for {waits[-1]:.1f} s", flush=True)
            if number % 20 == 0 or number == options.jobs:
                print(f"{number} of {options.jobs} jobs, {bad} bad; seconds a job: median {statistics.median(seconds):.1f}, "
                      f"longest {max(seconds):.1f}; longest stall {max(stalls):.1f}; longest that a rank "
                      f"had no CPU {max(waits):.1f}; load {read(Path('/proc/loadavg'))}",
                      flush=True)
    finally:
        weir.interrupt()
        with contextlib.suppress(subprocess.TimeoutExpired):
            weir.wait(20)
        weir.kill()
    return bad


def end_like_an_interrupt(_number: int, _frame: object) -> None:
    """So that nobody whom we started outlives a `kill`."""
    raise KeyboardInterrupt


def main() -> int:
    options = parse_options()
    signal.signal(signal.SIGTERM, end_like_an_interrupt)
    folder = demonstrate.make_folder()
    print(f"many_jobs: {options.jobs} jobs of {options.ranks} ranks, {options.size}; {options.hogs} busy loops beside them, "
          f"{options.strangers} in sessions of their own; logs and evidence in {folder}", flush=True)
    with busy_loops(options):
        bad = run_jobs(options, folder)
    if not any(folder.glob("job*.txt")):
        shutil.rmtree(folder, ignore_errors=True)
    print(f"many_jobs: {options.jobs - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
