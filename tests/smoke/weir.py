# SPDX-License-Identifier: BSD-3-Clause
"""The switch as a process: start, questions, stop, and its last output."""
from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netns import KILLED_WITH_US, Namespace

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import telemetry  # noqa: E402

BUILD = ROOT / os.environ.get("WEIR_BUILD", "build")  # another for a sanitizer build
WEIR = Path(os.environ.get("WEIR_PROGRAM", BUILD / "app" / "weir"))
REPLAY = BUILD / "app" / "weir-replay"
CAPTURES = ROOT / "tests" / "replay" / "captures"
OPERATORS = ROOT / "config" / "operators"

START_S = 30.0
STOP_S = 20.0
# The switch has a private /run and /tmp, so its sockets and locks are separate and end with it. A tree inside them is
# mounted again by a descriptor, because its name does not exist there any more (-c: do not resolve it).
PRIVATE_FILES = (
    "unshare", "--mount", "--propagation", "private", "sh", "-ec",
    'exec 3<"$0"; mount -t tmpfs none /run; mount -t tmpfs none /tmp; '
    '[ -d "$0" ] || { mkdir -p "$0"; mount -c --bind /proc/self/fd/3 "$0"; }; exec 3<&-; exec "$@"', str(ROOT))

NO_HUGEPAGES = '["--no-huge", "-m", "256", "--no-pci", "--no-shconf"]'
ONE_CORE = "  - { id: 1, roles: [control, rx, worker, tx], idle: sleep }\n"


class Failed(Exception):
    """What was seen, and what was expected."""


class Skipped(Exception):
    """What this machine lacks for a test."""


def text_file(operator: str) -> Path:
    """Of an operator that comes with Weir."""
    return OPERATORS / f"{operator}.weir"


def expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)


