#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts two racks of three workers and a spine: three switches, which add up in a tree, connected by shared memory (memif).

`weir-plan fabric` plans two trees for the topology and writes each switch's configuration: one over the spine, one over a cable
from rack to rack, whose root is the first rack. All-reduces over both, half of the tensor each, and checks every element. Then the
spine dies in the middle of a job, as if all its cables were pulled: each worker tells an error, the racks tell for whom they
wait, and the same command again goes on over the tree that is left. A table after each job has the packets that crossed the links.
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from demonstrate import (  # noqa: E402  (its import adds tests/support)
    BUILD, ROOT, WEIR, WORKER, DemoFailure, Process, address_of, end_with, explain_repeats, free_port, run, start_configured, watch,
    where_logs_are)
from telemetry import ask  # noqa: E402

PLAN = BUILD / "app/weir-plan"
TOPOLOGY = ROOT / "config/topologies/two-small-racks.yaml"
SWITCHES = ("spine", "rack0", "rack1")  # the server's end of each cable is there first
RACKS = ("rack0", "rack1")
RANKS_PER_RACK = 3
RANKS = len(RACKS) * RANKS_PER_RACK
# As weir-plan writes them.
MTU = 1024
MESSAGE_BYTES = 65536
WINDOW = 8
GIVE_UP_S = 5  # without progress, each worker
DEATH_AFTER_S = 1.0
TELL_S = 15  # the racks tell of the dead link within two seconds, if they get to it
FEW = 30  # packets of switches that look for loops
CORES = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Tree:
    """A ring, who adds up whom, for --tree, and a link between two of its switches: the upper one and its port."""
    ring: int
    name: str
    lists: str
    link: tuple[str, str]


FROM_RACK_TO_RACK = Tree(1, "from rack to rack", "[0,1,2,[3,4,5]]", ("rack0", "across"))
OVER_SPINE = Tree(2, "over the spine", "[[0,1,2],[3,4,5]]", ("spine", "down0"))
TREES = (FROM_RACK_TO_RACK, OVER_SPINE)
Packets = dict[tuple[str, str], tuple[int, int]]  # by switch and port: those that came in, those that left


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


def start_workers(options: argparse.Namespace, folder: Path, *more: str) -> list[Process]:
    """The same command for each job, whatever is left of the fabric."""
    orders = [word for tree in TREES for word in ("--tree", tree.lists)]
    rendezvous = f"127.0.0.1:{free_port()}"
    workers = []
    for rank in range(RANKS):
        command = [str(WORKER), "--rank", str(rank), "--world", str(RANKS), "--rendezvous", rendezvous,
                   "--ring", ",".join(str(tree.ring) for tree in TREES), *orders, "--transport", "software",
                   "--device", worker_device(rank, folder), "--ip", address_of(rank), "--window", str(WINDOW), "--message-bytes", str(MESSAGE_BYTES),
                   "--mtu", str(MTU), "--timeout", str(GIVE_UP_S), "--size", options.size, "--loss", str(options.loss),
                   "--seed", str(rank + 1), "--progress", "--json", str(folder / f"worker{rank}.json"), *more]
        workers.append(Process(f"worker{rank}", command, folder))
    return workers


def question(switch: str, folder: Path, command: str) -> dict:
    """The switch's answer to what the prompt calls `show`."""
    socket = folder / "dpdk" / f"{folder.name}-{switch}" / "dpdk_telemetry.v2"
    return next(iter(json.loads(ask(socket, command)).values()))


def packets_at(names: Iterable[str], folder: Path) -> Packets:
    return {(name, row["port"]): (row["rx_packets"], row["tx_packets"]) for name in names
            for row in question(name, folder, "/weir/port/stats")["port_stats"].values()}


def show_packets(before: Packets, after: Packets) -> Packets:
    """`show port stats` of all switches, less what there was before. Ports by which nothing came are left out."""
    passed = {place: (after[place][0] - before[place][0], after[place][1] - before[place][1]) for place in after}
    print("  switch  port    packets in  packets out")
    for (switch, port), (came, left) in passed.items():
        if came > FEW:
            print(f"  {switch:6}  {port:6}  {came:10}  {left:11}")
    return passed


def named(trees: Sequence[Tree]) -> str:
    return " and ".join(f"by ring {tree.ring} {tree.name}" for tree in trees)


def all_reduce(options: argparse.Namespace, folder: Path, switches: dict[str, Process], trees: Sequence[Tree]) -> None:
    """`trees` are those that are left."""
    print(f"\ndemo: {RANKS} workers all-reduce {options.size} {named(trees)}", flush=True)
    before = packets_at(switches, folder)
    workers = start_workers(options, folder)
    try:
        watch(workers, switches["rack0"], options.timeout)
    finally:
        kill(workers)
    results = [json.loads((folder / f"worker{rank}.json").read_text()) for rank in range(RANKS)]
    for rank, result in enumerate(results):
        if result["verified"] != "every_element" or result["algorithm"] != "switch":
            raise DemoFailure(f"worker {rank} did not get or not verify its sum from the switches: {result}")
        if result["rings"] != [tree.ring for tree in trees]:
            raise DemoFailure(f"worker {rank} did not go {named(trees)}: {result}")
        if rank == 0 and result["missing_rings"]:
            print(f"  on all ranks: {result['missing_rings']}")
        print(f"  rank {rank}: {result['bytes']} bytes in {result['seconds']:.3f} s, "
              f"{result['retransmissions']} packets repeated, every element verified")
    explain_repeats(options, results)
    passed = show_packets(before, packets_at(switches, folder))
    for tree in trees:
        compare_link(passed, tree, len(trees))


