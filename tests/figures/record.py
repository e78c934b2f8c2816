# SPDX-License-Identifier: BSD-3-Clause
"""What the programs computed when the pages were made, a line of JSON a figure. From it the pages can be made anew when a
text of the table changes, and figures that take minutes need not be computed for the sake of others."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from verdicts import Computed


class Record:
    """Reads what is there; every figure that is added is written at once, so that an interrupted run loses only what was
    under way. Safe from several threads."""

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
            self._path.write_text("\n".join(lines) + "\n")
