#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the stages of the test suite in two lanes, and counts.

In one lane are the stages that live by the clock: hosts, guests, machines that boot. They mostly wait, and run one after the
other. In the other lane are those that compute, two at once, at the lowest priority, so that they take what the first leave. A
stage waits for those that it needs, and others go before it. When the first lane has none left, it takes the next one that computes;
and the other takes what is patient of the first: what lives by the clock, but bears another such stage beside it.

A stage is a command. One that counts its tests ends in a line "NAME: N passed, N failed, N skipped"; any other is one
test. Files or seeds are not tests: a check of all of them is one. The last line of all is the sum. A stage that exits
non-zero without counting a failure is a failure by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from output import end_with  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
COUNT_LINE = re.compile(r"^\S+: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
COMPLAINT = re.compile(r"\b(failed|FAILED|Failure|ERROR|error:|WARNING: \w+Sanitizer)")
NO_COMPLAINT = re.compile(r"\b0 failed\b")
LINES_AFTER_COMPLAINT = 12
LINES_REPEATED = 80  # of one stage
# Line numbers are what a report needs; all else about a program takes long to compile and to link. Each library and program
# is compiled in one piece.
# Assertions are on, which meson would leave out of a plain build.
QUICKLY_BUILT = ["-Db_lundef=false", "-Db_ndebug=false", "-Dbuildtype=plain", "-Doptimization=1",
                 "-Dcpp_args=-gline-tables-only", "-Dunity=on", "-Dunity_size=100"]
THREAD_SANITIZED = ["-Db_sanitize=thread", *QUICKLY_BUILT]
SANITIZED = ["-Db_sanitize=address,undefined", "-Dfuzzers=edges", *QUICKLY_BUILT]
CLANG = str(ROOT / "tests/support/clang++")
PROCESSES_AT_ONCE = 8  # of unit tests: most of the long ones wait
AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
# Many of them use one core, and leave the other idle while the stage that lives by the clock waits.
COMPUTING_AT_ONCE = 2
# As in tools/prepare. Stages hand it on to the builds that they start. These share nothing with another, so the compiler lists what
# an object depends on: ccache would preprocess each file for that, which takes a tenth longer.
COMPILER_CACHE = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "locale", "CCACHE_DEPEND": "1"}
# CLANG is as old as its tree.
CACHE_OF_CLANG = {"CCACHE_COMPILERCHECK": "%compiler% --version"}


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)
    seconds: float = 0.0
    busy_seconds: float = 0.0  # of processors

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                     self.complaints + other.complaints, self.seconds + other.seconds,
                     self.busy_seconds + other.busy_seconds)

    def __str__(self) -> str:
        return (f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped "
                f"in {self.seconds:.0f} s, {self.busy_seconds:.0f} s of processors")


class Lane(Enum):
    CLOCK = "clock"
    COMPUTING = "computing"

    @property
    def width(self) -> int:
        """How many of its stages run at once."""
        return COMPUTING_AT_ONCE if self is Lane.COMPUTING else 1


@dataclass
class Stage:
    lane: Lane
    name: str
    about: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    junit: Path | None = None  # file with the cases of a meson test run
    quick: bool = False  # part of --quick
    needs: tuple[str, ...] = ()  # stages that must have ended before, if they run at all
    patient: bool = False  # bears another of its lane beside it
    by_name: bool = False  # runs when it is asked for, and not among all


def meson_tests(name: str, about: str, build: str, *arguments: str, quick: bool = False,
                environment: dict[str, str] | None = None, needs: tuple[str, ...] = (), patient: bool = False) -> Stage:
    """The gtest cases of one build directory."""
    command = ["meson", "test", "-C", build, "--print-errorlogs", "--num-processes", str(PROCESSES_AT_ONCE), *arguments]
    return Stage(Lane.CLOCK, name, about, command, environment or {}, ROOT / build / "meson-logs" / "testlog.junit.xml", quick,
                 needs, patient)


def configured(name: str, about: str, build: str, options: list[str], command: str) -> Stage:
    """Configures a build directory for a sanitizer, with clang, and runs a command that builds there."""
    # meson looks for a cache by itself only beside the compiler that it chooses
    words = (["ccache"] if shutil.which("ccache") else []) + [CLANG]
    linker = "CXX_LD=gold" if shutil.which("ld.gold") else ""  # as in tools/prepare
    setup = f"test -f {build}/build.ninja || CXX={shlex.quote(shlex.join(words))} {linker} meson setup {build} {' '.join(options)}"
    return Stage(Lane.COMPUTING, name, about, ["bash", "-ec", f"{setup}; {command}"], CACHE_OF_CLANG)


