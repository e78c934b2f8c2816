#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts two racks of three workers and a spine: three switches, which add up in a tree, connected by shared memory (memif).

`weir-plan fabric` plans two trees for the topology and writes each switch's configuration: one over the spine, one over a cable
from rack to rack, whose root is the first rack. All-reduces through the spine, and checks every element. Then the spine dies in
the middle of a job, as if all its cables were pulled: each worker tells an error, and the next job goes on over the other tree.
Needs no NIC, no hugepages and no root. The last line is "demo: OK" or what went wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from demonstrate import (  # noqa: E402  (its import adds tests/support)
    BUILD, ROOT, WEIR, WORKER, DemoFailure, Process, address_of, end_with, free_port, run, start_configured, watch)

PLAN = BUILD / "app/weir-plan"
TOPOLOGY = ROOT / "config/topologies/two-small-racks.yaml"
SWITCHES = ("spine", "rack0", "rack1")  # the server's end of each cable is there first
RACKS = 2
RANKS_PER_RACK = 3
RANKS = RACKS * RANKS_PER_RACK
# As weir-plan writes them.
MTU = 1024
MESSAGE_BYTES = 65536
WINDOW = 8
GIVE_UP_S = 5  # without progress, each worker
DEATH_AFTER_S = 1.0
CORES = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Tree:
    """A ring and who adds up whom, for --tree."""
    ring: int
    name: str
    lists: str


FROM_RACK_TO_RACK = Tree(1, "from rack to rack", "[0,1,2,[3,4,5]]")
OVER_SPINE = Tree(2, "over the spine", "[[0,1,2],[3,4,5]]")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", action="store_true", required=True, help="this demonstration")
    parser.add_argument("--size", default="16MiB", help="bytes of tensor per worker (default 16MiB)")
    parser.add_argument("--loss", type=float, default=0.0,
                        help="share of frames that the workers lose on purpose, 0 .. 0.2 (default 0)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds until each part gives up (default 120)")
    parser.add_argument("--keep", action="store_true", help="keep the run's folder with all logs")
    options = parser.parse_args()
    if not 0 <= options.loss <= 0.2:
        parser.error(f"--loss: found {options.loss}; allowed: 0 .. 0.2")
    return options


def write_plan(folder: Path) -> None:
    """A file for each switch, and `plan.yaml` with the trees."""
    device = (f"net_memif{{number}},role={{role}},id={{cable}},socket={folder}/{{server}}.sock,socket-abstract=no,"
              f"bsize=8192,rsize=11")
    eal = f"--no-huge,-m,512,--no-pci,--file-prefix={folder.name}-{{switch}},--log-level,*:error"
    answer = subprocess.run([PLAN, "fabric", "--topology", TOPOLOGY, "--configs", folder, "--first-address", address_of(0),
                             "--device", device, "--eal", eal], capture_output=True, text=True)
    if answer.returncode != 0:
        raise DemoFailure(f"weir-plan ended with status {answer.returncode}\n{answer.stderr}")
    (folder / "plan.yaml").write_text(answer.stdout)


def planned_file(name: str, folder: Path) -> str:
    """A switch's configuration as weir-plan has written it."""
    return (folder / f"{name}.yaml").read_text()


def worker_device(rank: int, folder: Path) -> str:
    """The other end of the cable that is in the rack's port."""
    rack = planned_file(f"rack{rank // RANKS_PER_RACK}", folder)
    port = re.search(rf'name: "host{rank}", device: "net_memif\d+,role=server,([^"]*)"', rack)
    if port is None:
        raise DemoFailure(f"weir-plan has written no port for host{rank}\n{rack}")
    return f"net_memif0,role=client,{port[1]}"


def start_switch(name: str, folder: Path) -> Process:
    lcores = (f"lcores:\n  - {{ id: {CORES[0]}, roles: [control] }}\n"
              f"  - {{ id: {CORES[-1]}, roles: [rx, worker, tx], idle: yield }}\n")
    return start_configured(WEIR, planned_file(name, folder) + lcores, folder, name)


def start_switches(folder: Path) -> dict[str, Process]:
    write_plan(folder)
    switches: dict[str, Process] = {}
    try:
        for name in SWITCHES:
            switches[name] = start_switch(name, folder)
    except DemoFailure:
        kill(switches.values())
        raise
    return switches