def wait_for(ready: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """A question that is a process takes processor time: breaks are three times as long as questions."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not ready():
        expect(time.monotonic() < deadline, otherwise)
        time.sleep(max(0.01, 3 * (time.monotonic() - asked)))
        asked = time.monotonic()


QUIET_PORT = 'name: p0, device: "net_null0,no-rx=1"'  # otherwise it receives as much as an lcore takes


def configuration(ports: Sequence[str], lcores: str = ONE_CORE, rings: str = "", eal: str = NO_HUGEPAGES) -> str:
    """A configuration file; a port is given without its braces."""
    lines = "".join(f"  - {{ {port} }}\n" for port in ports)
    return (f"eal:\n  options: {eal}\nports:\n{lines}lcores:\n{lcores}" + (f"rings:\n{rings}" if rings else ""))


def without_probes(config: str) -> str:
    """The configuration, unless it says something of loops, of a switch that sends no loop probes: so a test can count
    every frame. No line gets another number."""
    if "loop_detection" in config:
        return config
    l2 = re.search(r"^l2:[ \t]*(\{|(?:#.*)?\n([ \t]+))", config, re.MULTILINE)
    if l2 is None:
        return config.rstrip("\n") + "\nl2: { loop_detection: no }\n"
    if l2[1] == "{":
        return config[:l2.end()] + " loop_detection: no," + config[l2.end():]
    return config[:l2.end()] + f"loop_detection: no\n{l2[2]}" + config[l2.end():]


@dataclass(frozen=True)
class Ended:
    status: int
    output: str  # standard output; of a started switch standard error too
    errors: str = ""


@dataclass(frozen=True)
class Totals:
    """The switch's last output (app/weir_main.cpp)."""

    TERMS = ("received", "originated", "forwarded", "consumed", "dropped", "held", "queued")

    accounting: dict[str, int]
    drops: dict[str, int]

    @classmethod
    def read(cls, output: str, most_kept: int = 0) -> Totals:
        """`most_kept`: mbufs that drivers may not give back."""
        buffers = re.search(r"^weir: stopped, (\d+) of (\d+) mbufs free$", output, re.MULTILINE)
        if buffers is None:
            raise Failed(f"no totals; the switch said:\n{output[-3000:]}")
        missing = int(buffers[2]) - int(buffers[1])
        expect(0 <= missing <= most_kept, f"mbufs are missing: {buffers[0]}\n{output[-2000:]}")
        row = re.findall(r"^" + r" +(\d+)" * len(cls.TERMS) + r" +(yes|no)$", output, re.MULTILINE)
        expect(row, f"no accounting among the totals:\n{output[-3000:]}")
        *counts, balances = row[-1]
        accounting = dict(zip(cls.TERMS, map(int, counts), strict=True))
        came = accounting["received"] + accounting["originated"]
        left = sum(accounting[name] for name in cls.TERMS[2:])
        expect(came == left and balances == "yes", f"frames went missing: {row[-1]}")
        expect(accounting["held"] == 0 and accounting["queued"] == 0, f"frames left behind: {row[-1]}")
        last = output[output.rindex("\ndrops\n"):].partition("\nforeign\n")[0]
        drops = {name: int(count) for name, count in re.findall(r"^  ([a-z_]+) +(\d+)  \S", last, re.MULTILINE)}
        return cls(accounting, drops)


class Weir:
    """A running switch. `stop` ends it and returns its totals; `close` ends it in any state."""

    def __init__(self, namespace: Namespace, config: Path, log: Path, *arguments: str,
                 directory: Path = ROOT, terminal: int | None = None) -> None:
        self.log = log
        command = [*KILLED_WITH_US, *PRIVATE_FILES, str(WEIR), "--config", str(config), *arguments]
        with namespace.entered(), log.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=directory, start_new_session=True,
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=output if terminal is None else terminal,
                stderr=subprocess.STDOUT if terminal is None else terminal)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def is_ready(self) -> bool:
        return "weir: ready\n" in self.output()

    def wait_ready(self) -> None:
        def ready() -> bool:
            expect(self.process.poll() is None, f"the switch ended, {self.process.returncode}:\n{self.output()}")
            return self.is_ready()
        wait_for(ready, START_S, "no `weir: ready`")

    def refusal(self) -> Ended:
        """The end of a switch that must not start."""
        def over() -> bool:
            expect(not self.is_ready(), f"the switch starts, and should refuse to:\n{self.output()[-3000:]}")
            return self.process.poll() is not None
        wait_for(over, START_S, "neither `weir: ready` nor an end")
        return self.wait()

    def stop(self, number: signal.Signals = signal.SIGINT, most_kept: int = 0) -> Totals:
        self.process.send_signal(number)
        ended = self.wait()
        expect(ended.status == 0, f"exit status {ended.status} after {number.name}:\n{ended.output[-3000:]}")
        return Totals.read(ended.output, most_kept)

    def wait(self) -> Ended:
        try:
            return Ended(self.process.wait(STOP_S), self.output())
        except subprocess.TimeoutExpired:
            raise Failed(f"the switch does not end:\n{self.output()[-3000:]}") from None

    def ask(self, command: str) -> dict[str, Any]:
        """The telemetry socket's answer, without the repeated name."""
        answer = json.loads(self.ask_raw(command))
        return dict(answer[command.partition(",")[0]])

    def ask_raw(self, command: str) -> str:
        run = Path(f"/proc/{self.process.pid}/root/run/dpdk")
        found = sorted(run.glob("*/dpdk_telemetry.v2"))
        expect(len(found) == 1, f"telemetry sockets: {found}")
        return telemetry.ask(found[0], command)

    def close(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run_to_end(command: Sequence[str | Path], directory: Path = ROOT, namespace: Namespace | None = None) -> Ended:
    """Runs a program until it ends by itself."""
    with namespace.entered() if namespace else contextlib.nullcontext():
        try:
            done = subprocess.run([*KILLED_WITH_US, *PRIVATE_FILES, *map(str, command)] if namespace else
                                  [*KILLED_WITH_US, *map(str, command)], cwd=directory, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=START_S)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"`{' '.join(map(str, command))}` does not end: {late.output!r}") from None
    return Ended(done.returncode, done.stdout, done.stderr)
