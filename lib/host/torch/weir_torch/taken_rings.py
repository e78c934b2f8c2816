# SPDX-License-Identifier: BSD-3-Clause
"""Which rings the groups of this process have. In the switch, a group that says hello to a ring ends the one before it."""

from __future__ import annotations

import threading

from .options import Options


class TakenRings:
    _lock = threading.Lock()
    _taken: set[tuple[str, int]] = set()  # device and id: devices may lead to different switches

    def __init__(self, options: Options) -> None:
        wanted = {(options.device, ring) for ring in options.named_rings}
        with self._lock:
            if both := sorted(ring for _, ring in wanted & self._taken):
                raise RuntimeError(f"weir_torch: rings: found {', '.join(map(str, both))} of {options.device}, which another "
                                   "group of this process has; allowed: rings of its own, by pg_options, or another backend")
            self._taken |= wanted
        self._wanted = wanted

    def give_back(self) -> None:
        with self._lock:
            self._taken -= self._wanted
            self._wanted = set()
