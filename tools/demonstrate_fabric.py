#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts two leaves of three workers and two spines: four switches, connected by shared memory (memif), and a manager, which
gives each job its rings.

No switch has a ring in its configuration. The first worker asks the manager for two rings ($WEIR_MANAGER); it finds two trees that
share no link, one over each spine, and has the switches make them. The workers all-reduce over both, half of the tensor each, and
check every element. Then the manager gets kill -9 in the middle of a job, and nothing happens to the job. Then a spine dies: the
manager names it, each worker tells an error, and the same command asks again and goes on over the tree that is left.
With --etcd there are two managers, whose store is an etcd of three members: then the manager that leads gets the kill -9, the other one
takes over, and a member of etcd dies too. Needs no NIC, no hugepages and no root. The last line is "demo: OK" or what went wrong.
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
from pathlib import Path

os.environ.setdefault("WEIR_BUILD", "build-fabric")  # before its modules are read
sys.path.insert(0, str(Path(__file__).resolve().parent))

from demonstrate import (  # noqa: E402  (its import adds tests/support)
    BUILD, WEIR, WORKER, DemoFailure, Process, address_of, end_with, explain_repeats, free_port, run, start_configured, watch,
    where_logs_are)
from telemetry import ask  # noqa: E402

PLAN = BUILD / "app/weir-plan"
MANAGER = BUILD / "app/weir-manager"
CTL = BUILD / "app/weirctl"
MODULE = BUILD / "lib/host/switch_rings/libweir_switch.so"
ETCDS = (BUILD / "etcd-server/usr/bin/etcd", Path("build/etcd-server/usr/bin/etcd"), Path("/usr/bin/etcd"))
MEMBERS = 3
SPINES = ("spine0", "spine1")
LEAVES = ("leaf0", "leaf1")
SWITCHES = (*SPINES, *LEAVES)  # the server's end of each cable is there first
RANKS_PER_LEAF = 3
RANKS = len(LEAVES) * RANKS_PER_LEAF
TREE = "[[0,1,2],[3,4,5]]"  # who adds up whom, whichever spine is the root
TRAITS = "rate: 100Gbit/s, latency: 1us"
# As weir-plan writes them.
MTU = 1024
MESSAGE_BYTES = 65536
WINDOW = 8
GIVE_UP_S = 5  # without progress, each worker
DEATH_AFTER_S = 1.0
TELL_S = 20  # the manager tells of the dead links within three seconds, if it gets to it
FEW = 30  # packets of switches that look for loops
CORES = sorted(os.sched_getaffinity(0))

Packets = dict[tuple[str, str], tuple[int, int]]  # by switch and port: those that came in, those that left


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", action="store_true", required=True, help="this demonstration")
    parser.add_argument("--etcd", action="store_true", help="two managers, and three members of etcd")
    parser.add_argument("--size", default="16MiB", help="bytes of tensor per worker (default 16MiB)")
    parser.add_argument("--loss", type=float, default=0.0,
                        help="share of frames that the workers lose on purpose, 0 .. 0.2 (default 0)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds until each part gives up (default 120)")
    parser.add_argument("--keep", action="store_true", help="keep the run's folder with all logs")
    options = parser.parse_args()
    if not 0 <= options.loss <= 0.2:
        parser.error(f"--loss: found {options.loss}; allowed: 0 .. 0.2")
    return options


def topology(folder: Path) -> str:
    """As weir-plan and the manager read it."""
    switches = [f'  - {{name: {name}, control: "unix:{control_socket(name, folder)}"}}' for name in SWITCHES]
    hosts = [f"  - {{name: host{rank}, address: [{address_of(rank)}]}}" for rank in range(RANKS)]
    links = [f"  - {{between: [host{rank}, leaf{rank // RANKS_PER_LEAF}], {TRAITS}}}" for rank in range(RANKS)]
    links += [f"  - {{between: [{leaf}, {spine}], {TRAITS}}}" for leaf in LEAVES for spine in SPINES]
    return "\n".join(["nodes:", *hosts, "switches:", *switches, "links:", *links, ""])


def control_socket(name: str, folder: Path) -> Path:
    return folder / f"{name}.control"


