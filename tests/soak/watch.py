# SPDX-License-Identifier: BSD-3-Clause
"""What must not grow while a switch runs: memory, descriptors, threads, packet buffers in use, its files, its log."""
from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from soak_site import Site


LEAST_S = 600.0  # in which all has come that comes once, such as the largest capture's memory


@dataclass
class Watched:
    """`may_grow` is by how much, in its unit and as a share, the last fifth may lie above the first one."""

    name: str
    unit: str
    read: Callable[[], float]
    may_grow: float
    may_grow_share: float = 0.0
    values: list[float] = field(default_factory=list)

    def fifths(self) -> tuple[float, float]:
        """Medians of the first and of the last fifth; the first tenth is left out, in which all comes that comes once."""
        values = self.values[len(self.values) // 10:]
        part = max(1, len(values) // 5)
        return statistics.median(values[:part]), statistics.median(values[-part:])

    def has_grown(self) -> bool:
        first, last = self.fifths()
        return last > first + max(self.may_grow, self.may_grow_share * first)


class Watch:
    def __init__(self, site: Site, jobs: Callable[[], int]) -> None:
        """`jobs`: how many there have been."""
        self._site, self._count_jobs = site, jobs
        self._times: list[float] = []
        self.things = [
            Watched("memory of the switch", "MiB", self._memory_mib, 4.0, 0.03),
            Watched("descriptors", "", lambda: len(list(self._proc("fd").iterdir())), 16),
            Watched("threads", "", lambda: len(list(self._proc("task").iterdir())), 4),
            Watched("mbufs in use", "", self._mbufs_in_use, 512, 0.1),
            Watched("files of the state directory", "KiB", self._state_kib, 1.0),
            Watched("lines of the log for a job", "", self._lines_for_a_job, 5.0, 0.5),
        ]
        self._lines = self._jobs = 0

    def look(self) -> None:
        self._times.append(time.monotonic())
        for thing in self.things:
            thing.values.append(thing.read())

    def grown(self) -> list[str]:
        """What has grown, and from what to what. Nobody can say before a while has passed."""
        if not self._times or self._times[-1] - self._times[0] < LEAST_S:
            return []
        return [f"{thing.name}: {thing.fifths()}" for thing in self.things if thing.has_grown()]

    def rows(self) -> list[dict[str, float]]:
        """One for each look."""
        first = self._times[0]
        return [{"seconds": at - first} | {thing.name: thing.values[number] for thing in self.things}
                for number, at in enumerate(self._times)]

    def _proc(self, name: str) -> Path:
        return Path(f"/proc/{self._site.switch.process.pid}/{name}")

    def _memory_mib(self) -> float:
        """Without EAL's, which it takes at the start and touches by and by."""
        return int(re.search(r"^RssAnon:\s+(\d+) kB$", self._proc("status").read_text(), re.MULTILINE)[1]) / 1024

    def _mbufs_in_use(self) -> float:
        found = {name: value for (name, _), value in self._site.metrics().items() if name in ("weir_mbufs", "weir_free_mbufs")}
        return found["weir_mbufs"] - found["weir_free_mbufs"]

    def _lines_for_a_job(self) -> float:
        """Since the last look."""
        lines, jobs = self._site.switch.log.read_bytes().count(b"\n"), self._count_jobs()
        new_lines, new_jobs = lines - self._lines, jobs - self._jobs
        self._lines, self._jobs = lines, jobs
        return new_lines / max(1, new_jobs)

    def _state_kib(self) -> float:
        return sum(file.stat().st_size for file in self._site.state.rglob("*") if file.is_file()) / 1024
