# SPDX-License-Identifier: BSD-3-Clause
"""The configuration file is read again: what changes, what waits for a restart, what is refused, and whose job goes on."""
from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts import MESSAGES, RANKS, Hosts, Job, contributions, frame_of, result, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from netns import Namespace
from terminal import Terminal
from test_control import at_socket, execute, foreign, said, socket_of, weirctl
from test_incarnations import SECOND, THIRD, told, wait_for_drops
from test_process import TWO_CORES, FrozenThread, lcore_thread
from test_rings import FRAMES_OF_RING_7, added, rings_of
from weir import ONE_CORE, QUIET_PORT, Weir, configuration, expect, wait_for, without_probes

DRY_RUN = "nothing has changed: this was a dry run"
SIGNALS = 50


@dataclass(frozen=True)
class Files:
    """The configuration file of a switch with ring 7's hosts, and what may be in it."""

    lab: Lab

    @property
    def path(self) -> Path:
        return self.lab.directory / "weir.yaml"

    def write(self, rings: str = ring_7(), lcores: str = ONE_CORE, more: str = "", frames: int = 2 * FRAMES_OF_RING_7,
              ports: Sequence[str] = (), spare_ports: int = 0) -> Path:
        spare = (f"spare: {{ rings: 2, members: {2 * RANKS}, frames: {frames}, ports: {spare_ports} }}\n"
                 f"state_directory: {self.lab.directory / 'state'}\n")
        self.path.write_text(without_probes(
            configuration(ports or ring_ports(), lcores=lcores, rings=rings) + spare + more))
        return self.path


def begun(lab: Lab, **what: Any) -> tuple[Files, Hosts, Terminal, Namespace]:
    fabric, hosts = ring_of_hosts(lab)
    files = Files(lab)
    return files, hosts, Terminal(lab, fabric, files.write(**what)), fabric


def ring_of_others(ring: int = 8, window: int = 1) -> str:
    """A ring of hosts that are not there."""
    return ring_7(window).replace("id: 7", f"id: {ring}").replace("10.77.0", f"10.78.{ring}")


def changes(terminal: Terminal, command: str = "reload") -> dict[str, tuple[str, str, str]]:
    """By key: running, file, effect."""
    answer = terminal.ask(f"{command} json")
    return {row["key"]: (row["from"], row["to"], row["effect"]) for row in json.loads(answer)["changes"]}


def effects(terminal: Terminal) -> dict[str, str]:
    """What comes of each change of a reload, by key."""
    return {key: effect for key, (_, _, effect) in changes(terminal).items()}


def one_message(hosts: Hosts, message: int) -> None:
    """The whole ring's next message, with exact results."""
    first = next(place for place, packet in enumerate(contributions()[0]) if packet.message == message)
    Job(hosts, first=first, last=message).run()


