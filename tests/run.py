#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the stages of the test suite, one after the other, and counts.

A stage is a command. One that counts its tests ends in a line "NAME: N passed, N failed, N skipped"; any other is one
test. Files or seeds are not tests: a check of all of them is one. The last line of all is the sum. A stage that exits
non-zero without counting a failure is a failure by itself.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNT_LINE = re.compile(r"^\S+: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
COMPLAINT = re.compile(r"\b(failed|FAILED|ERROR|error:|WARNING: \w+Sanitizer)")
NO_COMPLAINT = re.compile(r"\b0 failed\b")
LINES_AFTER_COMPLAINT = 12
LINES_REPEATED = 80  # of one stage
# Line numbers are what a report needs; all else about a program takes long to compile and to link. Each library and program
# is compiled in one piece.
QUICKLY_BUILT = ["-Db_lundef=false", "-Dbuildtype=plain", "-Doptimization=1", "-Dcpp_args=-gline-tables-only", "-Dunity=on",
                 "-Dunity_size=100"]
THREAD_SANITIZED = ["-Db_sanitize=thread", *QUICKLY_BUILT]
SANITIZED = ["-Db_sanitize=address,undefined", "-Dfuzzers=true", *QUICKLY_BUILT]
# As in tools/prepare. Stages hand it on to the builds that they start.
COMPILER_CACHE = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                     self.complaints + other.complaints)


@dataclass
class Stage:
    name: str
    about: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    junit: Path | None = None  # file with the cases of a meson test run
    quick: bool = False  # part of --quick


def meson_tests(name: str, about: str, build: str, *arguments: str, quick: bool = False,
                environment: dict[str, str] | None = None) -> Stage:
    """The gtest cases of one build directory."""
    return Stage(name, about, ["meson", "test", "-C", build, "--print-errorlogs", *arguments], environment or {},
                 ROOT / build / "meson-logs" / "testlog.junit.xml", quick)


def configured(name: str, about: str, build: str, compiler: str, options: list[str], targets: list[str]) -> Stage:
    """Configures a build directory with another compiler or sanitizer and builds some targets there."""
    if shutil.which("ccache"):
        compiler = f"'ccache {compiler}'"  # meson looks for it by itself only beside the compiler that it chooses
    setup = f"test -f {build}/build.ninja || CXX={compiler} meson setup {build} {' '.join(options)}"
    return Stage(name, about, ["bash", "-ec", f"{setup}; ninja -C {build} --quiet {' '.join(targets)}"])