def compare_link(passed: Packets, tree: Tree, rings: int) -> None:
    """A switch sends what one rank sends by this ring, whatever stands behind it. The ranks share their packets among the rings."""
    link = tree.link
    ranks = [passed[f"rack{rank // RANKS_PER_RACK}", f"host{rank}"][0] for rank in range(RANKS)]
    came = passed[link][0]
    print(f"  {came} packets of {RANKS_PER_RACK} ranks came to {link[0]} by {link[1]}; each rank sent {min(ranks)} to {max(ranks)} "
          f"by {'one ring' if rings == 1 else f'{rings} rings'}")
    if came > 2 * max(ranks) / rings:
        raise DemoFailure(f"ring {tree.ring}: more than one rank's packets cross the link of {link[0]} at {link[1]}")


def lose_the_spine(options: argparse.Namespace, folder: Path, switches: dict[str, Process]) -> None:
    print("\ndemo: the same without end; the spine dies in the middle", flush=True)
    workers = start_workers(options, folder, "--repeat", "100000")
    try:
        wait_until_all(workers, lambda worker: any("progress" in line for line in worker.lines), options.timeout,
                       "make progress")
        time.sleep(DEATH_AFTER_S)
        switches["spine"].kill()
        died = time.monotonic()
        for rack in RACKS:
            show_what_is_missed(rack, folder, switches[rack], OVER_SPINE)
        wait_until_all(workers, lambda worker: worker.status() is not None, options.timeout, "end")
        print(f"  each worker has ended {time.monotonic() - died:.1f} s after the death:")
        show_errors(workers)
        for rack in RACKS:
            show_lost_frames(rack, folder)
    finally:
        kill(workers)


def show_what_is_missed(name: str, folder: Path, switch: Process, tree: Tree) -> None:
    """The switch's line of the dead link, and for whom the ring waits."""
    event = f"[tree_link_down port=up switch=spine rings={tree.ring}]"
    wait_until_all([switch], lambda rack: any(event in line for line in rack.lines), TELL_S, f"say {event}")
    print(f"  {name}, its log: {next(line for line in switch.lines if event in line)}")
    for row in question(name, folder, f"/weir/ring/stuck,{tree.ring}")["waited_for"].values():
        print(f"  {name}, `show ring {tree.ring} stuck`: waits for {row['rank']}, whose last packet came "
              f"{row['last_packet_ms']} ms ago")


def show_errors(workers: list[Process]) -> None:
    """Each error once. All ranks learn the same of each other, so mostly it is one."""
    by_error: dict[str, list[str]] = {}
    for worker in workers:
        if worker.status() != 1:
            raise DemoFailure(f"an error with status 1 was to come\n{worker.ending()}")
        by_error.setdefault(worker.lines[-1], []).append(worker.name)
    for error, names in by_error.items():
        alike = f"  and {len(names) - 1} alike: {', '.join(names[1:])}\n" if len(names) > 1 else ""
        print(f"  {names[0]}: {error}\n{alike}", end="", flush=True)


def show_lost_frames(name: str, folder: Path) -> None:
    rows = question(name, folder, "/weir/port/stats")["port_stats"].values()
    lost = next(row["tx_ring_dropped"] for row in rows if row["port"] == "up")
    print(f"  {name} has dropped {lost} frames for the spine at `up`, which had no link", flush=True)


def wait_until_all(processes: list[Process], is_so, seconds: int, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(is_so, processes)):
        if time.monotonic() > deadline:
            names = ", ".join(process.name for process in processes)
            raise DemoFailure(f"{names}: not all {what} after {seconds} s\n" + "\n".join(p.tail(3) for p in processes))
        time.sleep(0.05)


def stop(switches: dict[str, Process]) -> None:
    for switch in switches.values():
        switch.interrupt()
        if switch.wait(30) != 0:
            raise DemoFailure(switch.ending())


def introduce(options: argparse.Namespace, folder: Path) -> None:
    print(f"demo: two racks of {RANKS_PER_RACK} workers, a spine, a cable from rack to rack; {where_logs_are(options, folder)}")
    for tree, where in ((FROM_RACK_TO_RACK, "rack1 adds up its ranks for rack0, which is the root"),
                        (OVER_SPINE, "both racks add up their ranks for the spine, which is the root")):
        print(f"  ring {tree.ring}, {tree.name}: {where}, {tree.lists}", flush=True)


def demonstrate(options: argparse.Namespace, folder: Path) -> None:
    introduce(options, folder)
    switches = start_switches(folder)
    try:
        all_reduce(options, folder, switches, TREES)
        lose_the_spine(options, folder, switches)
        racks = {name: switches[name] for name in RACKS}
        all_reduce(options, folder, racks, (FROM_RACK_TO_RACK,))
        stop(racks)
        print(flush=True)
    finally:
        kill(switches.values())


def main() -> int:
    return run(parse_options(), demonstrate)


if __name__ == "__main__":
    end_with("tools/demo", main)
