# SPDX-License-Identifier: BSD-3-Clause
"""How the switch starts and ends: exit statuses, messages, totals, mbufs."""
from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hosts import RANKS, Hosts, Job, contributions, frame_of, ring_7, ring_of_hosts, ring_ports, ring_row
from lab import Lab, smoke_test
from netns import veth
from weir import (
    BUILD, NO_HUGEPAGES, ONE_CORE, QUIET_PORT, ROOT, WEIR, Ended, Failed, Totals, configuration, expect, run_to_end, wait_for)

PLAIN = configuration(['name: p0, device: "net_tap0,iface=weir0"', 'name: p1, device: "net_tap1,iface=weir1"'],
                      rings="""  - id: 7
    window: 4
    max_message_bytes: 16384
    mtu: 1024
    members:
      - { ip: 10.77.0.1, port: p0 }
      - { ip: 10.77.0.2 }
""")
TWO_CORES = "  - { id: 0, roles: [control] }\n  - { id: 1, roles: [rx, worker, tx], idle: sleep }\n"
PIPELINE = "  - { id: 0, roles: [control, rx, tx], idle: sleep }\n  - { id: 1, roles: [worker], idle: sleep }\n"


@dataclass(frozen=True)
class Mistake:
    """PLAIN with `old` replaced by `new`; the error must have `key` and `found`, and the line of `new`."""

    name: str
    old: str
    new: str
    key: str
    found: str


MISTAKES = (
    Mistake("unknown key", "    window: 4", "    windw: 4", "rings[0].windw", "did you mean window?"),
    Mistake("out of range", "window: 4", "window: 0", "rings[0].window", "found 0; allowed: a whole number, 1 to 1024"),
    Mistake("no number", "window: 4", "window: four", "rings[0].window", 'found "four"'),
    Mistake("path MTU", "mtu: 1024", "mtu: 1000", "rings[0].mtu", "allowed: 256, 512, 1024, 2048 or 4096"),
    Mistake("MTU too large for a port", "mtu: 1024", "mtu: 2048", "rings[0].mtu", "port p0's mtu of 1500"),
    Mistake("no such port", "port: p0", "port: p9", "rings[0].members[0].port", 'found "p9"; allowed: p0 or p1'),
    Mistake("address twice", "ip: 10.77.0.2", "ip: 10.77.0.1", "rings[0].members[1].ip", "each address once"),
    Mistake("name twice", "name: p1", "name: p0", "ports[1].name", "each port name once"),
    Mistake("a word of the prompt", "name: p1", "name: all", "ports[1].name", 'found "all"; allowed: a name of letters'),
    Mistake("another", "name: p1", "name: json", "ports[1].name", "but not all or json"),
    Mistake("role", "roles: [control", "roles: [controller", "lcores[0].roles[0]", "did you mean control?"),
    Mistake("a parent alone", "    members:", "    parent: { switch: s, port: p1 }\n    members:", "rings[0].parent",
            "found a parent, and no children:, so that all ranks are"),
    Mistake("ranks the wrong way round", "    members:\n      - { ip: 10.77.0.1, port: p0 }",
            "    children: [{ switch: s, ranks: [1, 0], port: p1 }]\n    members:\n      - { ip: 10.77.0.1 }",
            "rings[0].children[0].ranks", "found [1, 0]; allowed: the first rank first, as [0, 1]"),
    Mistake("a switch at a rank's port", "    members:\n      - { ip: 10.77.0.1, port: p0 }",
            "    children: [{ rank: 0, port: p1 }, { switch: s, ranks: [1, 1], port: p1 }]\n    members:\n      - { ip: 10.77.0.1 }",
            "rings[0].children[1].port", 'found "p1", which rings[0].children[0].port on line'),
    Mistake("a root without all ranks", "    members:\n      - { ip: 10.77.0.1, port: p0 }",
            "    children: [{ rank: 0 }]\n    members:\n      - { ip: 10.77.0.1 }",
            "rings[0].children", "found children for rank 0 of 2, and no parent:"),
    Mistake("not YAML", "    window: 4", "    window: [4", "(document)", "not YAML"),
    Mistake("core list", '"--no-huge"', '"-l", "0-1"', "eal.options[0]", "lcores:"),
    Mistake("core mask", '"--no-huge"', '"-c3"', "eal.options[0]", "lcores:"),
    Mistake("lcores", '"--no-huge"', '"--lcores=0@1"', "eal.options[0]", "lcores:"),
    Mistake("main lcore", '"--no-huge"', '"--main-lc", "1"', "eal.options[0]", "lcores:"),
)


