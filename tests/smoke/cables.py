# SPDX-License-Identifier: BSD-3-Clause
"""Cables that lose frames, in both directions, whoever sends them: for programs that cannot lose their own."""
from __future__ import annotations

import json

from netns import Namespace, run, veth

PARTS = 10_000  # a loss is so many of them
TABLE = "cables"


class LossyCables:
    """Each cable is two links that end in a namespace between; nftables forwards there what it does not drop."""

    def __init__(self, between: Namespace, loss: float) -> None:
        self._between, self._lost_parts, self._count = between, round(loss * PARTS), 0
        self._nft(f"add table netdev {TABLE}")

    def connect(self, switch: Namespace, port: str, host: Namespace, name: str) -> None:
        near, far = f"near{self._count}", f"far{self._count}"
        self._count += 1
        veth(switch, port, self._between, near)
        veth(self._between, far, host, name)
        for comes_in, goes_out in ((near, far), (far, near)):
            self._nft(f"add chain netdev {TABLE} {comes_in} {{ type filter hook ingress device {comes_in} priority 0; }}",
                      f"add rule netdev {TABLE} {comes_in} numgen random mod {PARTS} < {self._lost_parts} counter drop",
                      f'add rule netdev {TABLE} {comes_in} fwd to "{goes_out}"')

    def lost(self) -> int:
        """Frames, of all cables."""
        with self._between.entered():
            listed = json.loads(run("nft", "--json", "list", "table", "netdev", TABLE))["nftables"]
        return sum(part["counter"]["packets"] for entry in listed for part in entry.get("rule", {}).get("expr", [])
                   if "counter" in part)

    def _nft(self, *commands: str) -> None:
        with self._between.entered():
            run("nft", "; ".join(commands))