def write_plan(folder: Path) -> None:
    """A file for each switch."""
    (folder / "topology.yaml").write_text(topology(folder))
    device = (f"net_memif{{number}},role={{role}},id={{cable}},socket={folder}/{{server}}.sock,socket-abstract=no,"
              f"bsize=8192,rsize=11")
    eal = f"--no-huge,-m,512,--no-pci,--file-prefix={folder.name}-{{switch}},--log-level,*:error"
    answer = subprocess.run([PLAN, "fabric", "--topology", folder / "topology.yaml", "--configs", folder, "--first-address",
                             address_of(0), "--device", device, "--eal", eal], capture_output=True, text=True)
    if answer.returncode != 0:
        raise DemoFailure(f"weir-plan ended with status {answer.returncode}\n{answer.stderr}")


def planned_file(name: str, folder: Path) -> str:
    """A switch's configuration as weir-plan has written it, without rings."""
    return (folder / f"{name}.yaml").read_text().split("rings:")[0]


def worker_device(rank: int, folder: Path) -> str:
    """The other end of the cable that is in the leaf's port."""
    leaf = planned_file(f"leaf{rank // RANKS_PER_LEAF}", folder)
    port = re.search(rf'name: "host{rank}", device: "net_memif\d+,role=server,([^"]*)"', leaf)
    if port is None:
        raise DemoFailure(f"weir-plan has written no port for host{rank}\n{leaf}")
    return f"net_memif0,role=client,{port[1]}"


def start_switch(name: str, folder: Path) -> Process:
    state = folder / f"{name}.state"
    state.mkdir(mode=0o700)
    more = (f"lcores:\n  - {{ id: {CORES[0]}, roles: [control] }}\n"
            f"  - {{ id: {CORES[-1]}, roles: [rx, worker, tx], idle: yield }}\n"
            f"control: {{ listen: [\"unix:{control_socket(name, folder)}\"], fabric: demo }}\n"
            "spare: { rings: 8, members: 64, frames: 32768 }\n"
            f"state_directory: {state}\n")
    return start_configured(WEIR, planned_file(name, folder) + more, folder, name)


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


def etcd_program() -> Path:
    for program in ETCDS:
        if program.exists():
            return program
    raise DemoFailure(f"there is no etcd at {', '.join(map(str, ETCDS))}; allowed: one that `tools/prepare fabric-etcd` has unpacked")


