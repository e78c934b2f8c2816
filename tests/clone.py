#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a new user's commands in a copy of the tree, in a directory in /tmp with spaces in its name.

The copy's build folders are links to this tree's, so that nothing is built twice, but for one small program that is
configured and built in the copy. Ends in "clone: N passed, N failed, N skipped".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from style import tracked_files

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("build", "build-release")
TIMEOUT_S = 600
RESULTS = "my results"


@dataclass(frozen=True)
class Step:
    name: str
    command: tuple[str, ...]
    says: str  # in its output
    needs_root: bool = False


STEPS = (
    Step("meson and ninja",
         ("bash", "-ec", "tools/prepare bench 'a build'; ninja -C 'a build' --quiet tests/unit/l2_test; "
                         "'a build/tests/unit/l2_test'"), "[  PASSED  ]"),
    Step("tools/prepare", ("tools/prepare", "test"), "prepare: building build"),
    Step("stages", ("tests/run.py", "style", "replay", "docs"), "failed stages: none"),
    Step("model", ("tools/model", "--only", "weir any H2 N1 L1 M6"), "weir any H2 N1 L1 M6"),
    Step("demo", ("tools/demo", "--ranks", "2", "--size", "1MiB"), "demo: OK"),
    Step("bench", ("tools/bench", "kernels", "--quick", "--only", "type=f32,", "--out", RESULTS),
         f"results: {RESULTS}/README.md"),
    Step("smoke", ("tests/smoke/run.py", "aggregate", "config-af_packet", "config-[d-t]*", "telemetry", "killed-*-*"),
         ", 0 failed, 0 skipped", needs_root=True),
    Step("guest", ("tests/guest/run.py", "--scenario", "all-reduce@9000"), "guest: 2 passed, 0 failed, 0 skipped",
         needs_root=True),
)


def copy_tree(copy: Path) -> None:
    """Copies tracked and new files into a repository of its own, for commands that use git."""
    for file in tracked_files():
        target = copy / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    for folder in LINKED:
        (copy / folder).symlink_to(ROOT / folder)


def passes(step: Step, copy: Path) -> bool:
    started = time.monotonic()
    done = subprocess.run(step.command, cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=TIMEOUT_S)
    holds = done.returncode == 0 and step.says in done.stdout
    print(f"  {'passed' if holds else 'FAILED'}  {step.name}  {time.monotonic() - started:.1f} s", flush=True)
    if not holds:
        print(f"    status {done.returncode}, and it should have said {step.says!r}; it said\n{done.stdout[-6000:]}")
    return holds


def main() -> int:
    # The copy links to this tree's builds. A lab has a private /tmp and would not see builds there. For a tree in /tmp, its
    # own smoke and guest stages test the same.
    may_use_labs = os.geteuid() == 0 and not ROOT.is_relative_to("/tmp")
    steps = [step for step in STEPS if may_use_labs or not step.needs_root]
    # Configured here first, because the linked build must have this tree as its source.
    subprocess.run([ROOT / "tools/prepare", "bench", "build-release"], check=True)
    with tempfile.TemporaryDirectory(prefix="weir, a copy ", dir="/tmp") as folder:
        copy = Path(folder) / "weir"
        copy_tree(copy)
        results = [passes(step, copy) for step in steps]
    failed = len(results) - sum(results)
    print(f"clone: {sum(results)} passed, {failed} failed, {len(STEPS) - len(steps)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
