#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sets a server up as docs/deployment.md says, by the page's own commands, from a bare Debian to all-reduces
before and after a reboot.

    tests/server/run.py                  all of it
    tests/server/run.py --keep-logs DIR  the console, the commands with what they said, and the configuration go there

The server is a virtual machine with an IOMMU and NICs of three models; systemd starts it. Its hosts are network namespaces on this
machine. The test is the boot loader: it starts the kernel with the command line that update-grub has written. Needs root. Ends in
"server: N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/server"), str(ROOT / "tests/guest"), str(ROOT / "tests")]

import bare_debian  # noqa: E402
import set_up  # noqa: E402
from day import Day  # noqa: E402
from install import Mistake, summary, verdict  # noqa: E402
from machine import GuestError, why_no_emulator  # noqa: E402

# Each goes on where the one before it ended.
CHECKS: tuple[Callable[[Day], None], ...] = set_up.CHECKS


def why_not() -> str | None:
    if os.geteuid() != 0:
        return "only root can make a bare Debian"
    return why_no_emulator()


def attempt(day: Day, check: Callable[[Day], None]) -> str:
    def body() -> None:
        try:
            check(day)
        except Mistake:
            raise
        except (GuestError, OSError, subprocess.SubprocessError) as error:
            raise Mistake(str(error)) from error

    return verdict(check.__name__.removeprefix("check_").replace("_", " "), body)


def run(folder: Path, logs: Path) -> list[str]:
    words = []
    day = Day(folder, logs)
    try:
        for check in CHECKS:
            words.append(attempt(day, check))
            if words[-1] == "FAILED":
                break
    finally:
        day.close()
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="console, commands and configuration go there")
    options = parser.parse_args()
    if reason := why_not():
        print(f"server: 0 passed, 0 failed, 1 skipped\n  {reason}")
        return 0
    with bare_debian.folder_of_our_own("server") as folder:
        logs = options.keep_logs or folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        words = run(folder, logs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  {used.ru_utime + used.ru_stime:.0f} s of processors")
    return summary("server", words)


if __name__ == "__main__":
    sys.exit(main())
