# SPDX-License-Identifier: BSD-3-Clause
"""Links that lose frames in both directions, whoever sends them. The kernel's netem is not on every machine; nftables is."""

from __future__ import annotations

import json
from collections.abc import Callable

PARTS = 10_000  # a loss is so many of them
TABLE = "links"


class LossyLinks:
    """Each link joins two interfaces of one network namespace: what enters by one leaves by the other, if it is not lost.

    `run` runs a command in that namespace and returns what it prints."""

    def __init__(self, run: Callable[..., str], loss: float = 0.0) -> None:
        self._run, self._loss = run, loss
        self._ways: list[tuple[str, str]] = []
        self._nft(f"add table netdev {TABLE}")

    def join(self, one: str, other: str) -> None:
        for comes_in, goes_out in ((one, other), (other, one)):
            self._ways.append((comes_in, goes_out))
            self._nft(f"add chain netdev {TABLE} {comes_in} {{ type filter hook ingress device {comes_in} priority 0; }}",
                      *self._rules(comes_in, goes_out))

    def lose(self, loss: float) -> None:
        """Another share of frames from now on; lost() begins anew."""
        self._loss = loss
        for comes_in, goes_out in self._ways:
            self._nft(f"flush chain netdev {TABLE} {comes_in}", *self._rules(comes_in, goes_out))

    def lost(self) -> dict[str, int]:
        """Frames, by the interface by which they entered."""
        listed = json.loads(self._run("nft", "--json", "list", "table", "netdev", TABLE))["nftables"]
        return {entry["rule"]["chain"]: part["counter"]["packets"] for entry in listed
                for part in entry.get("rule", {}).get("expr", []) if "counter" in part}

    def remove(self) -> None:
        """The interfaces stay."""
        self._nft(f"delete table netdev {TABLE}")

    def _rules(self, comes_in: str, goes_out: str) -> tuple[str, str]:
        lost = round(self._loss * PARTS)
        return (f"add rule netdev {TABLE} {comes_in} numgen random mod {PARTS} < {lost} counter drop",
                f'add rule netdev {TABLE} {comes_in} fwd to "{goes_out}"')

    def _nft(self, *commands: str) -> None:
        self._run("nft", "; ".join(commands))