def on_the_clock(name: str, about: str, command: list[str], environment: dict[str, str] | None = None, *,
                 quick: bool = False, needs: tuple[str, ...] = (), patient: bool = False, by_name: bool = False) -> Stage:
    return Stage(Lane.CLOCK, name, about, command, environment or {}, None, quick, needs, patient, by_name)


def computing(name: str, about: str, command: list[str], environment: dict[str, str] | None = None, *,
              quick: bool = False, needs: tuple[str, ...] = ()) -> Stage:
    return Stage(Lane.COMPUTING, name, about, command, environment or {}, None, quick, needs)


STAGES = [
    computing("style", "clang-format and SPDX lines, every file", ["tests/style.py"], quick=True),
    meson_tests("unit", "unit tests, gcc", "build", "--suite", "unit", quick=True),
    computing("replay", "captures through weir-replay, every byte", ["tests/replay/run.py"], quick=True),
    computing("random-jobs", "random jobs and trees through weir-replay and its model",
              ["bash", "-ec", "tests/replay/random_jobs.py; tests/replay/random_trees.py"]),
    computing("expectation", "the replay model's own checks",
              ["bash", "-ec", "tests/replay/expect.py --check; tests/replay/expect.py --check-captures; "
                              "tests/replay/tree_check.py"]),
    computing("docs", "what documentation says is so", ["tests/docs.py"], quick=True),
    computing("operators", "the shipped operators, judged by numpy", ["tests/operators/run.py"], quick=True),
    computing("operator-ranks", "ranks of one host reduce by operators, judged by numpy", ["tests/operators/ranks.py"], quick=True),
    computing("operator-tracer", "operators written in Python, judged by numpy", ["tests/operators/tracer.py"], quick=True),
    computing("worked-diffs", "the diffs that CONTRIBUTING.md shows", ["tests/worked_diffs.py"]),
    computing("graph", "the stages' graph beside the way that packets take", ["tests/graph/run.py"], quick=True),
    computing("captures", "what the comparison of guests' captures must notice", ["tests/guest/capture_test.py"], quick=True),
    computing("wireshark", "what the dissector shows of captures and made frames", ["tests/wireshark/run.py"]),
    computing("figures-table", "the table of the papers' results", ["tests/figures/expectations_test.py"], quick=True),
    configured("clang", "the whole tree with clang, and with ASan and UBSan what runs", "build-asan", SANITIZED,
               "tests/clang.py build-asan"),
    configured("tsan-build", "what has threads, with ThreadSanitizer", "build-tsan", THREAD_SANITIZED,
               "ninja -C build-tsan --quiet tests/load/load_test tests/load/race_control tests/unit/concurrent_test"),
    computing("sanitized-replay", "captures under ASan and UBSan", ["tests/replay/run.py"], {"WEIR_BUILD": "build-asan"},
              needs=("clang",)),
    computing("tidy", "clang-tidy over lib and app", ["tests/tidy.py"], needs=("clang",)),
    # The longest first: two lanes take from here in the end.
    computing("budget", "instructions per packet or call, and stage, by callgrind", ["tests/bench/budget.py"]),
    computing("fuzz", "each fuzzer for a while", ["tests/fuzz/run.py", "--seconds", "20"], {"WEIR_BUILD": "build-asan"},
              needs=("clang",)),
    computing("model", "the protocol model under spin", ["tools/model", "--quick"]),
    computing("install", "the host library, built without DPDK, installed and used by another project", ["tests/install.py"]),
    computing("figures", "the papers' figures beside ours, and mutations that must show",
              ["tests/figures/run.py", "--quick", "--build", "build"]),
    computing("fabric", "a network that loses, doubles, delays and corrupts, by seeds",
              ["build/tests/fabric/fabric_sim", "--seeds", "1:60000", "--require-coverage"]),
    computing("manager-seeds", "the manager's loop in a made-up world, by seeds",
              ["build/tests/manager/manager_simulation", "1", "100"]),
    on_the_clock("smoke", "hosts in network namespaces, prompt, telemetry", ["tests/smoke/run.py"]),
    on_the_clock("torch", "the backend with PyTorch 2.13, and PyTorch's own tests of backends; 80 s of processors",
                 ["tests/torch/run.py"]),
    on_the_clock("guest", "soft-RoCE in virtual machines", ["tests/guest/run.py"]),
    on_the_clock("demo", "tools/demo, small, with loss",
                 ["tools/demo", "--size", "4MiB", "--ranks", "4", "--loss", "0.01"]),
    on_the_clock("fabric-demo", "tools/demo --fabric, small, with loss",
                 ["tools/demo", "--fabric", "--size", "2MiB", "--loss", "0.01"]),
    on_the_clock("training", "tools/demo --training, short", ["tools/demo", "--training", "--steps", "20"]),
    on_the_clock("load", "too much to do on several lcores, no mbufs left", ["tests/load/run.py"]),
    on_the_clock("races", "ThreadSanitizer reports planted races", ["tests/load/races.py"], {"WEIR_BUILD": "build-tsan"},
                 needs=("tsan-build",)),
    on_the_clock("tsan", "the switch on several lcores under ThreadSanitizer", ["tests/load/run.py", "--seconds", "2"],
                 {"WEIR_BUILD": "build-tsan"}, needs=("tsan-build",)),
    # Patient, the longest first.
    on_the_clock("packages", "the Debian packages: built, installed on a bare Debian, run there by systemd",
                 ["tests/packages.py"], patient=True),
    on_the_clock("server", "docs/deployment.md carried out on a bare Debian with emulated NICs; by name, 230 s of processors",
                 ["tests/server/run.py"], needs=("packages",), patient=True, by_name=True),
    on_the_clock("mpi4py", "mpi4py's own tests with Open MPI and MPICH, all of them; by name, an hour of processors", ["tests/mpi4py.py"], by_name=True),
    on_the_clock("bench", "what tools/bench runs, every part; no figure is judged", ["tests/bench/every_part.py"],
                 patient=True),
    meson_tests("sanitizers", "unit tests under ASan and UBSan", "build-asan", "--no-rebuild", "--suite", "unit",
                environment={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}, needs=("clang",), patient=True),
    meson_tests("tsan-unit", "host library, MAC table and captures under ThreadSanitizer", "build-tsan", "--no-rebuild",
                "--suite", "threads", needs=("tsan-build",), patient=True),
]