@smoke_test("reload-beside-a-job")
def beside_a_job(lab: Lab) -> None:
    """A job goes on exactly across reloads that make, change and withdraw other rings, and change its own in place."""
    files, hosts, terminal, _ = begun(lab)
    hosts.say_hello()
    words = "4 members, window {}, 16384 bytes"
    steps = ((ring_7() + ring_of_others(), {"rings[8]": ("-", words.format(1), "ring_made")}, [7, 8]),
             (ring_of_others(window=2) + ring_7(), {"rings[8].window": ("1", "2", "ring_made_anew")}, [7, 8]),
             (ring_7().replace("mtu: 1024", "mtu: 1024\n    patience: 5\n    keep_alive: 'off'") + ring_of_others(window=2),
              {"rings[7].patience": ("600", "5", "in_place"), "rings[7].keep_alive": ("ack", "off", "in_place")}, [7, 8]),
             (ring_7(), {"rings[8]": (words.format(2), "-", "ring_withdrawn"), "rings[7].patience": ("5", "600", "in_place"),
                         "rings[7].keep_alive": ("off", "ack", "in_place")}, [7]))
    for message in range(1, MESSAGES + 1):
        rings, wanted, ids = steps[(message - 1) % len(steps)]
        files.write(rings)
        before = rings_of(terminal.switch)
        expect(changes(terminal, "reload --dry-run") == wanted and sorted(rings_of(terminal.switch)) == sorted(before), "dry run")
        found = changes(terminal)
        expect(found == wanted, f"message {message}: {found}")
        expect(sorted(rings_of(terminal.switch)) == ids, f"rings after message {message}: {rings_of(terminal.switch)}")
        expect(changes(terminal) == {}, "the same file again changes something")
        one_message(hosts, message)
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("reload-answers")
def answers(lab: Lab) -> None:
    """What a person sees: each change, what comes of it, and what takes a restart."""
    files, hosts, terminal, _ = begun(lab)
    files.write(ring_7(window=2), more="l2: { aging_s: 5, entries: 16 }\nmetrics: { listen: '127.0.0.1:9464' }\n")
    dry = terminal.ask("reload --dry-run")
    rows = (("l2.aging_s", "300", "5", "in_place", "no job notices"),
            ("l2.entries", "8192", "16", "restart", "takes a restart"),
            ("metrics.listen", "-", "127.0.0.1:9464", "restart", "takes a restart"),
            ("rings[7].window", "4", "2", "ring_made_anew", "the ring is withdrawn and made anew; its job ends"))
    for row in rows:
        expect(any(line.split() == " ".join(row).split() for line in dry.splitlines()), f"{row} is not in:\n{dry}")
    expect(DRY_RUN in dry, dry)
    hosts.say_hello()
    Job(hosts, last=1).run()  # with window 4 as before
    expect(terminal.ask("reload").replace("in force, but for what takes a restart", DRY_RUN) == dry, "reload says something else")
    left = changes(terminal)
    expect(set(left) == {"l2.entries", "metrics.listen"}, f"not in force: {left}")
    rows_now = terminal.switch.ask("/weir/ring")["rings"]
    expect([row["window"] for row in rows_now.values()] == [2], f"{rows_now}")
    expect("none" in Terminal(lab, lab.namespace(), configuration([QUIET_PORT])).ask("reload"), "no change")
    told(terminal)


@smoke_test("reload-refused")
def refused(lab: Lab) -> None:
    """A file with a mistake, and one that does not fit, change nothing, be the rest of it as right as it may."""
    files, hosts, terminal, _ = begun(lab, rings=ring_7() + ring_of_others(8))
    hosts.say_hello()
    others, aging = ring_of_others(9), "l2: { aging_s: 5 }\n"
    mistakes = (
        (ring_7(window=0), "window: found 0; allowed: a whole number, 1 to 1024"),
        (ring_7() + others.replace("p0", "p9"), 'port: found "p9"; allowed: p0'),
        (ring_7() + "  - [", "found text that is not YAML"),
        (ring_7() + ring_7(), "each ring id once"),
        (ring_of_others(9) + ring_7(window=200), f"ring 7: needs {2 * 200 * 16 * (RANKS - 1) + 4 * RANKS} frames"),
        (ring_7() + "".join(ring_of_others(ring) for ring in range(9, 13)), "there are 4 rings, as many as this switch has room for"))
    for number, (rings, found) in enumerate(mistakes):
        files.write(rings, more=aging)
        for command in ("reload --dry-run", "reload"):
            answer = terminal.ask(command)
            expect(found in answer and answer.count("\n") == 1, f"{command}: {answer}")
        expect(sorted(rings_of(terminal.switch)) == [7, 8], f"rings after {found}")
        one_message(hosts, number + 1)
    files.path.unlink()
    expect("weir.yaml:1: (document): found no such file" in terminal.ask("reload"), terminal.ask("reload"))
    files.write(ring_7() + ring_of_others(8))
    expect(changes(terminal) == {}, "something has changed")
    totals = told(terminal)
    expect(totals.drops == {}, f"{totals}")


