#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The PyTorch backend with PyTorch 2.13: four ranks behind a switch that makes a ring for each group.

    tests/torch/run.py                     what the suite runs
    tests/torch/run.py 'ddp*' 'torchrun*'  checks whose name matches
    tests/torch/run.py --all 'test_*'      all of PyTorch's own tests that match
    tests/torch/run.py --gloo 'test_*'     what passes with Gloo

Needs root (namespaces), and torch in build/torch (tools/prepare test puts it there). Ends in "torch: N passed, N failed, N
skipped"; status 1 when one failed.
"""
from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "smoke"), str(HERE.parent / "support")]

from hosts import RANKS  # noqa: E402
from lab import Lab  # noqa: E402
from test_control import at_socket, socket_of  # noqa: E402
from test_held_rings import room  # noqa: E402
from torch_ranks import Rank, TorchJob  # noqa: E402
from weir import BUILD, Failed, Weir  # noqa: E402

import programs  # noqa: E402

ENVIRONMENT = BUILD / "torch"  # tools/prepare
MODULES = "group_checks,sparse_checks,operator_checks,training_checks,staging_checks,registration_checks,judge"
RINGS = 24  # that the switch can make, beside its own
WINDOW, PACKETS, MTU = 4, 16, 1024  # of each
SHOWN = 60  # lines of each rank, when one ended too early
OWN_END_S = 2.0  # for ranks to end by themselves when another has: all watch the same time
DUMP_S = 10.0  # to print their stacks


class Round:
    """Ranks that make checks until all are over, or until one of the ranks has ended."""

    def __init__(self, ranks: list[Rank], switch: Weir) -> None:
        self.names: list[str] = []
        self.told: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.said: dict[int, list[str]] = defaultdict(list)  # by rank
        self._ranks, self._switch = ranks, switch
        self._seen = times_of(switch)  # before the check that is under way
        self._waited = ""  # since then
        threads = [threading.Thread(target=self._read, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _read(self, rank: Rank) -> None:
        for line in rank.lines():
            said, mark, told = line.partition('{"weir_torch"')  # what workers say may stand before it
            if mark:
                self._note(json.loads(mark + told))
            if said:
                self.said[rank.number].append(said)
        if rank.process.wait() != 0:
            self._waited = self._waited or waits_between(self._seen, times_of(self._switch))
            self._end_others()

    def _end_others(self) -> None:
        """They say where they stand."""
        deadline = time.monotonic() + OWN_END_S
        for rank in self._ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(deadline - time.monotonic(), 0))
        for rank in self._ranks:
            rank.process.send_signal(signal.SIGABRT)
        for rank in self._ranks:
            try:
                rank.process.wait(DUMP_S)
            except subprocess.TimeoutExpired:
                rank.process.kill()

    def _note(self, told: dict[str, Any]) -> None:
        if told["weir_torch"] == "names":
            self.names, self._seen = told["names"], times_of(self._switch)
            return
        self.told[told["check"]].append(told)
        if len(self.told[told["check"]]) == RANKS:
            self._seen = times_of(self._switch)
            show(told["check"], verdict_of(self.told[told["check"]]), max(each["seconds"] for each in self.told[told["check"]]),
                 {each["why"] for each in self.told[told["check"]]})

    def over(self) -> list[str]:
        return [name for name in self.names if len(self.told[name]) == RANKS]

    def end(self) -> str:
        """Of ranks that ended too early: first where each stood, then the last that each has said."""
        places = [rank.told_place() for rank in self._ranks]
        said = [f"rank {number}: {line}" for number, lines in sorted(self.said.items()) for line in lines[-SHOWN:]]
        return "\n".join([*places, self._waited, *said])


Times = dict[str, tuple[float, float]]


def times_of(switch: Weir) -> Times:
    """By thread, the seconds that it had a processor, and those that it waited for one."""
    times = {}
    for task in Path(f"/proc/{switch.process.pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            ran, waited, _ = (task / "schedstat").read_text().split()
            times[f"{(task / 'comm').read_text().strip()} {task.name}"] = int(ran) * 1e-9, int(waited) * 1e-9
    return times


def waits_between(before: Times, after: Times) -> str:
    """Of the thread that waited for longest."""
    spans = {thread: (ran - before.get(thread, (0, 0))[0], waited - before.get(thread, (0, 0))[1])
             for thread, (ran, waited) in after.items()}
    thread, (ran, waited) = max(spans.items(), key=lambda span: span[1][1], default=("no thread", (0, 0)))
    return f"switch: meanwhile {thread} had a processor for {ran:.1f} s and waited for one for {waited:.1f} s"


def verdict_of(told: list[dict[str, Any]]) -> str:
    verdicts = {each["verdict"] for each in told}
    return next(verdict for verdict in ("failed", "skipped", "passed") if verdict in verdicts)


def show(name: str, verdict: str, seconds: float, reasons: set[str]) -> None:
    print(f"  {verdict.upper() if verdict == 'failed' else verdict}  {name}  {seconds:.1f} s", flush=True)
    for reason in sorted(reasons - {""}):
        print("    " + reason.strip().replace("\n", "\n    "), flush=True)


class Runner:
    def __init__(self, lab: Lab, python: Path, backend: str, scope: str) -> None:
        self._lab, self._backend, self._scope = lab, backend, scope
        self.job = TorchJob(lab, 0, more=at_socket(lab, room(lab, RINGS, WINDOW, PACKETS)), python=python)
        self.counts: Counter[str] = Counter()

    def environment(self) -> dict[str, str]:
        folder = Path(tempfile.mkdtemp(dir=self._lab.directory))  # where torch's tests have their files
        for part in ("barrier", "init_dir", "test_dir"):
            (folder / part).mkdir()
        return {"CHECKED_BACKEND": self._backend, "CHECKED_SCOPE": self._scope, "TEMP_DIR": str(folder),
                "WEIR_SWITCH": f"unix:{socket_of(self._lab)}", "WEIR_WINDOW": str(WINDOW),
                "WEIR_MESSAGE_BYTES": str(PACKETS * MTU), "PYTHONPATH": str(HERE)}

    def check(self, patterns: list[str]) -> None:
        """All checks in one set of ranks; in another one what comes after a check that ended its ranks."""
        done, names = 0, None
        while names is None or done < len(names):
            ranks = self.job.start(HERE / "ranks.py", MODULES, *patterns, **self.environment(), CHECKS_DONE=str(done))
            finished = Round(ranks, self.job.switch)
            names, over = finished.names, finished.over()
            self.counts.update(verdict_of(finished.told[name]) for name in over)
            done += len(over)
            if done < len(names) or not names and any(rank.process.returncode for rank in ranks):
                show(names[done] if names else "checks", "failed", 0, {finished.end()})
                self.counts["failed"] += 1
                done += 1

    def run(self, name: str, program: Callable[[TorchJob, dict[str, str]], None]) -> None:
        started = time.monotonic()
        try:
            program(self.job, self.environment())
            verdict, reason = "passed", ""
        except Failed as failure:
            verdict, reason = "failed", str(failure)
        show(name, verdict, time.monotonic() - started, {reason})
        self.counts[verdict] += 1


def reason_to_skip(python: Path) -> str:
    if os.geteuid() != 0:
        return "network namespaces need root"
    if python.exists():
        return ""
    told = ENVIRONMENT.with_suffix(".missing")
    return told.read_text().strip() if told.exists() else f"there is no {python}: tools/prepare test makes it"


def ending(counts: Counter[str]) -> int:
    print("torch: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("passed", "failed", "skipped")), flush=True)
    return 1 if counts["failed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gloo", action="store_true", help="with Gloo, for comparison")
    parser.add_argument("--all", action="store_true", help="also those of PyTorch's tests that the suite leaves out")
    parser.add_argument("checks", nargs="*", metavar="NAME", help="shell patterns")
    options = parser.parse_args()
    python = Path(os.environ.get("WEIR_TORCH_PYTHON", ENVIRONMENT / "bin/python"))
    if reason := reason_to_skip(python):
        print(f"torch: *** ALL SKIPPED: {reason} ***")
        return ending(Counter(skipped=1))
    lab = Lab("torch")
    try:
        runner = Runner(lab, python, "gloo" if options.gloo else "weir", "all" if options.all else "suite")
        patterns = options.checks or ["*"]
        started = [name for name in programs.ALL if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
        if set(patterns) - set(started):
            runner.check(patterns)
        for name in started:
            runner.run(name, programs.ALL[name])
    finally:
        lab.close()
    return ending(runner.counts)


if __name__ == "__main__":
    sys.exit(main())