def refused(ended: Ended, *said: str) -> None:
    """Exit status 2, before EAL has started."""
    expect(ended.status == 2, f"exit status {ended.status}, not 2: {ended}")
    expect("EAL" not in ended.output and "EAL:" not in ended.errors, f"EAL was started: {ended}")
    for text in said:
        expect(text in ended.errors, f"standard error should have {text!r}: {ended.errors}")


@smoke_test("config-errors")
def config_errors(lab: Lab) -> None:
    namespace = lab.namespace()
    for mistake in MISTAKES:
        expect(PLAIN.count(mistake.old) >= 1, f"{mistake.name}: the test does not find {mistake.old!r}")
        before, _, after = PLAIN.partition(mistake.old)
        file = lab.file("wrong.yaml", before + mistake.new + after)
        line = before.count("\n") + 1
        ended = run_to_end([WEIR, "--config", file], namespace=namespace)
        if mistake.key == "(document)":  # the parser notices a line or more later
            refused(ended, f"{file}:", mistake.key, mistake.found)
        else:
            refused(ended, f"weir: {file}:{line}: {mistake.key}: ", mistake.found, "allowed: ")
    refused(run_to_end([WEIR, "--config", lab.directory / "none.yaml"]), "none.yaml:1: (document): found no such file")
    refused(run_to_end([WEIR, "--config", lab.directory]), "(document): found a directory")
    refused(run_to_end([WEIR, "--config", lab.file("empty.yaml", "")]), "empty.yaml:1: (document): found an empty file")


@smoke_test("command-line-errors")
def command_line_errors(lab: Lab) -> None:
    good = lab.file("good.yaml", PLAIN)
    refused(run_to_end([WEIR]), "--config is needed")
    refused(run_to_end([WEIR, "--config", good, "--cmdfile", "x"]), "weir --help")
    refused(run_to_end([WEIR, "--config", good, "stray"]), "found 'stray'; EAL options come after --")
    refused(run_to_end([WEIR, "--config", good, "--cmd-file", lab.directory / "none"]), "none: cannot be read")
    refused(run_to_end([WEIR, "--config", good, "--", "-l", "0-1"]), "found -l; allowed: any EAL option but")
    refused(run_to_end([WEIR, "--config", good, "--", "--lcores=0@0"]), "found --lcores=0@0; allowed: ")
    refused(run_to_end([WEIR, "--check"]), "--check wants files")
    refused(run_to_end([WEIR, "--check", "--no-interactive", good]), "--check: found other options; allowed: files alone")
    refused(run_to_end([WEIR, "--check", good, "--config", good]), "--check: found other options; allowed: files alone")
    far = lab.file("far.yaml", PLAIN.replace("id: 1, roles", "id: 777, roles"))
    line = 1 + PLAIN[:PLAIN.index("id: 1, roles")].count("\n")
    refused(run_to_end([WEIR, "--config", far]), f"far.yaml:{line}: lcores[0].id: found 777; allowed: a CPU of this machine, 0 to ")


@smoke_test("check-memory")
def check_memory(lab: Lab) -> None:
    """A file that asks EAL for too little memory is told before a start, with what would do; and a pipe keeps nobody waiting."""
    def with_memory(mib: int) -> Path:
        return lab.file("weir.yaml", PLAIN.replace('"256"', f'"{mib}"'))

    answer = run_to_end([WEIR, "--check", with_memory(1)])
    said = re.search(r"weir\.yaml:2: eal\.options\[2\]: found 1 MiB of memory, by -m with --no-huge; allowed: at least (\d+), which ports and rings need$",
                     answer.errors)
    expect(answer.status == 2 and not answer.output and said is not None, f"{answer}")
    assert said
    answer = run_to_end([WEIR, "--check", with_memory(int(said[1]))])
    expect(answer.status == 0 and answer.output.endswith(f"EAL needs at least {said[1]} MiB\n"), f"{answer}")
    pipe = lab.directory / "pipe.yaml"
    os.mkfifo(pipe)
    refused(run_to_end([WEIR, "--check", pipe]), "found a pipe or device from which nothing has come for 5 s")


