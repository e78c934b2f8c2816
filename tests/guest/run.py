#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the scenarios: real soft-RoCE hosts, as virtual machines, around one Weir or a tree of three.

    tests/guest/run.py                       all but those that take minutes alone
    tests/guest/run.py --list                what there is
    tests/guest/run.py --scenario 'rping*'   those whose name matches, however long they take (may be repeated)
    tests/guest/run.py --fabric bridge       the kernel's bridge instead of Weir, to see whether Weir or the test is wrong
    tests/guest/run.py --repeat 5            all of it five times, in the same guests and the same Weir
    tests/guest/run.py --keep-logs DIR       consoles, commands, captures, configuration and Weir's output go there; also
                                             what Weir and the guests' devices say after a failure
    tests/guest/run.py --capture             with --keep-logs: all frames of scenarios that fail

Needs root and Debian's packages; it names the missing ones. The last line is `guest: N passed, N failed, N skipped`; the
status is 0 when none failed, 1 when one did, 2 when nothing could be tried. On a machine that cannot run the emulator,
all scenarios are skipped, with a message.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import fnmatch
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import allreduce  # its scenarios register themselves
import bad_links  # and these
import nccl
import patience
import regions
import rings
import trees
from fabric import Setup
from guest import GuestError
from image import REPOSITORY, Image, ImageError, build_image
from lab import Lab, ScenarioFailed
from machine import why_no_emulator
from scenarios import SCENARIOS, Scenario, When
from switch import WEIR, FabricError, remove_leftovers

FAILURES = (FabricError, GuestError, ScenarioFailed)


@dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str  # passed, failed or skipped
    seconds: float
    detail: str


def say(text: str) -> None:
    print(text, flush=True)


def choose(patterns: Sequence[str]) -> list[Scenario]:
    if not patterns:
        return [known for known in SCENARIOS if known.when is not When.BY_NAME]
    for pattern in patterns:
        if not any(fnmatch.fnmatch(known.name, pattern) for known in SCENARIOS):
            names = " ".join(known.name for known in SCENARIOS)
            raise SystemExit(f"guest: no scenario is called {pattern!r}; there are: {names}")
    return [known for known in SCENARIOS if any(fnmatch.fnmatch(known.name, pattern) for pattern in patterns)]


def captured(known: Scenario) -> Scenario:
    """The same with captures of all ports, which stay when it fails."""
    def body(lab: Lab) -> str:
        captures = [lab.fabric.capture(port, "inout") for port in range(lab.setup.guests)]
        try:
            said = known.body(lab)
        finally:
            for capture in captures:
                capture.kill()
        for capture in captures:
            capture.file.unlink()
        return said
    return dataclasses.replace(known, body=body)


def attempt(lab: Lab, chosen: Scenario) -> Outcome:
    started = time.monotonic()
    try:
        verdict, detail = "passed", chosen.body(lab)
    except FAILURES as failure:
        verdict, detail = "failed", str(failure)
    except Exception:  # an error in the scenario is a failure; the others still run
        verdict, detail = "failed", traceback.format_exc()
    if verdict == "failed":
        lab.keep_evidence(f"{chosen.name}-failed.txt")
    if verdict == "failed" and (report := lab.switch.report()):
        detail += f"\n-- {lab.switch.name} said last:\n{report}"
    return Outcome(chosen.name, verdict, time.monotonic() - started, detail)


def progress(outcome: Outcome) -> None:
    first = outcome.detail.splitlines()[0] if outcome.detail else ""
    say(f"  {outcome.verdict:7} {outcome.name:32} {outcome.seconds:6.1f} s  {first}")


class Run:
    """Scenarios with the same guests, in one lab; in a new one when a scenario has broken it."""

    def __init__(self, chosen: Sequence[Scenario], switch: str, image: Image, logs: Path) -> None:
        # Those that take minutes come first, and so do the others of their setup.
        setups = list(dict.fromkeys(known.setup for known in sorted(chosen, key=is_short)))
        self._waiting = sorted(chosen, key=lambda known: (setups.index(known.setup), is_short(known)))
        self._switch, self._image, self._logs = switch, image, logs
        self._labs = 0
        self._lab: Lab | None = None
        self._beside: threading.Thread | None = None
        self.outcomes: list[Outcome] = []

    def begin_beside(self) -> None:
        """Begins its first scenario, if other guests' scenarios should go on beside it."""
        if not is_short(self._waiting[0]) and self._fit():
            self._beside = threading.Thread(target=self._attempt_first, daemon=True)
            self._beside.start()

    @property
    def urgency(self) -> int:
        """Others go on while its first scenario does, and wait when that has ended: so guests that do nothing take no time
        of theirs for longer than that."""
        if self._beside is None:
            return 1
        return 0 if self._beside.is_alive() else 2

    def step(self) -> bool:
        """Its next scenario, or its end. False when that has come."""
        if self._beside is not None:
            self._beside.join()
        if self._waiting and self._fit():
            self._attempt_first()
            return True
        if self._lab is not None:
            self._stop_switch()
        self.close()
        return False

    def close(self) -> None:
        if self._lab is not None:
            self._lab.close()
            self._lab = None

    def _fit(self) -> bool:
        """Makes the lab fit the next scenario. False when that fails; then all that wait have failed."""
        try:
            if self._lab is None:
                self._boot(self._waiting[0].setup)
            elif self._lab.setup != self._waiting[0].setup:
                self._rearrange(self._waiting[0].setup)
            return True
        except FAILURES as failure:
            self._fail_all(failure)
            return False

    def _boot(self, setup: Setup) -> None:
        self._labs += 1
        say(f"guest: booting {setup} around {self._switch}")
        started = time.monotonic()
        self._lab = Lab(setup, self._switch, self._image, self._logs / f"{setup.hosts}-{self._labs}")
        say(f"guest: up after {time.monotonic() - started:.1f} s")

    def _rearrange(self, setup: Setup) -> None:
        assert self._lab is not None
        self._stop_switch()
        self._lab.arrange(setup)
        say(f"guest: the same guests, now {setup}")

    def _fail_all(self, failure: Exception) -> None:
        say(f"guest: no lab: {failure}")
        reason = f"no lab: {str(failure).splitlines()[0]}"
        self.outcomes += [Outcome(left.name, "failed", 0.0, reason) for left in self._waiting]
        self._waiting.clear()
        self.close()

    def _attempt_first(self) -> None:
        self._attempt(self._waiting.pop(0))
        self._reset()

    def _attempt(self, chosen: Scenario) -> None:
        assert self._lab is not None
        self.outcomes.append(attempt(self._lab, chosen))
        progress(self.outcomes[-1])

    def _reset(self) -> None:
        assert self._lab is not None
        try:
            self._lab.reset()
        except GuestError as error:
            say(f"guest: this lab is broken, the next scenario gets a new one: {error}")
            self.close()

    def _stop_switch(self) -> None:
        assert self._lab is not None
        setup = self._lab.setup
        self._attempt(Scenario(f"clean-stop@{setup.name}", setup, lambda lab: lab.switch.stop()))