STAGES = [
    Stage("style", "clang-format and SPDX lines, every file", ["tests/style.py"], quick=True),
    meson_tests("unit", "unit tests, gcc", "build", "--suite", "unit", quick=True),
    Stage("replay", "captures through weir-replay, every byte", ["tests/replay/run.py"], quick=True),
    Stage("random-jobs", "random jobs through weir-replay and its model", ["tests/replay/random_jobs.py"]),
    Stage("expectation", "the replay model's own checks",
          ["bash", "-ec", "tests/replay/expect.py --check; tests/replay/expect.py --check-captures"]),
    Stage("docs", "what documentation says is so", ["tests/docs.py"], quick=True),
    Stage("figures-table", "the table of the papers' results", ["tests/figures/expectations_test.py"], quick=True),
    Stage("figures", "the papers' figures beside ours, and mutations that must show",
          ["tests/figures/run.py", "--quick", "--build", "build"]),
    Stage("fabric", "a network that loses, doubles, delays and corrupts, by seeds",
          ["build/tests/fabric/fabric_sim", "--seeds", "1:60000", "--require-coverage"]),
    Stage("graph", "the stages' graph beside the way that packets take", ["tests/graph/run.py"], quick=True),
    Stage("budget", "instructions per packet or call, and stage, by callgrind", ["tests/bench/budget.py"]),
    Stage("smoke", "hosts in network namespaces, prompt, telemetry", ["tests/smoke/run.py"]),
    Stage("demo", "tools/demo, small, with loss",
          ["tools/demo", "--size", "4MiB", "--ranks", "4", "--loss", "0.01"]),
    Stage("training", "tools/demo --training, short", ["tools/demo", "--training", "--steps", "20"]),
    Stage("model", "the protocol model under spin", ["tools/model", "--quick"]),
    Stage("captures", "what the comparison of guests' captures must notice", ["tests/guest/capture_test.py"], quick=True),
    Stage("wireshark", "what the dissector shows of captures and made frames", ["tests/wireshark/run.py"], quick=True),
    Stage("guest", "soft-RoCE in virtual machines", ["tests/guest/run.py"]),
    Stage("bench", "tools/bench runs every part; no figure is judged", ["tests/bench/every_part.py"]),
    Stage("install", "the host library, built without DPDK, installed and used by another project", ["tests/install.py"]),
    Stage("packages", "the Debian packages: built, installed on a bare Debian, run there by systemd", ["tests/packages.py"]),
    configured("clang", "the whole tree with clang, ASan and UBSan", "build-asan", "clang++", SANITIZED, []),
    meson_tests("sanitizers", "unit tests under ASan and UBSan", "build-asan", "--suite", "unit",
                environment={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}),
    Stage("sanitized-replay", "captures under ASan and UBSan", ["tests/replay/run.py"], {"WEIR_BUILD": "build-asan"}),
    Stage("load", "too much to do on several lcores, no mbufs left", ["tests/load/run.py"]),
    configured("tsan-build", "what has threads, with ThreadSanitizer", "build-tsan", "clang++", THREAD_SANITIZED,
               ["tests/load/load_test", "tests/load/race_control", "tests/unit/host_test", "tests/unit/collectives_test",
                "tests/unit/many_groups_test", "tests/unit/rendezvous_test", "tests/unit/shrink_test",
                "tests/unit/l2_test", "tests/unit/capture_test"]),
    Stage("races", "ThreadSanitizer reports planted races", ["tests/load/races.py"], {"WEIR_BUILD": "build-tsan"}),
    Stage("tsan", "the switch on several lcores under ThreadSanitizer", ["tests/load/run.py", "--seconds", "2"],
          {"WEIR_BUILD": "build-tsan"}),
    meson_tests("tsan-unit", "host library, MAC table and captures under ThreadSanitizer", "build-tsan", "--no-rebuild",
                "host", "collectives", "many_groups", "rendezvous", "shrink", "l2", "capture"),
    Stage("tidy", "clang-tidy over lib and app", ["tests/tidy.py"]),
    Stage("fuzz", "each fuzzer for a while", ["tests/fuzz/run.py", "--seconds", "20"],
          {"WEIR_BUILD": "build-asan"}),
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


def run(stage: Stage) -> Count:
    print(f"\n=== {stage.name}: {stage.about}", flush=True)
    started = time.monotonic()
    if stage.junit is not None:
        stage.junit.unlink(missing_ok=True)
    process = subprocess.Popen(stage.command, cwd=ROOT, env=os.environ | COMPILER_CACHE | stage.environment, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = []
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        print(line, end="", flush=True)
    count = count_of(stage, process.wait(), "".join(output))
    if count.failed:
        count.complaints = [f"\n=== {stage.name} said:\n", *(complaints_in(output) or output[-LINES_REPEATED:])]
    print(f"=== {stage.name}: {count.passed} passed, {count.failed} failed, {count.skipped} skipped "
          f"in {time.monotonic() - started:.0f} s", flush=True)
    return count


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
              if (not options.stages or stage.name in options.stages) and (stage.quick or not options.quick)]
    counts = {stage.name: run(stage) for stage in chosen}
    total = sum(counts.values(), Count())
    print("".join(total.complaints), end="")
    print("\nfailed stages: " + (", ".join(name for name, count in counts.items() if count.failed) or "none"))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 0 if total.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
