# SPDX-License-Identifier: BSD-3-Clause
"""The computed values behind the pages: a line of JSON for each figure. If only a text of the table changes, the pages are
made from it without computing anything again."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from output import write_text
from verdicts import Computed


class Record:
    """Reads the file, and writes it after each added figure, so that an interrupted run loses only unfinished figures.
    Several threads may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        self.computed: dict[str, Computed] = {one["figure"]: one for one in map(json.loads, lines)}

    def add(self, computed: Computed) -> None:
        with self._lock:
            self.computed[computed["figure"]] = computed
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(self.computed[name], ensure_ascii=False) for name in sorted(self.computed)]
            write_text(self._path, "\n".join(lines) + "\n")
