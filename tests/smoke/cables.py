# SPDX-License-Identifier: BSD-3-Clause
"""Cables that lose frames, in both directions, whoever sends them: for programs that cannot lose their own."""
from __future__ import annotations

import sys

from netns import Namespace, run, veth
from weir import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
from lossy_links import LossyLinks  # noqa: E402


class LossyCables:
    """Each cable is two links that end in a namespace between, where what is not lost passes."""

    def __init__(self, between: Namespace, loss: float) -> None:
        def run_between(*command: str) -> str:
            with between.entered():
                return run(*command)
        self._between, self._count = between, 0
        self._links = LossyLinks(run_between, loss)

    def connect(self, switch: Namespace, port: str, host: Namespace, name: str) -> None:
        near, far = f"near{self._count}", f"far{self._count}"
        self._count += 1
        veth(switch, port, self._between, near)
        veth(self._between, far, host, name)
        self._links.join(near, far)

    def lost(self) -> int:
        """Frames, of all cables."""
        return sum(self._links.lost().values())