@smoke_test("reload-other-ports")
def other_ports(lab: Lab) -> None:
    """A ring's members can be tied to the ports that are there, not to those that the file will have after a restart."""
    files, _, terminal, _ = begun(lab)
    config = files.path.read_text()
    files.path.write_text(config.replace("name: p0,", "name: q0,").replace("port: p0", "port: q0"))
    answer = terminal.ask("reload")
    expect('found "q0"; allowed: p0, p1, p2 or p3' in answer and "until it is started again, the switch has its ports as they were opened" in answer, answer)
    turned = ring_ports()[1:] + ring_ports()[:1]  # the same ports, in another order
    files.path.write_text(config.replace("\n".join(f"  - {{ {port} }}" for port in ring_ports()),
                                         "\n".join(f"  - {{ {port} }}" for port in turned)))
    expect(changes(terminal) == {}, "the order of ports counts")
    told(terminal)


@smoke_test("reload-moves-a-member")
def moves_a_member(lab: Lab) -> None:
    """A member is tied to another port, and back, without an end of its job."""
    files, hosts, terminal, _ = begun(lab)
    hosts.say_hello()
    one_message(hosts, 1)
    files.write(ring_7().replace("1, port: p0", "1"))
    expect(changes(terminal) == {"rings[7].members[0].port": ("p0", "-", "in_place")}, "untied")
    one_message(hosts, 2)
    files.write(ring_7().replace("port: p0", "port: p9").replace("port: p1", "port: p0").replace("port: p9", "port: p1"))
    expect(changes(terminal) == {"rings[7].members[0].port": ("-", "p1", "in_place"),
                                 "rings[7].members[1].port": ("p1", "p0", "in_place")}, "two hosts have changed places")
    for rank in (0, 1):
        hosts.send(rank, THIRD)
    wait_for_drops(terminal.switch, {"wrong_port": 2})
    stations = terminal.switch.ask("/weir/fdb")["fdb"].values()
    pinned = {row["mac"][-1]: row["port"] for row in stations if row["pins"]}
    expect(pinned == {"1": "p1", "2": "p0", "3": "p2", "4": "p3"}, f"pinned: {pinned}")
    behind = {0: 1, 1: 0, 2: 2, 3: 3}  # whose link each rank now has
    for rank, host in behind.items():
        hosts.send_raw(host, frame_of(rank, THIRD, hosts.incarnation))
    wanted = sorted((behind[(rank + 1) % RANKS], result(rank, THIRD, hosts.incarnation)) for rank in range(RANKS))
    expect(sorted(hosts.collect(RANKS)) == wanted, "other results, or at other places")
    files.write()
    expect(set(changes(terminal)) == {"rings[7].members[0].port", "rings[7].members[1].port"}, "they have changed back")
    Job(hosts, first=THIRD + 1, last=4).run()
    totals = told(terminal)
    expect(totals.drops == {"wrong_port": 2}, f"{totals}")


@smoke_test("reload-rings-at-run-time")
def rings_at_run_time(lab: Lab) -> None:
    """Rings made at run time are not the file's, until the file has them as they are."""
    files, hosts, terminal, _ = begun(lab, rings=ring_of_others(8))
    expect(added(lab, terminal, ring_7()) == "added: ring 7\n", "`add ring`")
    hosts.say_hello()
    expect(changes(terminal) == {} and sorted(rings_of(terminal.switch)) == [7, 8], "a ring has gone")
    one_message(hosts, 1)
    files.write(ring_of_others(8) + ring_7(window=2))
    answer = terminal.ask("reload")
    expect("ring 7: a ring with this id was made while the switch runs, and the file has another one (rings[7].window: "
           "found 2, running: 4); allowed: withdraw ring 7, or another id in the file\n" == answer, answer)
    files.write(ring_of_others(8) + ring_7().replace("mtu: 1024", "mtu: 1024\n    patience: 5"))
    expect(changes(terminal) == {"rings[7]": ("-", "4 members, window 4, 16384 bytes", "ring_kept"),
                                 "rings[7].patience": ("600", "5", "in_place")}, "not kept")
    one_message(hosts, 2)
    files.write(ring_of_others(8))
    expect(effects(terminal) == {"rings[7]": "ring_withdrawn"}, "not the file's")
    expect(terminal.ask("withdraw ring 8") == "ring 8: withdrawn\n", "`withdraw ring`")
    expect(effects(terminal) == {"rings[8]": "ring_made"}, "the file has it")
    told(terminal)