def kill(processes) -> None:
    for process in processes:
        process.kill()


def start_workers(options: argparse.Namespace, folder: Path, tree: Tree, *more: str) -> list[Process]:
    rendezvous = f"127.0.0.1:{free_port()}"
    workers = []
    for rank in range(RANKS):
        command = [str(WORKER), "--rank", str(rank), "--world", str(RANKS), "--rendezvous", rendezvous,
                   "--ring", str(tree.ring), "--tree", tree.lists, "--transport", "software",
                   "--device", worker_device(rank, folder), "--ip", address_of(rank), "--window", str(WINDOW), "--message-bytes", str(MESSAGE_BYTES),
                   "--mtu", str(MTU), "--timeout", str(GIVE_UP_S), "--size", options.size, "--loss", str(options.loss),
                   "--seed", str(rank + 1), "--progress", "--json", str(folder / f"worker{rank}.json"), *more]
        workers.append(Process(f"worker{rank}", command, folder))
    return workers


def all_reduce(options: argparse.Namespace, folder: Path, switches: dict[str, Process], tree: Tree) -> None:
    print(f"\ndemo: {RANKS} workers all-reduce {options.size} {tree.name}: {tree.lists}", flush=True)
    workers = start_workers(options, folder, tree)
    try:
        watch(workers, switches["rack0"], options.timeout)
    finally:
        kill(workers)
    for rank in range(RANKS):
        result = json.loads((folder / f"worker{rank}.json").read_text())
        if result["verified"] != "every_element" or result["algorithm"] != "switch":
            raise DemoFailure(f"worker {rank} did not get or not verify its sum from the switches: {result}")
        print(f"  rank {rank}: {result['bytes']} bytes in {result['seconds']:.3f} s, "
              f"{result['retransmissions']} packets repeated, every element verified")


def lose_the_spine(options: argparse.Namespace, folder: Path, switches: dict[str, Process]) -> None:
    print("\ndemo: the same without end; the spine dies in the middle", flush=True)
    workers = start_workers(options, folder, OVER_SPINE, "--repeat", "100000")
    try:
        wait_until_all(workers, lambda worker: any("progress" in line for line in worker.lines), options.timeout,
                       "make progress")
        time.sleep(DEATH_AFTER_S)
        switches["spine"].kill()
        died = time.monotonic()
        wait_until_all(workers, lambda worker: worker.status() is not None, options.timeout, "end")
        print(f"  each worker has ended {time.monotonic() - died:.1f} s later:")
        for worker in workers:
            if worker.status() != 1:
                raise DemoFailure(f"an error with status 1 was to come\n{worker.ending()}")
            print(f"  {worker.name}: {worker.lines[-1]}")
    finally:
        kill(workers)


def wait_until_all(workers: list[Process], is_so, seconds: int, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(is_so, workers)):
        if time.monotonic() > deadline:
            raise DemoFailure(f"not all workers {what} after {seconds} s\n" + "\n".join(w.tail(3) for w in workers))
        time.sleep(0.05)


def show_links(name: str, switch: Process) -> None:
    """The switch's own table, which it prints when it stops."""
    switch.interrupt()
    if switch.wait(30) != 0:
        raise DemoFailure(switch.ending())
    start = switch.lines.index("port_stats")
    end = switch.lines.index("", start)
    print(f"\n{name}\n" + "\n".join(switch.lines[start + 1:end]))


def demonstrate(options: argparse.Namespace, folder: Path) -> None:
    print(f"demo: two racks of {RANKS_PER_RACK} workers, a spine, a cable from rack to rack; logs and configuration in {folder}",
          flush=True)
    switches = start_switches(folder)
    try:
        all_reduce(options, folder, switches, OVER_SPINE)
        lose_the_spine(options, folder, switches)
        all_reduce(options, folder, switches, FROM_RACK_TO_RACK)
        for name in ("rack0", "rack1"):
            show_links(name, switches[name])
        print(flush=True)
    finally:
        kill(switches.values())


def main() -> int:
    return run(parse_options(), demonstrate)


if __name__ == "__main__":
    end_with("tools/demo", main)
