# SPDX-License-Identifier: BSD-3-Clause
"""Cables that lose frames, in both directions, whoever sends them: for programs that cannot lose their own."""
from __future__ import annotations

import sys

from netns import Namespace, run, veth
from weir import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
from lossy_links import LossyLinks  # noqa: E402

BURST, WAITING = "16kb", "4mb"  # of a cable with a rate: what passes at once, and what waits at most


class LossyCables:
    """Each cable is two links that end in a namespace between, where what is not lost passes, with `rate` ("100mbit") if one is
    given: then what is too fast waits there."""

    def __init__(self, between: Namespace, loss: float, rate: str = "") -> None:
        def run_between(*command: str) -> str:
            with between.entered():
                return run(*command)
        self._between, self._count, self._rate = between, 0, rate
        self._links = LossyLinks(run_between, loss)

    def connect(self, switch: Namespace, port: str, host: Namespace, name: str) -> None:
        near, far = f"near{self._count}", f"far{self._count}"
        self._count += 1
        veth(switch, port, self._between, near)
        veth(self._between, far, host, name)
        self._links.join(near, far)
        for end in (near, far) if self._rate else ():
            with self._between.entered():
                run("tc", "qdisc", "add", "dev", end, "root", "tbf", "rate", self._rate, "burst", BURST, "limit", WAITING)

    def lost(self) -> int:
        """Frames, of all cables."""
        return sum(self._links.lost().values())