@smoke_test("reload-without-room")
def without_room(lab: Lab) -> None:
    """A switch without `spare:` can let rings go and change them in place, but make none; the answer says so."""
    fabric, hosts = ring_of_hosts(lab)
    path = lab.file("weir.yaml", without_probes(configuration(ring_ports(), rings=ring_7() + ring_of_others(8))))
    terminal = Terminal(lab, fabric, path)
    hosts.say_hello()
    path.write_text(without_probes(configuration(ring_ports(), rings=ring_7(window=2))))
    expect("ring 7: this switch has no room for rings made while it runs" in terminal.ask("reload"), "a ring was made")
    expect(sorted(rings_of(terminal.switch)) == [7, 8], "a ring has gone")
    path.write_text(without_probes(
        configuration(ring_ports(), rings=ring_7().replace("mtu: 1024", "mtu: 1024\n    patience: 5"))))
    expect(effects(terminal) ==
           {"rings[8]": "ring_withdrawn", "rings[7].patience": "in_place"}, "not changed")
    one_message(hosts, 1)
    told(terminal)


@smoke_test("reload-remembered")
def remembered(lab: Lab) -> None:
    """After a restart no raw data of a ring passes that a reload has withdrawn."""
    files, hosts, terminal, fabric = begun(lab)
    hosts.say_hello()
    one_message(hosts, 1)
    path = files.write(rings="")
    expect(effects(terminal) == {"rings[7]": "ring_withdrawn"}, "not withdrawn")
    told(terminal)
    second = Terminal(lab, fabric, path)
    for rank in range(RANKS):
        hosts.send_raw(rank, frame_of(rank, SECOND, hosts.incarnation))
        hosts.send_raw(rank, frame_of(rank, SECOND + 1, hosts.incarnation))
    wait_for_drops(second.switch, {"unannounced": RANKS, "unclassified": RANKS})
    expect(hosts.received(0.2) == [], "raw data was forwarded")
    told(second)


def logged(switch: Weir, line: str) -> None:
    wait_for(lambda: line in switch.output(), 10, f"{line!r} is not in the log, {switch.log}")


@smoke_test("reload-while-a-ring-drains")
def while_a_ring_drains(lab: Lab) -> None:
    """A ring that drains goes on to drain when a reload changes it in place, and goes for that reason."""
    files, _, terminal, _ = begun(lab)
    terminal.ask("drain ring 7 2")
    files.write(ring_7().replace("mtu: 1024", "mtu: 1024\n    patience: 5"))
    expect(changes(terminal) == {"rings[7].patience": ("600", "5", "in_place")}, "not changed")
    said = terminal.event("ring_reclaimed", 20)
    expect("reason=drained fate=withdrawn" in said, said)
    told(terminal)


@smoke_test("reload-by-signal")
def by_signal(lab: Lab) -> None:
    """SIGHUP reloads: a line of the log for each change. One that comes during a reload is not lost."""
    fabric, hosts = ring_of_hosts(lab)
    files = Files(lab)
    switch = lab.ready_weir(fabric, files.write())
    hosts.say_hello()
    files.write(ring_7() + ring_of_others(8), more="l2: { aging_s: 5, entries: 16 }\n")
    switch.process.send_signal(signal.SIGHUP)
    logged(switch, "weir: reload: l2.aging_s: 300 -> 5: no job notices [reloaded key=l2.aging_s effect=in_place]\n"
                   "weir: reload: l2.entries: 8192 -> 16: takes a restart [reloaded key=l2.entries effect=restart]\n"
                   "weir: reload: rings[8]: - -> 4 members, window 1, 16384 bytes: the ring is made "
                   "[reloaded key=rings[8] effect=ring_made]\n")
    files.write("  - [")
    switch.process.send_signal(signal.SIGHUP)
    logged(switch, f"weir: reload: nothing has changed: {files.path}:")
    files.path.unlink()
    switch.process.send_signal(signal.SIGHUP)
    logged(switch, f"weir: reload: nothing has changed: {files.path}:1: (document): found no such file")
    for aging in range(10, 10 + SIGNALS):
        files.write(more=f"l2: {{ aging_s: {aging} }}\n")
        switch.process.send_signal(signal.SIGHUP)
    logged(switch, f"-> {10 + SIGNALS - 1}: no job notices [")  # the last file is in force
    switch.process.send_signal(signal.SIGHUP)
    logged(switch, f"weir: reload: {files.path} says nothing new [reloaded]\n")
    expect(rings_of(switch) == [7], f"rings: {rings_of(switch)}")
    one_message(hosts, 1)
    switch.stop()


