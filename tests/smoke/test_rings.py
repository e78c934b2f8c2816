# SPDX-License-Identifier: BSD-3-Clause
"""Rings that are made and withdrawn while the switch runs."""
from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

from hosts import RANKS, Job, frame_of, ring_7, ring_of_hosts, ring_ports
from lab import Lab, smoke_test
from terminal import Terminal
from test_incarnations import SECOND, told, wait_for_drops
from test_metrics import LISTEN, scrape
from weir import QUIET_PORT, Weir, configuration, expect

ROUNDS = 5
MANY = 20
ASKED_S = 4.0
# What ring 7 takes: 2N x L slots of H-1 frames, and 4 waiting hellos of each of H ranks (docs/protocol.md §2a, §4).
FRAMES_OF_RING_7 = 2 * 4 * 16 * (RANKS - 1) + 4 * RANKS


def spare(directory: Path, rings: int = 2, members: int = 2 * RANKS, frames: int = FRAMES_OF_RING_7) -> str:
    return (configuration(ring_ports()) + f"spare: {{ rings: {rings}, members: {members}, frames: {frames} }}\n"
            f"state_directory: {directory}\n")


def with_metrics_at(lab: Lab) -> str:
    frames = MANY * (2 * 16 * (RANKS - 1) + 4 * RANKS)
    return (spare(lab.directory / "state", rings=MANY, members=MANY * RANKS, frames=frames)
            + f'metrics: {{ listen: "{LISTEN}" }}\n')


def added(lab: Lab, terminal: Terminal, ring: str) -> str:
    """What the prompt says to `add ring`."""
    return terminal.ask(f"add ring {lab.file('ring.yaml', ring)}")


def rings_of(switch: Weir) -> list[int]:
    return [row["ring"] for row in switch.ask("/weir/ring").get("rings", {}).values()]


@smoke_test("rings-journal-refusals")
def journal_refusals(lab: Lab) -> None:
    """One state directory has one switch; and a journal that cannot be read is no empty one, and stays as it is."""
    space = lab.namespace()
    state = lab.directory / "state"
    config = configuration([QUIET_PORT]) + f"state_directory: {state}\n"

    def refused(text: str) -> str:
        ended = lab.weir(space, config, "--no-interactive").refusal()
        expect(ended.status == 2 and text in ended.output, f"wanted {text}: {ended}")
        return ended.output
    switch = lab.ready_weir(space, config)
    refused(f"state_directory: {state}/lock: found that process {switch.process.pid} has it; allowed: ")
    switch.stop()
    journal = state / "rings"
    damaged = b"10.0.0.1 10.0.0.2\n10.0.0.1 \x1b]0;owned\x07\n"
    journal.write_bytes(damaged)
    said = refused(f"{journal}:2: found '\\x1b]0;owned\\x07'; allowed: ")
    expect("\x1b" not in said and journal.read_bytes() == damaged, f"a terminal would obey {said!r}")
    # A process's memory cannot be read at address 0, as a disk that fails.
    subprocess.run(["mount", "--bind", f"/proc/{os.getpid()}/mem", journal], check=True)
    lab.on_end(lambda: subprocess.run(["umount", journal], check=True))
    refused(f"{journal}: cannot be read: Input/output error; allowed: ")


