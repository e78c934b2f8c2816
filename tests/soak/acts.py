# SPDX-License-Identifier: BSD-3-Clause
"""What happens to a switch in a year, each with what must come of it. An act raises Failed where something else comes."""
from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from soak_site import HOSTS, PARTIES, RING_OF_NOBODY, Party, Site
from weir import expect, wait_for

LONGEST_S = 60.0  # of what must end by itself
SHORT_FLAP_S, LONG_FLAP_S = 0.1, 2.0  # shorter than weir-worker's time limit
TYPES = ("f32", "i32", "f16", "bf16", "f64", "u8")


@dataclass
class Act:
    """`body` does it once. Between two there is a pause of `least_s` to three times that."""

    name: str
    body: Callable[[random.Random], str]  # returns what it was, of several of a name
    least_s: float
    number: int


def acts_of(site: Site) -> list[Act]:
    rows: list[tuple[str, Callable[[random.Random], str], float]] = [
        *((f"jobs of {party.name}", job_of(site, party), 0.1) for party in PARTIES),
        ("link flaps", lambda dice: flap(site, dice), 4.0),
        ("reloads", lambda dice: reload(site, dice), 3.0),
        ("certificates", lambda dice: certify(site), 6.0),
        ("scrapes", Scraper(site).scrape, 1.0),
        ("captures", lambda dice: capture(site, dice), 5.0),
    ]
    return [Act(name, body, least_s, number) for number, (name, body, least_s) in enumerate(rows)]


def job_of(site: Site, party: Party) -> Callable[[random.Random], str]:
    """A job that ends, or one of whose ranks dies in its midst."""
    def run(dice: random.Random) -> str:
        size = int(4 * 2 ** dice.uniform(0, 16))
        options = ["--type", dice.choice(TYPES), "--size", str(size - size % 8 or 8)]
        if party.ring is None:
            options += ["--ring-count", dice.choice(("1", "2", "offered"))]
        hosts = list(party.hosts) if party.ring is not None else sorted(dice.sample(party.hosts, dice.randint(2, len(party.hosts))))
        return die(site, party, hosts, options, dice) if dice.random() < 0.25 else end_well(site, party, hosts, options, dice)
    return run


def end_well(site: Site, party: Party, hosts: list[int], options: list[str], dice: random.Random) -> str:
    ranks = site.start(party, hosts, *options, "--repeat", str(dice.randint(1, 200)))
    for rank, process in enumerate(ranks):
        status, output = process.wait(LONGEST_S)
        expect(status == 0 and "algorithm=switch verified=every_element" in output,
               f"rank {rank} of {party.name}, hosts {hosts}, {options}: {status}, {output}")
    return "exact"


def die(site: Site, party: Party, hosts: list[int], options: list[str], dice: random.Random) -> str:
    """The others hear of it, whenever it was: while they met, or in a call."""
    ranks = site.start(party, hosts, *options, "--repeat", "1000000")
    victim = dice.randrange(len(ranks))
    time.sleep(dice.uniform(0.0, 2.0))
    ranks[victim].process.send_signal(signal.SIGKILL)
    ranks[victim].wait(LONGEST_S)
    for rank, process in enumerate(ranks):
        if rank != victim:
            status, output = process.wait(LONGEST_S)
            expect(status == 1 and ("peer_died: " in output or "timeout: " in output), f"rank {rank} of {party.name}, {victim} of {hosts} was killed: {status}, {output}")
    return "a rank killed"


def flap(site: Site, dice: random.Random) -> str:
    port = f"tap{dice.choice(HOSTS)}"
    site.fabric.ip(f"link set {port} down")
    time.sleep(dice.uniform(SHORT_FLAP_S, LONG_FLAP_S))
    site.fabric.ip(f"link set {port} up")
    return ""


def reload(site: Site, dice: random.Random) -> str:
    """Ring 8 comes or goes, or nothing has changed."""
    site.reload(dice.choice(("", RING_OF_NOBODY)))
    return ""


def certify(site: Site) -> str:
    """The next connection has them; red's and blue's jobs make some all the time."""
    site.certify_switch()
    return ""


def capture(site: Site, dice: random.Random) -> str:
    file = site.lab.directory / "soak.pcapng"
    began = site.say("capture", "port", "all", file, 100_000)
    expect(began.status == 0, f"capture: {began}")
    time.sleep(dice.uniform(0.1, 1.0))
    ended = site.say("capture", "stop")
    expect(ended.status == 0, f"capture stop: {ended}")
    wait_for(file.exists, 10, "there is no capture")
    size = file.stat().st_size
    file.unlink()
    expect(size > 0, "the capture is empty")
    return ""


class Scraper:
    """No counter of the whole switch goes back."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._last: dict[tuple[str, frozenset[str]], float] = {}

    def scrape(self, _: random.Random) -> str:
        found = {key: value for key, value in self._site.metrics().items()
                 if key[0].endswith("_total") and not any(label.startswith(("ring=", "tenant=")) for label in key[1])}
        back = [f"{key}: {self._last[key]} to {value}" for key, value in found.items() if value < self._last.get(key, 0.0)]
        expect(not back, f"{len(back)} counters went back: {'; '.join(back[:3])}")
        self._last = found
        return ""