@smoke_test("reload-by-signal-at-the-prompt")
def by_signal_at_the_prompt(lab: Lab) -> None:
    """With a prompt too; what was typed so far stays."""
    files, _, terminal, _ = begun(lab)
    files.write(ring_7() + ring_of_others(8))
    terminal.press("show ri")
    terminal.switch.process.send_signal(signal.SIGHUP)
    said = terminal.event("reloaded")
    expect("reload: rings[8]: - -> 4 members, window 1, 16384 bytes: the ring is made" in said, said)
    terminal.press("ng all\n")
    terminal.until("\nrings\n")
    terminal.until("\nweir> ")
    expect(sorted(rings_of(terminal.switch)) == [7, 8], "no ring 8")
    told(terminal)


@smoke_test("reload-by-control-service")
def by_control_service(lab: Lab) -> None:
    """weirctl's words and a program's call; a watcher cannot order a reload."""
    fabric, _ = ring_of_hosts(lab)
    files = Files(lab)
    switch = lab.ready_weir(fabric, files.write(more=at_socket(lab, "")))
    files.write(ring_7() + ring_of_others(8), more=at_socket(lab, ""))
    dry = said(lab, "reload --dry-run")
    expect("rings[8]" in dry and DRY_RUN in dry and rings_of(switch) == [7], dry)
    answer = foreign(lab, "call", "WatchStatistics", json.dumps({"words": ["reload"], "period_ms": 100}))
    expect(answer["code"] == "INVALID_ARGUMENT" and rings_of(switch) == [7], f"{answer}")
    [row] = json.loads(said(lab, "reload json"))["changes"]
    expect(row["key"] == "rings[8]" and row["effect"] == "ring_made" and sorted(rings_of(switch)) == [7, 8], f"{row}")
    files.write(ring_7(window=0), more=at_socket(lab, ""))
    ended = weirctl("reload", server=socket_of(lab))
    expect(ended.status == 2 and "window: found 0" in ended.errors, f"{ended}")
    files.write(ring_7(window=200), more=at_socket(lab, ""))
    answer = execute(lab, "reload")
    expect(answer["code"] == "RESOURCE_EXHAUSTED" and "ring 7: needs " in answer["message"], f"{answer}")
    switch.stop()


@smoke_test("reload-unfinished")
def unfinished(lab: Lab) -> None:
    """An lcore that hangs ends a reload in the middle; the answer says what is not in force, and the next one does it."""
    files, hosts, terminal, _ = begun(lab, lcores=TWO_CORES)
    files.write(ring_7() + ring_of_others(8), lcores=TWO_CORES, more="l2: { aging_s: 5 }\n")
    frozen = FrozenThread(lcore_thread(terminal.switch.process.pid))
    lab.on_end(frozen.thaw)
    answer = terminal.ask("reload")
    expect("lcore 1 did not stand still within 2000 ms; not in force: " in answer and "rings[8]" in answer, answer)
    frozen.thaw()
    expect("rings[8]" in changes(terminal) and sorted(rings_of(terminal.switch)) == [7, 8], "the next reload")
    hosts.say_hello()
    one_message(hosts, 1)
    told(terminal)
