#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends each capture through weir-replay and compares every byte and every counter with expected/*.txt.

    tests/replay/run.py            all cases, some at a time
    tests/replay/run.py --list     their names
    tests/replay/run.py CASE...    some
    tests/replay/run.py --unjudged sends each through once, and compares nothing: for who counts what happens meanwhile

Needs build/app/weir-replay. Ends in "replay: N passed, N failed, N skipped"; status 1 when one failed.
"""
from __future__ import annotations

import os
import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import expect
from kept_frames import with_kept_frames
from operators import with_texts
from roce import describe, read_stamped, stamped_pcap_bytes
from switch_model import Switch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AT_A_TIME = 2
IN_A_ROW = 6  # of one process: the switches of a tree share the network that they were in
REPLAY = ROOT / os.environ.get("WEIR_REPLAY", Path(os.environ.get("WEIR_BUILD", "build")) / "app" / "weir-replay")


class Failed(Exception):
    """What differs from what was expected."""


def replay(config: Path, frames: Path, out: Path, session: int = 1) -> Any:
    """Returns the statistics. `session`: that of the first incarnation."""
    stats = out.with_suffix(".json")
    command = [REPLAY, "--config", config, "--in", frames, "--out", out, "--stats", stats, "--session", str(session)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failed(f"weir-replay ended with {done.returncode}: {done.stderr}")
    return json.loads(stats.read_text())


def compare_frames(switch: Switch, got: list[bytes]) -> None:
    """Compares what left the model with what left the switch."""
    for number, (want, frame) in enumerate(zip(switch.sent, got)):
        if want.frame != frame:
            raise Failed(f"frame {number}, {want.kind} caused by {want.cause if want.cause is not None else want.ns}:\n"
                         f"expected {describe(want.frame)}\ngot {describe(frame)}")
    if len(got) != len(switch.sent):
        raise Failed(f"{len(got)} frames, expected {len(switch.sent)}")


def send_tree(case: expect.TreeCase, directory: Path) -> tuple[Any, Path]:
    """Returns the statistics, and where the frames are that left."""
    config, sent, received = (directory / f"{case.name}.{kind}" for kind in ("yaml", "in.pcap", "out.pcap"))
    config.write_text(with_texts(expect.tree_yaml(case)))
    sent.write_bytes(stamped_pcap_bytes(case.frames()))
    return replay(config, sent, received, case.first_session), received


def check_tree(case: expect.TreeCase, directory: Path) -> None:
    """The model looks at its timers when the switch was seen to."""
    stats, received = send_tree(case, directory)
    got = read_stamped(received)
    looks = sorted({ns for ns, _ in got} - {ns for ns, _ in case.frames()})
    frames, switch = expect.run(case, looks)
    compare_frames(switch, [frame for _, frame in got])
    compare_counters(expect.counters(case, frames, switch), stats)


def counters_in(expected: Path) -> dict[str, int]:
    lines = (line.split() for line in expected.read_text().splitlines() if line.startswith("counter "))
    return {name: int(value) for _, name, value in lines}


def reasons_in(stats: Any, table: str) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in stats[table]}


def wanted_reasons(want: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in want.items() if name.startswith(prefix)}


def compare_counters(want: dict[str, int], stats: Any) -> None:
    """Compares the expected counters with the switch's. A drop reason that is not listed must have no count."""
    accounting, ring = stats["accounting"][0], stats["rings"][0]
    drops, wanted_drops = reasons_in(stats, "drops"), wanted_reasons(want, "drop.")
    originated = sum(want.get(f"sent_{kind.replace('-', '_')}", 0) for kind in (*expect.OWN_KINDS, "climb"))
    pairs = {
        "received": (want["received"], accounting["received"]),
        "forwarded": (want["forwarded"] + want["flooded"], accounting["forwarded"]),
        "originated": (originated, accounting["originated"]),
        "consumed": (want["aggregated"] + want["cached_repeats"] + originated, accounting["consumed"]),
        "dropped": (sum(wanted_drops.values()), accounting["dropped"]),
        "held": (want["held_at_end"], accounting["held"]),
        "queued": (0, accounting["queued"]),
        "balances": ("yes", accounting["balances"]),
        "slots_completed": (want["slots_completed"], ring["slots_completed"]),
        "filling": (want["slots_filling_at_end"], ring["filling"]),
        "results": (want["sent_results"], ring["results"]),
        "cached_results": (want["sent_cached_results"], ring["cached_results"]),
        "drops": (wanted_drops, drops),
        "foreign": (wanted_reasons(want, "foreign."), reasons_in(stats, "foreign")),
    }
    wrong = [f"{name}: expected {a}, counted {b}" for name, (a, b) in pairs.items() if a != b]
    if wrong:
        raise Failed("\n".join(wrong))


def inputs_of(case: str, directory: Path) -> tuple[Path, Path]:
    """Writes a configuration and a capture."""
    config, frames = directory / "switch.yaml", directory / "in.pcap"
    config.write_text(with_texts((HERE / "rings" / f"{case}.yaml").read_text()))
    expect.write_input(case, frames)
    return config, frames


def check(case: str, directory: Path) -> None:
    tree = expect.TREE_CASES.get(case)
    if tree:
        return check_tree(with_kept_frames(tree), directory)
    expected = HERE / "expected" / f"{case}.txt"
    config, frames = inputs_of(case, directory)
    first, second = (directory / f"{name}.pcap" for name in ("first", "second"))
    stats = replay(config, frames, first)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        differs = expect.verify(first, expected)
    if differs:
        raise Failed(said.getvalue())
    compare_counters(counters_in(expected), stats)
    again = replay(config, frames, second)
    if first.read_bytes() != second.read_bytes() or stats != again:
        raise Failed("a second run gives other bytes or other counters")


def send(case: str, directory: Path) -> None:
    tree = expect.TREE_CASES.get(case)
    if tree:
        send_tree(with_kept_frames(tree), directory)
    else:
        replay(*inputs_of(case, directory), directory / "out.pcap")


def passes(case: str, what: Callable[[str, Path], None]) -> bool:
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="weir-replay-") as directory:
            what(case, Path(directory))
    except (Failed, subprocess.TimeoutExpired, KeyError, ValueError) as problem:
        print(f"  FAILED  {case}\n    " + f"{type(problem).__name__}: {problem}".strip().replace("\n", "\n    "), flush=True)
        return False
    print(f"  passed  {case}  {time.monotonic() - started:.1f} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    parser.add_argument("--unjudged", dest="what", action="store_const", const=send, default=check,
                        help="send each through once, and compare nothing")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    if unknown := [case for case in options.cases if case not in expect.ALL]:
        parser.error(f"found case {unknown[0]!r}; allowed: {', '.join(expect.ALL)}")
    if options.list:
        print("\n".join(expect.ALL))
        return 0
    cases = options.cases or list(expect.ALL)
    if not REPLAY.exists():
        print(f"replay: there is no {REPLAY}: meson setup build && ninja -C build")
        print(f"replay: 0 passed, {len(cases)} failed, 0 skipped")
        return 1
    with ProcessPoolExecutor(AT_A_TIME) as processes:
        results = list(processes.map(passes, cases, repeat(options.what), chunksize=IN_A_ROW))
    print(f"replay: {sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