@smoke_test("eal-errors")
def eal_errors(lab: Lab) -> None:
    """Errors that only EAL can find: in its own options, and too little memory. No port is touched."""
    namespace = lab.namespace()
    unknown = lab.file("unknown.yaml", PLAIN.replace('"--no-huge"', '"--no-such-option"'))
    good = lab.file("good.yaml", PLAIN)
    for arguments in ([unknown], [good, "--", "--no-such-option"]):
        ended = run_to_end([WEIR, "--config", *arguments], namespace=namespace)
        expect(ended.status == 2 and "--no-such-option" in ended.errors and "eal.options: " in ended.errors, f"{ended}")
    large = PLAIN.replace("window: 4", "window: 1024").replace('"256"', '"64"')
    ended = run_to_end([WEIR, "--config", lab.file("large.yaml", large)], namespace=namespace)
    told = re.search(r"needs (\d+) MiB, EAL has (\d+) MiB", ended.errors)
    expect(ended.status == 2 and told and int(told[1]) > 64 >= int(told[2]), f"{ended}")
    expect("window" in ended.errors and "tap" not in ended.output + ended.errors, f"{ended}")


WITH_FILES = '["--no-huge", "-m", "64", "--no-pci"]'
# What a container may hide, as an order to the shell. Without its folder a file is hidden, not empty.
NO_MODULES = ("mkdir /tmp/devices; mount --rbind /sys/devices /tmp/devices; mount -t tmpfs none /sys; mkdir /sys/devices; "
              "mount --rbind /tmp/devices /sys/devices")
NO_SYS = "mount -t tmpfs none /sys"
READ_ONLY_RUN = "mount -t tmpfs -o ro none /run"


def behind(hidden: str, *command: str | Path) -> list[str | Path]:
    """The command where that is hidden."""
    return ["sh", "-ec", f'{hidden}; exec "$@"', "sh", *command]


@smoke_test("hidden-files")
def hidden_files(lab: Lab) -> None:
    """In a container that hides /sys/module the switch starts, and a worker: they need no VFIO. Without /sys, or a folder that
    it can write to, the error says so; and so for a --file-prefix that another process has."""
    namespace = lab.namespace()
    config = lab.file("null.yaml", configuration([QUIET_PORT], eal=WITH_FILES))
    quits = lab.file("quit", "quit\n")
    ended = run_to_end(behind(NO_MODULES, WEIR, "--config", config, "--cmd-file", quits), namespace=namespace)
    expect(ended.status == 0 and "weir: ready\n" in ended.output, f"{ended}")
    ended = run_to_end(behind(NO_MODULES, BUILD / "app/weir-worker", "--rank", "0", "--world", "2", "--rendezvous", "127.0.0.1:7471",
                              "--ip", "10.0.0.1", "--device", "net_null0", "--timeout", "1"), namespace=namespace)
    expect("rank 1 of 2 did not come within 1000 ms" in ended.errors, f"{ended}")
    for hidden, status, said in (
            (NO_SYS, 2, "lcores: found no /sys/devices/system/cpu, where EAL looks for this machine's CPUs; allowed: "),
            (READ_ONLY_RUN, 1, "EAL does not start: /var/run/dpdk cannot be made or written to (Read-only file system); allowed: ")):
        ended = run_to_end(behind(hidden, WEIR, "--config", config), namespace=namespace)
        expect(ended.status == status and f"weir: {said}" in ended.errors, f"{ended}")
    twice = '"$@" --no-interactive > /dev/null & while [ ! -e /run/dpdk/rte/dpdk_telemetry.v2 ]; do sleep 0.1; done; "$@"; s=$?; kill $!; exit $s'
    ended = run_to_end(["sh", "-c", twice, "sh", WEIR, "--config", config], namespace=namespace)
    expect(ended.status == 1 and re.search(r"EAL does not start: process \d+ runs with the same --file-prefix and has "
                                           r"/var/run/dpdk/rte/config locked; allowed: ", ended.errors), f"{ended}")


@smoke_test("port-errors")
def port_errors(lab: Lab) -> None:
    """A port that cannot be opened: status 1, and its name."""
    namespace = lab.namespace()
    for device in ("net_af_packet0,iface=nosuch", "net_nosuch0", "0000:99:00.0"):
        config = lab.file("port.yaml", configuration([f'name: left, device: "{device}"']))
        ended = run_to_end([WEIR, "--config", config], namespace=namespace)
        expect(ended.status == 1 and f"port left: device {device}" in ended.errors, f"{ended}")


