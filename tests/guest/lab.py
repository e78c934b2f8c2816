# SPDX-License-Identifier: BSD-3-Clause
"""A fabric with booted guests, and what scenarios can do with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fabric import Fabric, Setup
from guest import Guest, GuestError, Identity, Job, Result
from image import Image
from switch import FabricError, Switch, Weir
from tree import Tree


class ScenarioFailed(Exception):
    """What was seen and what was expected."""


def said_by(source: Callable[[], str]) -> str:
    """What it says, or why it says nothing."""
    try:
        return source()
    except (FabricError, GuestError, OSError) as error:
        return str(error)


class Lab:
    """All parts of one setup, running. A context manager; make it in the main thread."""

    def __init__(self, setup: Setup, switch: str, image: Image, logs: Path) -> None:
        self.setup = setup
        self._image, self._logs = image, logs
        logs.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self.fabric = Fabric(switch, setup, logs)
            stack.callback(self.fabric.close)
            self.guests: list[Guest] = []
            stack.callback(lambda: [guest.power_off() for guest in self.guests])
            for rank in range(setup.guests):
                self.guests.append(self._boot(rank))
            for guest in self.guests:
                guest.wait_ready()
            self._cleanup = stack.pop_all()

    def _boot(self, rank: int) -> Guest:
        return Guest(Identity(rank), self._image, self.fabric.namespace.prefix, self.setup.link_mtu, self._logs)

    # -- for scenarios

    @property
    def switch(self) -> Switch:
        return self.fabric.switch

    @property
    def weir(self) -> Weir:
        """The switch, for scenarios that need Weir itself (`needs_weir`); of a tree the spine."""
        return self.switch.weirs[0]

    @property
    def tree(self) -> Tree:
        """The switches of a setup with leaves."""
        assert isinstance(self.fabric.switch, Tree)
        return self.fabric.switch

    def start_on_all(self, command: Callable[[Guest], str]) -> list[Job]:
        """Starts a command in every guest, each its own: `start_on_all(lambda guest: f"… --rank {guest.who.rank}")`."""
        return [guest.start(command(guest)) for guest in self.guests]

    def run_on_all(self, command: Callable[[Guest], str], timeout: float = 180.0) -> list[Result]:
        """The same, and waits for all; ScenarioFailed with what all printed when one does not end with status 0."""
        jobs = self.start_on_all(command)
        deadline = time.monotonic() + timeout
        results = [job.wait(max(deadline - time.monotonic(), 0.1)) for job in jobs]
        if any(result.status != 0 for result in results):
            raise ScenarioFailed("\n".join(f"guest{rank}, after {result.seconds:.1f} s: {result.complaint}"
                                           for rank, result in enumerate(results)))
        return results

    def reboot(self, rank: int) -> None:
        """A new machine in the place of guest `rank`, as after a crash: the same addresses, no state."""
        self.guests[rank].power_off()
        self.guests[rank] = self._boot(rank)
        self.guests[rank].wait_ready()

    # -- for the runner

    def arrange(self, setup: Setup) -> None:
        """Another setup with the same guests, when the switch has ended."""
        self.setup = setup
        self.fabric.arrange(setup)

    def keep_evidence(self, name: str) -> None:
        """Adds to the file of that name what the switch and the guests' devices say now: why did a scenario fail?"""
        with (self._logs / name).open("a") as evidence:
            stuck = [f"/weir/ring/stuck,{ring.ring_id}" for ring in self.setup.rings]
            for weir in self.switch.weirs:
                for question in ("/weir/drops", "/weir/conn", *stuck):
                    answer = said_by(lambda: json.dumps(weir.telemetry(question), indent=1))
                    evidence.write(f"{weir.name}: {question}: {answer}\n")
            for guest in self.guests:
                evidence.write(f"{guest.who.name}: {said_by(lambda: json.dumps(guest.rdma_counters(), indent=1))}\n")

    def reset(self) -> None:
        """Call it after a scenario. GuestError when the lab cannot be used for another."""
        for guest in self.guests:
            guest.reset()
        self.switch.reset()
        if not self.switch.is_alive:
            raise GuestError(f"the switch is not running any more:\n{self.switch.report()}")

    def close(self) -> None:
        self._cleanup.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