def start_etcd(folder: Path) -> dict[str, Process]:
    """By the URLs for clients."""
    clients, peers = ([f"http://127.0.0.1:{free_port()}" for _ in range(MEMBERS)] for _ in range(2))
    cluster = ",".join(f"etcd{number}={peer}" for number, peer in enumerate(peers))
    return {client: Process(f"etcd{number}", [
        str(etcd_program()), f"--name=etcd{number}", f"--data-dir={folder}/etcd{number}.data", f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={cluster}", "--log-level=error"], folder) for number, (client, peer) in enumerate(zip(clients, peers))}


class Managers:
    """One with SQLite; or two with etcd, of which one leads."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._folder = folder
        self._members = start_etcd(folder) if options.etcd else {}
        store = "etcd: " + json.dumps(list(self._members)) if options.etcd else f"sqlite: {folder}/fabric.db"
        names = ("manager1", "manager2") if options.etcd else ("manager",)
        for name in names:
            (folder / f"{name}.yaml").write_text(f"fabric: demo\nname: {name}\nlisten: [\"unix:{folder}/{name}.sock\"]\n"
                                                 f"store: {{ {store} }}\ntopology: topology.yaml\ntrees: 2\n")
        self._running = {name: self._start(name) for name in names}

    def _start(self, name: str) -> Process:
        return Process(name, [str(MANAGER), str(self._folder / f"{name}.yaml")], self._folder)

    def kill_leader(self) -> str:
        """And with etcd one of its members."""
        name = next(name for name, process in self._running.items() if any(": leads: " in line for line in process.lines))
        self._running.pop(name).kill()
        if not self._members:
            return name
        member = self._members.pop(next(iter(self._members)))
        member.kill()
        return f"{name} and {member.name}"

    def replace_leader(self) -> None:
        """With etcd the other one leads by itself."""
        if not self._members:
            self._running["manager"] = self._start("manager")

    @property
    def lines(self) -> list[str]:
        return [line for process in self._running.values() for line in process.lines]

    def stop(self) -> None:
        stop(self._running.values())

    def kill(self) -> None:
        kill([*self._running.values(), *self._members.values()])


def manager_address(folder: Path) -> str:
    return ",".join(f"unix:{folder}/{file.stem}.sock" for file in sorted(folder.glob("manager*.yaml")))


def ask_manager(folder: Path, *words: str) -> str:
    answer = subprocess.run([CTL, "--server", manager_address(folder), "fabric", *words], capture_output=True, text=True)
    if answer.returncode != 0:
        raise DemoFailure(f"weirctl fabric {' '.join(words)} ended with status {answer.returncode}\n{answer.stderr}")
    return answer.stdout


def wait_for_switches(folder: Path, count: int) -> None:
    wait_until(lambda: fabric_says(folder).count(" serving ") == count, TELL_S, f"the manager reaches {count} switches")


def fabric_says(folder: Path) -> str:
    """Empty while no manager answers."""
    try:
        return ask_manager(folder, "show")
    except DemoFailure:
        return ""


def show(text: str) -> None:
    print("".join(f"  {line}\n" for line in text.splitlines()), end="", flush=True)


def kill(processes) -> None:
    for process in processes:
        process.kill()


def start_workers(options: argparse.Namespace, folder: Path, rings: int, *more: str) -> list[Process]:
    """The same command for each job, whatever is left of the fabric."""
    os.environ |= {"WEIR_MANAGER": manager_address(folder), "WEIR_SWITCH_MODULE": str(MODULE)}
    rendezvous = f"127.0.0.1:{free_port()}"
    workers = []
    for rank in range(RANKS):
        command = [str(WORKER), "--rank", str(rank), "--world", str(RANKS), "--rendezvous", rendezvous,
                   "--ring-count", str(rings), "--tree", TREE, "--transport", "software",
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


def all_reduce(options: argparse.Namespace, folder: Path, switches: dict[str, Process], spines: Sequence[str]) -> None:
    """`spines` are those that are left: the manager finds a tree over each."""
    print(f"\ndemo: {RANKS} workers all-reduce {options.size} over {' and '.join(spines)}", flush=True)
    before = packets_at(switches, folder)
    workers = start_workers(options, folder, len(spines))
    try:
        watch(workers, switches["leaf0"], options.timeout)
    finally:
        kill(workers)
    results = [json.loads((folder / f"worker{rank}.json").read_text()) for rank in range(RANKS)]
    for rank, result in enumerate(results):
        if result["verified"] != "every_element" or result["algorithm"] != "switch":
            raise DemoFailure(f"worker {rank} did not get or not verify its sum from the switches: {result}")
        if len(result["rings"]) != len(spines) or min(result["rings"]) < 2**31:
            raise DemoFailure(f"worker {rank} has other rings than {len(spines)} of the manager: {result}")
        print(f"  rank {rank}: {result['bytes']} bytes in {result['seconds']:.3f} s by rings {result['rings']}, "
              f"{result['retransmissions']} packets repeated, every element verified")
    explain_repeats(options, results)
    passed = show_packets(before, packets_at(switches, folder))
    for spine in spines:
        compare_link(passed, spine, len(spines))


def compare_link(passed: Packets, spine: str, rings: int) -> None:
    """A leaf sends what one rank sends by this ring, whatever stands behind it. The ranks share their packets among the rings."""
    ranks = [passed[f"leaf{rank // RANKS_PER_LEAF}", f"host{rank}"][0] for rank in range(RANKS)]
    came = passed[spine, "leaf0"][0]
    print(f"  {came} packets of {RANKS_PER_LEAF} ranks came to {spine} from leaf0; each rank sent {min(ranks)} to {max(ranks)} "
          f"by {'one ring' if rings == 1 else f'{rings} rings'}")
    if came > 2 * max(ranks) / rings:
        raise DemoFailure(f"more than one rank's packets cross the link from leaf0 to {spine}")


def progress_of(worker: Process) -> int:
    return sum("progress" in line for line in worker.lines)


def lose_manager_and_spine(options: argparse.Namespace, folder: Path, switches: dict[str, Process], managers: Managers) -> None:
    print("\ndemo: the same without end; the manager that leads gets kill -9 in the middle", flush=True)
    workers = start_workers(options, folder, 2, "--repeat", "100000")
    try:
        wait_until_all(workers, lambda worker: progress_of(worker) > 0, options.timeout, "make progress")
        show(ask_manager(folder, "jobs"))
        killed = managers.kill_leader()
        before = {worker.name: progress_of(worker) for worker in workers}
        wait_until_all(workers, lambda worker: worker.status() is None and progress_of(worker) > before[worker.name] + 1,
                       options.timeout, f"go on without {killed}")
        print(f"  {killed} died, and each worker goes on", flush=True)
        managers.replace_leader()
        wait_for_switches(folder, len(SWITCHES))
        wait_until(lambda: " placed " in ask_manager(folder, "jobs"), TELL_S, "the new manager knows the job")
        print("  the next manager has the job from its store:", flush=True)
        show("\n".join(line for line in managers.lines if ": leads: " in line))
        show(ask_manager(folder, "jobs"))
        lose_spine(options, folder, switches, workers, managers)
    finally:
        kill(workers)


def lose_spine(options: argparse.Namespace, folder: Path, switches: dict[str, Process], workers: list[Process],
               managers: Managers) -> None:
    print("\ndemo: spine0 dies in the middle, as if all its cables were pulled", flush=True)
    time.sleep(DEATH_AFTER_S)
    before = len(managers.lines)
    switches["spine0"].kill()
    died = time.monotonic()
    wait_until(lambda: any("job_trouble" in line and "spine0" in line for line in managers.lines[before:]), TELL_S,
               "the manager names spine0")
    show("\n".join(line for line in managers.lines[before:] if "job_trouble" in line))
    wait_until_all(workers, lambda worker: worker.status() is not None, options.timeout, "end")
    print(f"  each worker has ended {time.monotonic() - died:.1f} s after the death:")
    show_errors(workers)
    wait_until(lambda: " placed " not in ask_manager(folder, "jobs"), TELL_S, "the job is over")
    show(ask_manager(folder, "show"))


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


def wait_until_all(processes: list[Process], is_so, seconds: int, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(is_so, processes)):
        if time.monotonic() > deadline:
            names = ", ".join(process.name for process in processes)
            raise DemoFailure(f"{names}: not all {what} after {seconds} s\n" + "\n".join(p.tail(3) for p in processes))
        time.sleep(0.05)


def wait_until(is_so, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise DemoFailure(f"it is not so after {seconds} s that {what}")
        time.sleep(0.1)


def stop(processes: Iterable[Process]) -> None:
    for process in processes:
        process.interrupt()
        if process.wait(30) != 0:
            raise DemoFailure(process.ending())


def demonstrate(options: argparse.Namespace, folder: Path) -> None:
    who = f"two managers, {MEMBERS} members of etcd" if options.etcd else "a manager"
    print(f"demo: two leaves of {RANKS_PER_LEAF} workers, two spines, {who}; {where_logs_are(options, folder)}", flush=True)
    switches = start_switches(folder)
    managers = Managers(options, folder)
    try:
        wait_for_switches(folder, len(SWITCHES))
        show(ask_manager(folder, "show"))
        show(ask_manager(folder, "plan", "--hosts", f"host[0-{RANKS - 1}]", "--rings", "2"))
        all_reduce(options, folder, switches, SPINES)
        lose_manager_and_spine(options, folder, switches, managers)
        left = {name: switches[name] for name in SWITCHES if name != "spine0"}
        all_reduce(options, folder, left, ("spine1",))
        managers.stop()
        stop(left.values())
        print(flush=True)
    finally:
        managers.kill()
        kill(switches.values())


def main() -> int:
    return run(parse_options(), demonstrate)


if __name__ == "__main__":
    end_with("tools/demo", main)
