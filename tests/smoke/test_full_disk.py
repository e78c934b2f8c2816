# SPDX-License-Identifier: BSD-3-Clause
"""A full disk: each program says which file it could not write, and why. Its exit status is not 0."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab import Lab, smoke_test
from weir import BUILD, CAPTURES, ROOT, Ended, expect, run_to_end

APP = BUILD / "app"
FULL = "/dev/full"
CAUSE = "cannot be written: No space left on device"
RACKS = ROOT / "config/topologies/two-racks.yaml"
REPLAY = [APP / "weir-replay", "--config", ROOT / "tests/replay/rings/ring3-i32-mtu256-noimm.yaml",
          "--in", CAPTURES / "ring3-i32-mtu256-noimm.pcap"]
PLAN = [APP / "weir-plan", "compare", "--topology", RACKS, "--sizes", "32K"]


def to_full_disk(command: list[str | Path]) -> Ended:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open(FULL, "wb") as full:  # argparse drops the error of a print that is not buffered
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60, env=environment)
    return Ended(done.returncode, "", done.stderr)


@smoke_test("full-disk-stdout")
def standard_output(_: Lab) -> None:
    words = [["--help"], ["--version"]]
    commands = [[APP / program, *more] for program in ("weir", "weir-plan", "weir-replay", "weir-worker", "weirctl")
                for more in words]
    commands += [[APP / "weir", "--keys"], [*REPLAY, "--out", "/dev/null"], [*REPLAY, "--out", "/dev/null", "--stats", "-"],
                 PLAN, [APP / "weir-plan", "make", "--topology", RACKS]]
    for command in commands:
        ended = to_full_disk(command)
        expect(ended.status == 1 and f"standard output: {CAUSE}" in ended.errors, f"{command}: {ended}")
    ended = to_full_disk([*REPLAY, "--out", "-"])
    expect(ended.status == 1 and f"standard output: {CAUSE}" in ended.errors, f"a capture: {ended}")


@smoke_test("full-disk-tools")
def tools(_: Lab) -> None:
    for command in (["tests/bench/run.py", "--list"], ["tests/bench/run.py", "--help"], ["tests/figures/run.py", "--list"],
                    ["tests/figures/run.py", "--help"], ["tests/run.py", "--list"], ["tools/demonstrate.py", "--help"]):
        ended = to_full_disk(["python3", ROOT / command[0], *command[1:]])
        expect(ended.status == 1 and "standard output: " in ended.errors and "No space left" in ended.errors, f"{command}: {ended}")
        expect("Traceback" not in ended.errors, f"{command}: {ended}")
    for option in ("--list", "--help"):
        ended = to_full_disk([ROOT / "tools/model", option])
        expect(ended.status != 0 and "No space left" in ended.errors, f"tools/model {option}: {ended}")


@smoke_test("full-disk-files")
def files(_: Lab) -> None:
    for command in ([*REPLAY, "--out", FULL], [*REPLAY, "--out", "/dev/null", "--stats", FULL], [*PLAN, "--out", FULL],
                    [*PLAN, "--plot", FULL]):
        ended = run_to_end(command)
        expect(ended.status == 1 and f"{FULL}: {CAUSE}" in ended.errors, f"{command}: {ended}")