@smoke_test("cmd-file")
def cmd_file(lab: Lab) -> None:
    fabric, _ = ring_of_hosts(lab)
    lines = "# a comment\n\nshow lcores\nshow drops json\nshow nothing\nset trace on\nquit\nshow memory\n"
    switch = lab.weir(fabric, ROOT / "config/af_packet.yaml", "--cmd-file", str(lab.file("lines", lines)))
    ended = switch.wait()
    expect(ended.status == 0, f"{ended}")
    for text in ("weir: ready\n", "weir> show lcores\nlcores\n", '"drops": []', "found 'nothing'; allowed: accounting",
                 "trace is on\n"):
        expect(text in ended.output, f"{text!r} is missing: {ended.output}")
    expect("pool MiB" not in ended.output, "commands after quit were run")
    Totals.read(ended.output)


@smoke_test("signals")
def signals(lab: Lab) -> None:
    """SIGINT and SIGTERM end it with totals, including frames in filling slots; nothing is lost or left."""
    held = 3 * 16
    for number, lcores in ((signal.SIGINT, ONE_CORE), (signal.SIGTERM, PIPELINE)):
        fabric, hosts = ring_of_hosts(lab)
        switch = lab.ready_weir(fabric, configuration(ring_ports(), lcores, ring_7()) + "drain_s: 0\n")
        hosts.say_hello()
        for place in range(1, 17):
            for rank in range(RANKS - 1):
                hosts.send(rank, place)
        wait_for(lambda: ring_row(switch)["held"] == held, 5, "the frames are not held")
        totals = switch.stop(number)
        expect(totals.drops == {"ring_reset": held}, f"{totals}")
        expect(totals.accounting == {"received": 4 + held, "originated": 0, "forwarded": 0, "consumed": 4,
                                     "dropped": held, "held": 0, "queued": 0}, f"{totals}")


def blast(hosts: Hosts, stop: threading.Event) -> None:
    """Frames of all kinds, as fast as possible: flooded ones, incomplete slots, noise."""
    broadcast = b"\xff" * 6 + b"\x52\x54\x00\x00\x00\x01\x88\xb5" + bytes(1000)
    while not stop.is_set():
        for rank in range(RANKS):
            for frame in (frame_of(rank, 1, hosts.incarnation), broadcast,
                          contributions()[rank][20].roce.frame):
                try:
                    hosts.send_raw(rank, frame)
                except OSError:  # the switch's end of the cable is full
                    time.sleep(0.001)


@smoke_test("stop-under-traffic")
def stop_under_traffic(lab: Lab) -> None:
    for lcores in (ONE_CORE, PIPELINE):
        fabric, hosts = ring_of_hosts(lab)
        switch = lab.ready_weir(fabric, configuration(ring_ports(), lcores, ring_7()) + "drain_s: 1\n")
        hosts.say_hello()
        stop = threading.Event()
        thread = threading.Thread(target=blast, args=(hosts, stop), daemon=True)
        thread.start()
        try:
            for _ in range(20):  # every answer under load is consistent
                time.sleep(0.02)
                row = switch.ask("/weir/accounting")["accounting"]["0"]
                expect(row["balances"] == "yes", f"{row}")
            totals = switch.stop(signal.SIGTERM)
        finally:
            stop.set()
            thread.join()
        expect(totals.accounting["received"] > 1000, f"hardly any traffic: {totals}")


@smoke_test("port-that-takes-nothing")
def port_that_takes_nothing(lab: Lab) -> None:
    """Frames for a port without a peer wait, delay no other port, are dropped under a reason, and are freed."""
    fabric, outside = lab.namespace(), lab.namespace()
    for number in range(2):
        veth(fabric, f"port{number}", outside, f"host{number}")
    eal = NO_HUGEPAGES.replace(', "--no-shconf"', "")
    switch = lab.ready_weir(fabric, configuration(
        ['name: dead, device: "net_memif0,role=server,id=0,socket=/run/dead/port.sock,socket-abstract=no"',
         'name: p0, device: "net_af_packet0,iface=port0"', 'name: p1, device: "net_af_packet1,iface=port1"'], eal=eal))
    sent = 10_000
    frame = b"\xff" * 6 + b"\x52\x54\x00\x00\x00\x01\x88\xb5" + bytes(46)
    with outside.entered():
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with sender:
        sender.bind(("host0", 0))
        for number in range(sent):
            sender.send(frame)
            if number % 100 == 0:
                time.sleep(0.005)
    wait_for(lambda: int(switch.ask("/weir/port/stats,p1")["port_stats"]["0"]["tx_packets"]) == sent, 5,
             f"the dead port holds up the other: {switch.ask('/weir/port/stats')}")
    totals = switch.stop()
    expect(totals.drops == {"tx_backlog_full": sent} and totals.accounting["received"] == sent, f"{totals}")


