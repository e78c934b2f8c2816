#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Part `beside` of tools/bench: small calls alone and beside large ones of another group, in one process of each rank or in two.

Two ranks and a switch over veth pairs, in network namespaces: needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rounds import Parameters

if TYPE_CHECKING:
    from lab import Lab
    from netns import Namespace

ROOT = Path(__file__).resolve().parent.parent.parent
PART = "beside"
ROUNDS, QUICK_ROUNDS = 5, 1
CALLS, QUICK_CALLS = 300, 50
SIZES = (64, 4096)
LARGE = 4 << 20
RANKS, WINDOW, MESSAGE_BYTES, PATH_MTU = 2, 8, 65536, 1024
WAYS = ("callback", "wait")
FIRST_PORT = 7500
UNDER_WAY_S = 0.05  # until the large calls are
LARGE_S = 0.5  # for the large calls, alone and beside small ones


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="where beside_rank and weir are built")
    parser.add_argument("--part", choices=[PART], default=PART)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT")
    return parser.parse_args()


class Process:
    """A rank's, with a group for each of its rings."""

    def __init__(self, lab: Lab, hosts: Namespace, program: Path, rank: int, way: str, rings: list[int]) -> None:
        from netns import KILLED_WITH_US
        place = f"127.0.0.1:{FIRST_PORT + 10 * rings[0]}"
        command = [*KILLED_WITH_US, program, rank, RANKS, place, f"host{rank}", f"10.77.0.{rank + 1}", WINDOW, MESSAGE_BYTES,
                   PATH_MTU, way, *rings]
        with hosts.entered():
            self._process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True)
        lab.on_end(self._process.kill)

    def tell(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def hear(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"rank {self._process.args!r} ended")
        return line.split()


class Job:
    """Two groups on rings of their own: in one process of each rank, or in one each."""

    def __init__(self, lab: Lab, hosts: Namespace, program: Path, way: str, processes: int, first_ring: int) -> None:
        rings = [first_ring, first_ring + 1]
        made = [[Process(lab, hosts, program, rank, way, mine) for rank in range(RANKS)]
                for mine in ([rings] if processes == 1 else [[ring] for ring in rings])]
        self._small, self._large = made[0], made[-1]
        for process in (process for ranks in made for process in ranks):
            process.hear()

    @staticmethod
    def _order(ranks: list[Process], order: str) -> list[str]:
        """Rank 0's answer."""
        for process in ranks:
            process.tell(order)
        return [process.hear() for process in ranks][0]

    def small(self, size: int, calls: int) -> tuple[float, float]:
        """Median and 99th percentile, us."""
        median, late = self._order(self._small, f"small {size} {calls}")[:2]
        return float(median), float(late)

    def start(self) -> None:
        self._order(self._large, f"start {LARGE}")

    def stop(self) -> float:
        """Of a large call, ms."""
        calls, seconds = self._order(self._large, "stop")[:2]
        return 1e3 * float(seconds) / int(calls)

    def measure(self, size: int, calls: int) -> dict[str, dict[str, object]]:
        alone = self.small(size, calls)
        self.start()
        time.sleep(UNDER_WAY_S)
        end = time.monotonic() + LARGE_S
        beside = self.small(size, calls)
        while time.monotonic() < end:  # or they would be alone for the longer part
            self.small(size, calls)
        large_beside = self.stop()
        self.start()
        time.sleep(LARGE_S)
        large = self.stop()
        return {"beside": figure(beside[0], "us", "alone"), "alone": figure(alone[0], "us"),
                "beside p99": figure(beside[1], "us", "alone p99"), "alone p99": figure(alone[1], "us"),
                "large beside": figure(large_beside, "ms", "large"), "large": figure(large, "ms")}


def figure(value: float, unit: str, of: str = "") -> dict[str, object]:
    return {"value": float(f"{value:.6g}"), "unit": unit, **({"of": of} if of else {})}


def rings_of(count: int) -> str:
    return "".join(f"  - id: {ring}\n    window: {WINDOW}\n    max_message_bytes: {MESSAGE_BYTES}\n    mtu: {PATH_MTU}\n    members:\n"
                   + "".join(f"      - {{ ip: 10.77.0.{rank + 1}, port: p{rank} }}\n" for rank in range(RANKS))
                   for ring in range(1, count + 1))


def cases_of(arguments: argparse.Namespace) -> list[tuple[Parameters, str, int, int]]:
    cases: list[tuple[Parameters, str, int, int]] = [
        ({"way": way, "processes": processes, "bytes": size}, way, processes, size)
        for way in WAYS for processes in (1, 2) for size in (SIZES[:1] if arguments.quick else SIZES)]
    return [case for case in cases if arguments.only in ",".join(f"{name}={value}" for name, value in case[0].items())]


def measure(lab: Lab, build: Path, arguments: argparse.Namespace) -> None:
    from netns import veth
    from weir import configuration
    fabric, hosts = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", hosts, f"host{rank}")
    ports = [f'name: p{rank}, device: "net_af_packet{rank},iface=tap{rank}"' for rank in range(RANKS)]
    kinds = [(way, processes) for way in WAYS for processes in (1, 2)]
    lab.ready_weir(fabric, configuration(ports, rings=rings_of(2 * len(kinds))))
    jobs = {kind: Job(lab, hosts, build / "tests/bench/beside_rank", *kind, 2 * place + 1) for place, kind in enumerate(kinds)}
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    for number in range(rounds):
        print(f"{PART}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for case, way, processes, size in cases_of(arguments):
            figures = jobs[way, processes].measure(size, QUICK_CALLS if arguments.quick else CALLS)
            print(json.dumps({"part": PART, "case": case, "round": number, "figures": figures}), flush=True)


def main() -> int:
    arguments = parse_arguments()
    build = arguments.build.resolve()
    if os.geteuid() != 0:
        sys.exit(f"{PART}: network namespaces need root")
    os.environ["WEIR_BUILD"] = str(build)  # before these modules are read
    sys.path[:0] = [str(ROOT / "tests/smoke"), str(ROOT / "tests/support")]
    from lab import Lab
    lab = Lab(PART)
    try:
        measure(lab, build, arguments)
    finally:
        lab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
