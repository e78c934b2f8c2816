#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks ThreadSanitizer: it must report races made on purpose, and none where there is none.

tests/load/races.py, in the build that WEIR_BUILD names. Ends in "races: N passed, N failed, 0 skipped".
"""

from __future__ import annotations

import os
import subprocess
import sys

from run import PROGRAM, SANITIZER

CONTROL = PROGRAM.with_name("race_control")
REPORT = "WARNING: ThreadSanitizer: data race"
SUMMARY = {"queue": "pass_by_queue", "mbuf": "pass_by_pool"}


def defect(mistake: str) -> str:
    """What is wrong with the sanitizer's verdict; empty when nothing is wrong."""
    done = subprocess.run([CONTROL, mistake], text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, env=os.environ | SANITIZER)
    if mistake == "none":
        return "" if done.returncode == 0 and REPORT not in done.stdout else f"status {done.returncode}\n{done.stdout}"
    is_seen = done.returncode != 0 and REPORT in done.stdout and SUMMARY[mistake] in done.stdout
    return "" if is_seen else f"not reported; status {done.returncode}\n{done.stdout}"


def main() -> int:
    passed = failed = 0
    for mistake in ("none", *SUMMARY):
        complaint = defect(mistake)
        print(f"  {'FAILED' if complaint else 'ok    '}  {mistake} {complaint}")
        failed += bool(complaint)
        passed += not complaint
    print(f"races: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