@smoke_test("restart")
def restart(lab: Lab) -> None:
    """A new switch knows no host: it drops all but hellos, forwards none of it, and draws another session."""
    fabric, hosts = ring_of_hosts(lab)
    config = ROOT / "config/af_packet.yaml"
    first = lab.ready_weir(fabric, config)
    hosts.say_hello()
    before = hosts.incarnation
    Job(hosts, last=1).run()
    first.stop()
    second = lab.ready_weir(fabric, config)
    for rank in range(RANKS):
        hosts.send(rank, 17)  # a FIRST, with the old session
        hosts.send(rank, 18)
    wait_for(lambda: second.ask("/weir/accounting")["accounting"]["0"]["dropped"] == 2 * RANKS, 5, "not dropped")
    expect(hosts.received(0.1) == [], "a raw contribution was forwarded")
    hosts.incarnation = before.again()
    hosts.say_hello()
    expect(hosts.incarnation.session != before.session, "the same session again")
    totals = second.stop()
    expect(totals.drops == {"no_connection": RANKS, "unclassified": RANKS}, f"{totals}")



class FrozenThread:
    """A thread of another process that stands still until thaw(): ptrace(2) stops one thread alone. A process with a
    thread that is traced cannot be waited for, so thaw it also after a failure."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, thread: int) -> None:
        self._thread, self._ptrace = thread, ctypes.CDLL(None, use_errno=True).ptrace
        self._ask(self.SEIZE)
        self._ask(self.INTERRUPT)
        os.waitpid(thread, 0x40000000)  # __WALL
        self._is_frozen = True

    def _ask(self, request: int) -> None:
        if self._ptrace(request, self._thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")

    def thaw(self) -> None:
        if self._is_frozen:
            self._is_frozen = False
            self._ask(self.DETACH)


def lcore_thread(process: int) -> int:
    """The thread of data lcore 1, by the name that EAL gives it."""
    for task in Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().strip() in ("rte-worker-1", "lcore-worker-1"):
            return int(task.name)
    raise AssertionError("no thread of lcore 1")


@smoke_test("systemd")
def systemd(lab: Lab) -> None:
    """What systemd hears: ready when the switch forwards, alive as long as its lcores work, stopping at the end."""
    path = lab.directory / "notify"
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(10)

        def until(text: str) -> None:
            for _ in range(100):
                heard.append(listener.recv(4096).decode())
                if heard[-1] == text:
                    return
            raise Failed(f"never heard {text}, only {set(heard)}")

        with mock.patch.dict(os.environ, {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "900000"}):
            config = configuration([QUIET_PORT], lcores=TWO_CORES, eal=NO_HUGEPAGES)
            switch = lab.weir(lab.namespace(), config, "--no-interactive")
        until("READY=1")
        expect(heard == ["READY=1"] and "weir: ready\n" in switch.output(), f"first: {heard}")
        switch.process.send_signal(signal.SIGHUP)
        until("RELOADING=1")
        until("READY=1")
        # The log is written on a thread of its own, so systemd may hear first.
        wait_for(lambda: "says nothing new [reloaded]\n" in switch.output(), 5, "no reload")
        until("WATCHDOG=1")
        frozen = FrozenThread(lcore_thread(switch.process.pid))
        lab.on_end(frozen.thaw)
        until("STATUS=lcore 1 did not stand still within 2000 ms")
        count = len(heard)
        wait_for(lambda: "weir: lcore 1 did not stand still within 2000 ms; systemd ends" in switch.output(), 5,
                 "the log is silent")
        until("STATUS=lcore 1 did not stand still within 2000 ms")
        expect("WATCHDOG=1" not in heard[count:], f"alive with an lcore that hangs: {heard}")
        frozen.thaw()
        until("WATCHDOG=1")
        switch.stop(signal.SIGTERM)
        until("STOPPING=1")
    if shutil.which("systemd-analyze"):
        unit = (BUILD / "config/weir.service").read_text().replace("/usr/local/bin/weir ", "/bin/true ")
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", str(lab.file("weir.service", unit))],
                                  text=True, capture_output=True)
        expect(not [line for line in verified.stderr.splitlines() if "weir.service" in line], verified.stderr)
