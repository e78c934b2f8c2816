# SPDX-License-Identifier: BSD-3-Clause
"""The prompt on a terminal (design: testpmd's grammar and habits)."""
from __future__ import annotations

import json
import re
import signal

from hosts import RANKS, Job, contributions, ring_of_hosts
from lab import Lab, smoke_test
from terminal import CTRL_D, CTRL_U, PROMPT, TAB, UP, Terminal, lines_of
from weir import ROOT, STOP_S, WEIR, Failed, Totals, expect, run_to_end, wait_for

CONFIG = ROOT / "config/af_packet.yaml"


def rows(terminal: Terminal, command: str, table: str) -> list[dict[str, object]]:
    return list(json.loads(terminal.ask(f"{command} json"))[table])


@smoke_test("prompt-commands")
def commands(lab: Lab) -> None:
    """Every command answers after traffic, every `show` also in JSON."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    expect("weir: ready\n" in terminal.banner, f"banner: {terminal.banner!r}")
    expect(terminal.ask("set trace on") == "trace is on\n", "`set trace on`")
    hosts.say_hello()
    Job(hosts, last=1).run()
    help_text = terminal.ask("help")
    for command in ("help", "quit", "show port info", "clear port stats", "set trace", "reset ring", "show ring",
                    "withdraw ring", "capture ring", "capture stop"):
        expect(command in help_text, f"help does not tell of {command!r}:\n{help_text}")
    for show in [line for grammar in terminal.questions() for line, _ in lines_of(grammar)]:
        expect(len(terminal.ask(show).splitlines()) > 1, f"`{show}` says nothing")
        answer = terminal.ask(f"{show} json")
        try:
            tables = json.loads(answer)
        except ValueError as error:
            raise Failed(f"`{show} json`: {error}: {answer!r}") from None
        expect(tables and all(isinstance(table, list) for table in tables.values()), f"`{show} json`: {tables}")
    check_values(terminal)
    expect(terminal.ask("clear port stats all") == "port all: statistics cleared\n", "`clear port stats all`")
    counts = [row["rx_packets"] for row in rows(terminal, "show port stats all", "port_stats")]
    expect(counts == [0] * RANKS, f"after clear port stats: {counts}")
    expect(Totals.read(terminal.quit()).accounting["received"] == 17 * RANKS, "totals after quit")


def check_values(terminal: Terminal) -> None:
    """The values shown are those of the traffic: a hello and one message of 16 packets from each of four hosts."""
    ring = rows(terminal, "show ring 7", "rings")[0]
    expect((ring["hellos"], ring["slots_completed"], ring["results"], ring["connected"]) == (1, 17, 68, 4), f"{ring}")
    stats = rows(terminal, "show port stats all", "port_stats")
    expect(all((row["rx_packets"], row["tx_packets"]) == (17, 17) for row in stats), f"{stats}")
    stations = rows(terminal, "show fdb", "fdb")
    expected = {(f"52:54:00:00:00:0{rank + 1}", f"p{rank}") for rank in range(RANKS)}
    expect({(row["mac"], row["port"]) for row in stations} == expected, f"{stations}")
    events = [row["event"] for row in rows(terminal, "show trace", "trace")]
    wanted = {"waits": 3, "begins": 1, "held": 17 * 3, "completed": 17, "result": 17 * RANKS}  # the fourth hello does not wait
    expect({event: events.count(event) for event in set(events)} == wanted, f"trace: {events}")
    connections = rows(terminal, "show conn all", "connections")
    expect([row["state"] for row in connections] == ["live"] * RANKS, f"{connections}")
    expect(rows(terminal, "show drops", "drops") == [], "drops")


def missing(terminal: Terminal) -> list[tuple[object, ...]]:
    """What `show ring 7 stuck` says of each rank that is waited for."""
    return [(row["rank"], row["ip"], row["qp"], row["waits_for"])
            for row in rows(terminal, "show ring 7 stuck", "waited_for")]


@smoke_test("prompt-stuck-and-reset")
def stuck(lab: Lab) -> None:
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    for rank in (0, 1, 3):
        hosts.send(rank, 0)
    states = ["hello waits", "hello waits", "no hello", "hello waits"]
    wait_for(lambda: [row["state"] for row in rows(terminal, "show ring 7", "members")] == states, 5,
             "`show ring` does not tell whose hello is missing")
    expect(missing(terminal) == [(2, "10.77.0.3", "-", "its hello")], f"{missing(terminal)}")
    expect(rows(terminal, "show accounting", "accounting")[0]["held"] == 3, "three hellos are not held")
    hosts.send(2, 0)
    hosts.read_hello_results()
    states = [row["state"] for row in rows(terminal, "show ring 7", "members")]
    expect(states == ["connected"] * RANKS, f"{states}")
    expect(rows(terminal, "show ring 7 stuck", "stuck") == [], "stuck after the hello")
    for rank, place in ((0, 1), (2, 1), (2, 2)):
        hosts.send(rank, place)
    wait_for(lambda: rows(terminal, "show ring 7", "rings")[0]["held"] == 3, 5, "three packets are not held")
    slots = rows(terminal, "show ring 7 stuck", "stuck")
    found = [(slot["message"], slot["packet"], slot["missing"]) for slot in slots]
    expect(sorted(found) == [(1, 0, "1,3"), (1, 1, "0,1,3")], f"{slots}")
    came = {0: 2, 1: 1, 3: 1}  # packets of each rank that slots lack
    due = [(rank, f"10.77.0.{rank + 1}", str(hosts.incarnation.queue_pair),
            f"its next packet, PSN {(contributions()[rank][0].roce.psn + count) % (1 << 24)}")
           for rank, count in came.items()]
    expect(missing(terminal) == due, f"{missing(terminal)}, not {due}")
    expect(terminal.ask("reset ring 7") == "ring 7: reset\n", "`reset ring 7`")
    ring = rows(terminal, "show ring 7", "rings")[0]
    expect((ring["held"], ring["filling"], ring["connected"]) == (0, 0, 0), f"after reset: {ring}")
    hosts.send(1, 1)  # on a connection that is dead now: never forwarded
    wait_for(lambda: {row["reason"]: row["count"] for row in rows(terminal, "show drops", "drops")}
             .items() >= {"ring_reset": 3}.items(), 5, "what the ring held is not dropped as ring_reset")
    expect(hosts.received(0.2) == [], "something of a ring that was reset was forwarded")
    totals = Totals.read(terminal.quit())
    expect(totals.drops.get("ring_reset") == 3 and sum(totals.drops.values()) == 4, f"{totals}")


@smoke_test("prompt-editing")
def editing(lab: Lab) -> None:
    """Tab, arrow keys, and the answer to an unknown word."""
    fabric, _ = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    terminal.press("sh" + TAB)
    terminal.until("show ")
    terminal.press("lc" + TAB)
    terminal.until("lcores ")
    terminal.press("\n")
    terminal.until("\nlcores\n")
    terminal.until("\n" + PROMPT)
    terminal.press(UP)
    terminal.until("show lcores")
    terminal.press("\n")
    terminal.until("\nlcores\n")
    terminal.until("\n" + PROMPT)
    terminal.press("show port " + TAB)
    listed = terminal.until("xstats")
    expect("info" in listed and "stats" in listed, f"Tab lists {listed!r}")
    terminal.press(CTRL_U)
    for wrong, right in (("shwo port info all",
                          "found 'shwo'; allowed: add, capture, clear, drain, help, load, quit, reload, reset, set, show, test, unload, withdraw"),
                         ("show rings", "found 'rings'; allowed: "),
                         ("show port info eth0", "port: found 'eth0'; allowed: all, p0, p1, p2, p3"),
                         ("show ring 8", "ring: found '8'; allowed: 7"),
                         ("reset ring seven", "ring: found 'seven'; allowed: 7"),
                         ("withdraw ring 8", "ring: found '8'; allowed: 7"),
                         ("set trace", "more is needed: off, on"),
                         ('show "port" "info" all', "p3"), ("show 'port", "found ' without a second; allowed: two around what has blanks"),
                         ("show drops xml", "found 'xml'; allowed: json")):
        expect(right in terminal.ask(wrong), f"`{wrong}` does not get {right!r}")
    terminal.quit()


@smoke_test("prompt-signal")
def signal_at_prompt(lab: Lab) -> None:
    fabric, _ = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    terminal.press("show dro")
    terminal.switch.process.send_signal(signal.SIGTERM)
    ended = terminal.end()
    expect(ended.status == 0, f"SIGTERM at the prompt: {ended}")
    Totals.read(ended.output)


@smoke_test("prompt-hang-up")
def hang_up(lab: Lab) -> None:
    """A terminal that goes away, with a line half typed or in the middle of an answer, ends nothing: a job goes on, the
    switch still answers, and a signal ends it."""
    for typed in ("", "show por", "show port xstats all\n", CTRL_D):
        fabric, hosts = ring_of_hosts(lab)
        terminal = Terminal(lab, fabric, CONFIG)
        hosts.say_hello()
        terminal.press(typed)
        terminal.hang_up()
        process = terminal.switch.process
        process.send_signal(signal.SIGHUP)  # as the kernel does to the session's leader
        Job(hosts, last=2).run()
        expect(process.poll() is None, f"after {typed!r} the switch ended with {process.returncode}")
        row = terminal.switch.ask("/weir/ring,7")["rings"]["0"]
        expect(row["results"] == RANKS * (1 + 2 * 16), f"{row}")
        process.send_signal(signal.SIGTERM)
        status = process.wait(STOP_S)
        expect(status == 0, f"exit status {status} without a terminal")


@smoke_test("prompt-end-of-input")
def end_of_input(lab: Lab) -> None:
    """^D ends nothing: only `quit` does, and a signal."""
    fabric, _ = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, CONFIG)
    terminal.press(CTRL_D)
    expect("lcores" in terminal.ask("show lcores"), "no answer after ^D")
    terminal.quit()


@smoke_test("help-option")
def help_option(lab: Lab) -> None:
    ended = run_to_end([WEIR, "--help"])
    expect(ended.status == 0 and "--cmd-file" in ended.output, f"{ended}")


@smoke_test("version-option")
def version_option(lab: Lab) -> None:
    found = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)
    expect(found is not None, "meson.build has no version")
    for program in ("weir", "weir-plan", "weir-replay", "weir-worker", "weirctl"):
        ended = run_to_end([WEIR.parent / program, "--version"])
        expect(ended.status == 0 and ended.output == f"{program} {found[1]}\n", f"{ended}")
