# SPDX-License-Identifier: BSD-3-Clause
"""Acts that repeat all at once, each in a thread of its own, and what is watched meanwhile."""
from __future__ import annotations

import fnmatch
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from acts import Act, acts_of
from lab import Lab
from soak_site import Site
from watch import Watch, Watched
from weir import expect, wait_for

LOOKS = 200  # at what is watched
SHORTEST_LOOK_S = 0.5
SETTLE_S = 30.0


@dataclass
class Count:
    done: Counter[str] = field(default_factory=Counter)  # by what came of it
    slowest_s: float = 0.0


class Soak:
    def __init__(self, lab: Lab, seconds: float, seed: int, pace: float = 1.0, only: str = "*",
                 tell: Callable[[str], None] = lambda _: None) -> None:
        """`pace`: what the pauses between acts are multiplied by. `only`: acts whose name fits one of its patterns. `tell` gets a line now and then."""
        self.site = Site(lab)
        self.watch = Watch(self.site, lambda: sum(sum(count.done.values()) for name, count in self.counts.items()
                                                  if name.startswith("jobs")))
        self._seconds, self._seed, self._pace, self._tell = seconds, seed, pace, tell
        self._acts = [act for act in acts_of(self.site) if any(fnmatch.fnmatch(act.name, one) for one in only.split(","))]
        self.counts = {act.name: Count() for act in self._acts}
        self.wrong: list[str] = []
        self._is_over = threading.Event()

    def run(self) -> None:
        """Then `wrong` has what was not as it must be."""
        threads = [threading.Thread(target=self._repeat, args=(act,)) for act in self._acts]
        for thread in threads:
            thread.start()
        self._look_on()
        self._is_over.set()
        for thread in threads:
            thread.join()
        self._note_of(self._end)

    def _look_on(self) -> None:
        pause = max(SHORTEST_LOOK_S, self._seconds / LOOKS)
        end = time.monotonic() + self._seconds
        while time.monotonic() < end and not self.wrong:
            self._note_of(self.watch.look)
            self._tell(f"{max(0.0, end - time.monotonic()):6.0f} s left: {self._so_far()}")
            self._is_over.wait(min(pause, max(0.0, end - time.monotonic())))

    def _so_far(self) -> str:
        jobs = sum((count.done for name, count in self.counts.items() if name.startswith("jobs")), Counter())
        return f"{jobs['exact']} jobs exact, {jobs['a rank killed']} with a rank killed, {self.watch.things[0].values[-1]:.0f} MiB"

    def _repeat(self, act: Act) -> None:
        dice = random.Random(f"{self._seed} {act.name}")
        count = self.counts[act.name]
        while not self._is_over.wait(self._pace * act.least_s * dice.uniform(1.0, 3.0)):
            began = time.monotonic()
            if not self._note_of(lambda: count.done.update([act.body(dice)]), f"{act.name}: "):
                self._is_over.set()
            count.slowest_s = max(count.slowest_s, time.monotonic() - began)

    def _note_of(self, body: Callable[[], None], what: str = "") -> bool:
        try:
            body()
        except Exception as error:  # anything at all: the run goes on to its end and tells
            self.wrong.append(f"{what}{error}\n{''.join(traceback.format_tb(error.__traceback__)[-2:])}")
            return False
        return True

    def _end(self) -> None:
        """No ring is left, no frame, no mbuf; nothing has grown."""
        left = {'ring="7"', 'ring="8"'}
        wait_for(lambda: self.site.rings() <= left, SETTLE_S, f"rings are left: {self.site.rings() - left}")
        grown = self.watch.grown()
        totals = self.site.switch.stop()
        expect(totals.accounting["consumed"] > 0, f"nothing was summed: {totals}")
        expect(not grown, f"grew: {'; '.join(grown)}")

    def table(self) -> str:
        lines = ["| what happened | times | slowest, s |", "|---|---|---|"]
        for name, count in self.counts.items():
            lines += [f"| {name}{': ' if what else ''}{what} | {times} | {count.slowest_s:.1f} |" for what, times in sorted(count.done.items())]
        lines += ["", "| what was watched | first | most | last |", "|---|---|---|---|"]
        return "\n".join(lines + [row_of(thing) for thing in self.watch.things if thing.values])


def row_of(thing: Watched) -> str:
    first, last = thing.fifths()
    unit = f", {thing.unit}" if thing.unit else ""
    return f"| {thing.name}{unit} | {first:.1f} | {max(thing.values):.1f} | {last:.1f} |"