def is_short(known: Scenario) -> bool:
    return known.when is not When.BESIDE


def run_all(chosen: Sequence[Scenario], switch: str, logs: Path, rounds: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    if switch != "weir" and (left_out := [known for known in chosen if known.needs_weir]):
        say(f"guest: {len(left_out)} scenarios are about Weir itself and are not tried on a {switch}")
        chosen = [known for known in chosen if not known.needs_weir]
    for known in chosen:
        if missing := [program for program in known.programs if not (REPOSITORY / program).exists()]:
            outcomes.append(Outcome(known.name, "failed", 0.0, f"not built: {' '.join(missing)}"))
            progress(outcomes[-1])
    chosen = [known for known in chosen if all(known.name != outcome.name for outcome in outcomes)]
    image = build_image(sorted({REPOSITORY / program for known in chosen for program in known.programs}))
    say(f"guest: {image.kernel.name}, {image.initramfs.name}, {image.initramfs.stat().st_size / 1e6:.1f} MB")
    by_hosts: dict[str, list[Scenario]] = {}
    for known in chosen * rounds:
        by_hosts.setdefault(known.setup.hosts, []).append(known)
    runs = [Run(same, switch, image, logs) for same in by_hosts.values()]
    with contextlib.ExitStack() as stack:
        for run in runs:
            stack.callback(run.close)
            run.begin_beside()
        going_on = list(runs)
        while going_on:
            run = max(going_on, key=lambda run: run.urgency)
            if not run.step():
                going_on.remove(run)
                outcomes += run.outcomes
    return outcomes


def summarize(outcomes: Sequence[Outcome]) -> int:
    for outcome in outcomes:
        if outcome.verdict == "failed":
            say(f"\n==== {outcome.name} failed\n{outcome.detail}")
    say(f"\n{'scenario':32} result   seconds")
    for outcome in outcomes:
        say(f"{outcome.name:32} {outcome.verdict:8} {outcome.seconds:7.1f}")
    count = collections.Counter(outcome.verdict for outcome in outcomes)
    say(f"guest: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


def stop_on_signal(number: int, _: FrameType | None) -> None:
    for repeated in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(repeated, signal.SIG_IGN)  # cleaning up takes some time and must finish
    raise SystemExit(f"guest: stopped by {signal.Signals(number).name}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Soft-RoCE guests around one Weir.")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME",
                        help="run this one; a shell pattern matches several")
    parser.add_argument("--list", action="store_true", help="print the names of all scenarios")
    parser.add_argument("--fabric", choices=("weir", "bridge"),
                        help="default: weir when build/app/weir is there, else bridge")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run each scenario N times")
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="keep all logs and captures there")
    parser.add_argument("--capture", action="store_true", help="capture all frames; keep those of scenarios that fail")
    options = parser.parse_args()

    if options.list:
        for known in SCENARIOS:
            say(f"{known.name:32} {known.setup}{'; Weir only' if known.needs_weir else ''}{known.when.value}")
        return 0
    chosen = choose(options.scenario)
    if options.capture:
        chosen = [captured(known) for known in chosen]
    if (reason := why_no_emulator()) is not None:
        say(f"guest: *** SKIPPED, ALL OF THEM: {reason} ***")
        return summarize([Outcome(known.name, "skipped", 0.0, reason) for known in chosen])
    if os.geteuid() != 0:
        say("guest: needs root, for a network namespace and TAP devices of its own")
        return 2
    switch = options.fabric or ("weir" if WEIR.exists() else "bridge")
    if options.fabric is None and switch == "bridge":
        say(f"guest: *** no {WEIR}: THE KERNEL'S BRIDGE STANDS IN, AND WEIR IS NOT TESTED ***")
    if switch == "weir" and not WEIR.exists():
        say(f"guest: there is no {WEIR}: build it, or use --fabric bridge")
        return 2

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    remove_leftovers()
    if options.keep_logs is not None:
        options.keep_logs.mkdir(parents=True, exist_ok=True)
        return summarize(run_all(chosen, switch, options.keep_logs, options.repeat))
    with tempfile.TemporaryDirectory(prefix=f"weir-guest-{os.getpid()}-") as logs:
        return summarize(run_all(chosen, switch, Path(logs), options.repeat))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImageError as error:
        say(f"guest: {error}")
        sys.exit(2)