def cases_in(junit: Path) -> Count:
    count = Count()
    for case in xml.parse(junit).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
        elif case.find("skipped") is not None:
            count.skipped += 1
        else:
            count.passed += 1
    return count


def count_of(stage: Stage, status: int, output: str) -> Count:
    lines = COUNT_LINE.findall(output)
    if stage.junit is not None and stage.junit.exists():
        count = cases_in(stage.junit)
    elif lines:
        count = Count(*(int(number) for number in lines[-1]))
    else:
        count = Count(passed=1 if status == 0 else 0)
    if status != 0 and count.failed == 0:
        count.failed = 1
    return count


def complaints_in(lines: list[str]) -> list[str]:
    """The error lines of a long log, each with the lines after it."""
    wanted: list[str] = []
    left = 0
    for line in lines:
        is_complaint = COMPLAINT.search(line) is not None and NO_COMPLAINT.search(line) is None
        left = LINES_AFTER_COMPLAINT if is_complaint else left - 1
        if left > 0:
            wanted.append(line)
    return wanted[:LINES_REPEATED]


@contextlib.contextmanager
def without_autogroups() -> Iterator[None]:
    """The kernel shares processors between sessions, before it does between a session's processes. While the ranks of one spin,
    Linux 6.18 may leave out all others for many seconds, a switch's lcores among them (docs/lab/testing.md)."""
    try:
        before = AUTOGROUPS.read_text()
        AUTOGROUPS.write_text("0")
    except OSError:  # the kernel has none, or it takes root
        yield
        return
    try:
        yield
    finally:
        AUTOGROUPS.write_text(before)


def give_way() -> None:
    """Leaves the processors to whoever else wants them. Where the kernel weighs sessions before processes, it needs both."""
    os.setsid()
    os.nice(19)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def start(stage: Stage) -> subprocess.Popen[str]:
    return subprocess.Popen(stage.command, cwd=ROOT, env=os.environ | COMPILER_CACHE | stage.environment, text=True,
                            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            preexec_fn=give_way if stage.lane is Lane.COMPUTING else None)