@smoke_test("rings-at-run-time")
def rings_at_run_time(lab: Lab) -> None:
    """A ring comes, works and goes, again and again; its memory comes back."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, spare(lab.directory / "state"))
    for _ in range(ROUNDS):
        expect(added(lab, terminal, ring_7()) == "added: ring 7\n", "`add ring`")
        hosts.incarnation = hosts.incarnation.again()
        hosts.say_hello()
        Job(hosts, last=2).run()
        said = added(lab, terminal, ring_7())
        expect("id: found 7, which a ring has; allowed: any but 7" in said, f"the same id again: {said}")
        expect(terminal.ask("withdraw ring 7") == "ring 7: withdrawn\n", "`withdraw ring`")
        expect(rings_of(terminal.switch) == [], "the ring is still there")
    totals = told(terminal)
    expect(set(totals.drops) <= {"stale_repeat"}, f"{totals}")


@smoke_test("rings-at-run-time-refused")
def refused(lab: Lab) -> None:
    """What a ring needs and the switch lacks is told in words, and changes nothing."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, spare(lab.directory / "state", rings=1))
    before = terminal.ask("show memory")
    rows = ((ring_7(window=5), f"needs {2 * 5 * 16 * (RANKS - 1) + 4 * RANKS} frames", f"{FRAMES_OF_RING_7} are free"),
            (ring_7(window=0), "window: found 0", "allowed: a whole number, 1 to 1024"),
            (ring_7().replace("p0", "p9"), 'port: found "p9"', "allowed: p0"),
            ("rings: []\n", "rings: found an unknown key", "allowed: id, parallel, window"))
    for ring, found, allowed in rows:
        said = added(lab, terminal, ring)
        expect(found in said and allowed in said and said.count("\n") == 1, f"{ring}: {said}")
    expect("no such file" in terminal.ask("add ring /nowhere"), "a file that is not there")
    expect(terminal.ask("show memory") == before, "memory has gone")
    expect(added(lab, terminal, ring_7()) == "added: ring 7\n", "`add ring`")
    said = added(lab, terminal, ring_7().replace("id: 7", "id: 8"))
    expect("there are 1 rings" in said, said)
    hosts.say_hello()
    Job(hosts, last=2).run()
    told(terminal)
    plain = Terminal(lab, fabric, configuration(ring_ports()))
    expect("allowed: a configuration with spare:" in added(lab, plain, ring_7()), "without room")
    told(plain)


@smoke_test("rings-while-asked")
def while_asked(lab: Lab) -> None:
    """Rings may come and go between two questions of one scrape; the switch is up all the time."""
    fabric, _ = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, with_metrics_at(lab))
    ids = range(100, 100 + MANY)
    many = "".join(ring_7(window=1).replace("id: 7", f"id: {ring}").replace("10.77.0", f"10.78.{ring}") for ring in ids)
    scrapes: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            scrapes.append(scrape(fabric))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        began = time.monotonic()
        while time.monotonic() - began < ASKED_S:
            expect(added(lab, terminal, many).count(",") == MANY - 1, "not all were added")
            for ring in ids:
                terminal.ask(f"withdraw ring {ring}")
    finally:
        over.set()
        looking.join()
    expect(len(scrapes) > 1 and all("\nweir_up 1\n" in text for text in scrapes), "the switch was not up in a scrape")
    told(terminal)


@smoke_test("rings-remembered")
def remembered(lab: Lab) -> None:
    """A restarted switch lets no raw data of a job pass whose ring was made while its predecessor ran."""
    fabric, hosts = ring_of_hosts(lab)
    config = spare(lab.directory / "state")
    first = Terminal(lab, fabric, config)
    expect(added(lab, first, ring_7()) == "added: ring 7\n", "`add ring`")
    hosts.say_hello()
    before = hosts.incarnation
    Job(hosts, last=1).run()
    told(first)
    second = Terminal(lab, fabric, config)
    expect(rings_of(second.switch) == [], "a ring is there")
    for rank in range(RANKS):
        hosts.send_raw(rank, frame_of(rank, SECOND, before))
        hosts.send_raw(rank, frame_of(rank, SECOND + 1, before))
    wait_for_drops(second.switch, {"unannounced": RANKS, "unclassified": RANKS})
    expect(hosts.received(0.2) == [], "raw data was forwarded")
    expect(added(lab, second, ring_7()) == "added: ring 7\n", "`add ring` again")
    hosts.incarnation = before.again()
    hosts.say_hello()
    Job(hosts, last=2).run()
    told(second)


@smoke_test("rings-journal-errors")
def journal_errors(lab: Lab) -> None:
    """A journal that cannot be read keeps the switch from starting, and says why."""
    fabric, _ = ring_of_hosts(lab)
    state = lab.directory / "state"
    state.mkdir()
    for text, found in (("10.77.0.1 10.77.0.x\n", "rings:1: found '10.77.0.x'"), ("10.77.0.1\n", "rings:1: found 1 addresses")):
        (state / "rings").write_text(text)
        ended = lab.weir(fabric, spare(state), "--no-interactive").refusal()
        expect(ended.status == 2 and found in ended.output, f"{text!r}: {ended}")
    (state / "rings").write_text("10.77.0.1 10.77.0.2\n10.77.0.3 10.")  # the second was never added
    lab.ready_weir(fabric, spare(state)).stop()
    expect((state / "rings").read_text() == "10.77.0.1 10.77.0.2\n", "half a line stays")
