#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The switch on several lcores under overload, in each placement of its roles (docs/testing.md).

tests/load/run.py [--seconds N] [--measure] [ROLES ...]; N is the overload in each placement. With --measure it also prints for
how long lcores stand still for each question of the prompt; no figure is judged. WEIR_BUILD names another build, such as one
with ThreadSanitizer, whose reports fail the run. Ends in "load: N passed, N failed, 0 skipped".
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / os.environ.get("WEIR_BUILD", "build") / "tests/load/load_test"
ROLES = ["one-lcore", "two-lcores", "pipeline", "two-pipelines", "helped"]
COUNT = re.compile(r"^load: (\d+) passed, (\d+) failed, 0 skipped$", re.MULTILINE)
TIMEOUT_S = 600  # without the overload itself
# In quotes: a space ends an option.
SANITIZER = {"TSAN_OPTIONS": f"suppressions='{ROOT / 'tests/load/tsan.supp'}':history_size=7"}


def run(roles: str, seconds: int, more: list[str]) -> tuple[int, int]:
    """Returns the numbers of passed and failed checks."""
    command = [str(PROGRAM), "--roles", roles, "--seconds", str(seconds), *more]
    try:
        done = subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds + TIMEOUT_S, env=os.environ | SANITIZER)
    except subprocess.TimeoutExpired as late:
        print(f"{late.output}\nload: {roles} does not end")
        return 0, 1
    print(done.stdout, end="", flush=True)
    count = COUNT.search(done.stdout)
    passed, failed = (int(count[1]), int(count[2])) if count else (0, 0)
    if done.returncode != 0 and failed == 0:
        print(f"load: {roles}: exit status {done.returncode}")
        failed = 1
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of overload in each placement (default 4)")
    parser.add_argument("--measure", action="store_const", const=["--questions", "measured"], default=[],
                        help="print for how long lcores stand still for each question, 6 s for each of two loads")
    parser.add_argument("roles", nargs="*", metavar="ROLES", help=f"of {', '.join(ROLES)}")
    options = parser.parse_args()
    if unknown := [roles for roles in options.roles if roles not in ROLES]:
        parser.error(f"found {unknown[0]!r}; allowed: {', '.join(ROLES)}")
    counts = [run(roles, options.seconds, options.measure) for roles in options.roles or ROLES]
    passed, failed = sum(count[0] for count in counts), sum(count[1] for count in counts)
    print(f"load: {passed} passed, {failed} failed, 0 skipped")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