def wait_for(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Its status, and the seconds of processors that it and what it waited for took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def run(stage: Stage, mark: str, keep: Callable[[subprocess.Popen[str]], None]) -> Count:
    """Its output goes on as it comes, with `mark` before each line; its process is given to `keep`."""
    print(f"{mark}=== {stage.name}: {stage.about}", flush=True)
    started = time.monotonic()
    if stage.junit is not None:
        stage.junit.unlink(missing_ok=True)
    process = start(stage)
    keep(process)
    output = []
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        print(mark + line, end="", flush=True)
    status, busy_seconds = wait_for(process)
    count = count_of(stage, status, "".join(output))
    count.seconds, count.busy_seconds = time.monotonic() - started, busy_seconds
    if count.failed:
        count.complaints = [f"\n=== {stage.name} said:\n", *(complaints_in(output) or output[-LINES_REPEATED:])]
    print(f"{mark}=== {stage.name}: {count}", flush=True)
    return count


class Run:
    """The chosen stages, by lanes."""

    def __init__(self, stages: list[Stage]) -> None:
        self._changed = threading.Condition()  # guards what is below
        self._waiting = {lane: deque(stage for stage in stages if stage.lane is lane) for lane in Lane}
        self._unfinished = {stage.name for stage in stages}
        self._processes: list[subprocess.Popen[str]] = []
        self.counts: dict[str, Count] = {}

    def stop(self) -> None:
        """What gives way has a session of its own, which a terminal's interrupt does not reach."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None and os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, signal.SIGTERM)

    def all(self) -> None:
        threads = [threading.Thread(target=self._run_lane, args=(lane,), daemon=True)
                   for lane in Lane if self._waiting[lane] for _ in range(lane.width)]
        self._has_one_lane = len(threads) == 1
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _ready_in(self, lane: Lane) -> Stage | None:
        """The next one that needs nothing which is still to come, and that this lane may take."""
        patient = [stage for stage in self._waiting[Lane.CLOCK] if stage.patient]
        return next((stage for stages in (self._waiting[lane], self._waiting[Lane.COMPUTING], patient) for stage in stages
                     if self._unfinished.isdisjoint(stage.needs)), None)

    def _may_come_to(self, lane: Lane) -> bool:
        return any(stage.patient or stage.lane in (lane, Lane.COMPUTING) for stages in self._waiting.values() for stage in stages)

    def _next_of(self, lane: Lane) -> Stage | None:
        with self._changed:
            while (stage := self._ready_in(lane)) is None:
                if not self._may_come_to(lane):
                    return None
                self._changed.wait()
            self._waiting[stage.lane].remove(stage)
            return stage

    def _run_lane(self, lane: Lane) -> None:
        while (stage := self._next_of(lane)) is not None:
            try:
                mark = "" if self._has_one_lane else f"{stage.name} | "
                self.counts[stage.name] = run(stage, mark, self._processes.append)
            except OSError as error:  # the lane goes on
                self.counts[stage.name] = Count(failed=1, complaints=[f"\n=== {stage.name} does not start: {error}\n"])
            finally:
                with self._changed:
                    self._unfinished.discard(stage.name)
                    self._changed.notify_all()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/test", description="Runs every test, or some stages.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages (see --list)")
    parser.add_argument("--list", action="store_true", help="list the stages")
    parser.add_argument("--quick", action="store_true", help="the inner loop: under a minute once built")
    options = parser.parse_args()
    if options.list:
        for stage in STAGES:
            print(f"{stage.name:16} {stage.about}")
        return 0
    names = {stage.name for stage in STAGES}
    if unknown := [name for name in options.stages if name not in names]:
        print(f"found stage {unknown[0]!r}; allowed: {', '.join(sorted(names))}", file=sys.stderr)
        return 2
    chosen = [stage for stage in STAGES
              if (stage.name in options.stages if options.stages else not stage.by_name) and (stage.quick or not options.quick)]
    chosen_run = Run(chosen)
    started = time.monotonic()
    try:
        with without_autogroups():
            chosen_run.all()
    except KeyboardInterrupt:
        chosen_run.stop()
        print("\ntools/test: interrupted", flush=True)
        return 130
    counts = chosen_run.counts
    total = sum(counts.values(), Count())
    print(f"\nThe stages' seconds. All took {time.monotonic() - started:.0f} s on {os.cpu_count()} cores:")
    for name, count in counts.items():
        print(f"{name:16} {count}")
    print("".join(total.complaints), end="")
    not_whole = [stage.name for stage in chosen if stage.name not in counts or counts[stage.name].failed]
    print("\nfailed stages: " + (", ".join(not_whole) or "none"))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if not_whole else 0


if __name__ == "__main__":
    end_with("tools/test", main)
