#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A switch's year in hours: jobs of three parties come and go, ranks are killed, links flap, the configuration and the
certificates change, metrics are scraped and captures taken, all at once and by dice. What comes of each is checked,
and what may not grow is watched. In the end nothing may be left.

    tools/soak                    two hours
    tools/soak --hours 0.5        so many
    tools/soak --seed 7           other dice
    tools/soak --pace 4           pauses four times as long between the acts of a kind: less load
    tools/soak --only 'jobs*,captures'  acts whose name fits, to find whose fault something is
    tools/soak --out FOLDER       where the samples, the switch's log and what went wrong are left (soak-results)

Needs root (namespaces). Ends in a table; status 1 when something was not as it must be.
"""
from __future__ import annotations

import argparse
import csv
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in ("soak", "smoke"):
    sys.path.insert(0, str(HERE.parent / folder))
from lab import Lab  # noqa: E402
from soak import Soak  # noqa: E402


def save(soak: Soak, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(soak.site.switch.log, folder / "switch.log")
    (folder / "wrong.txt").write_text("\n".join(soak.wrong))
    rows = soak.watch.rows()
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def tell(text: str) -> None:
    """A line that the next one overwrites; in a log one now and then."""
    if sys.stderr.isatty():
        print(f"\rsoak: {text}\033[K", end="", file=sys.stderr, flush=True)
    elif time.monotonic() - tell.last > 60.0:  # type: ignore[attr-defined]
        tell.last = time.monotonic()  # type: ignore[attr-defined]
        print(f"soak: {text}", file=sys.stderr, flush=True)


tell.last = 0.0  # type: ignore[attr-defined]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*")
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=Path("soak-results"))
    given = parser.parse_args()
    for name in ("hours", "pace"):
        if not getattr(given, name) > 0:
            parser.error(f"--{name}: found {getattr(given, name)}; allowed: more than 0")
    lab = Lab("soak")
    try:
        soak = Soak(lab, given.hours * 3600.0, given.seed, given.pace, given.only, tell)
        soak.run()
        save(soak, given.out)
    finally:
        lab.close()
    print(f"\n{soak.table()}\n")
    for wrong in soak.wrong:
        print(f"soak: {wrong}", file=sys.stderr)
    print(f"soak: {'as it must be' if not soak.wrong else 'NOT as it must be'}; {given.out} has the samples and the switch's log")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
