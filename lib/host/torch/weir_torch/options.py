# SPDX-License-Identifier: BSD-3-Clause
"""What a rank must know of its device and its ring, from the program or from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional

from .c_api import FALLBACKS, TRANSPORTS

TRANSPORT_NUMBERS = {name.removeprefix("WEIR_").lower(): number for name, number in TRANSPORTS.items()}
FALLBACK_NUMBERS = {name.removeprefix("WEIR_FALLBACK_").lower(): number for name, number in FALLBACKS.items()}
SWITCH_FILES = ("switch_certificate", "switch_key", "switch_authority")
TEXTS = ("transport", "device", "ip", "mac", "fallback", "rendezvous", "switch", *SWITCH_FILES, "switch_name")


@dataclass(frozen=True)
class Options:
    """None and "" leave the library's default. The environment variable of a field is WEIR_ and its name in capitals."""

    transport: str = "software"  # or "verbs"
    device: str = ""  # software: a network interface; verbs: an RDMA device
    ip: str = ""  # software: this rank's address, as in the switch's ring
    mac: str = ""
    gid_index: Optional[int] = None
    # Ids, as in the switch's configuration. None: 1, or whatever `switch` chooses.
    rings: Optional[tuple[int, ...]] = None
    switch: str = ""  # the control service of the switch that makes the rings: unix:/PATH or HOST:PORT; "": none does
    switch_certificate: str = ""  # PEM files, for HOST:PORT
    switch_key: str = ""
    switch_authority: str = ""  # who signed the switch's certificate
    switch_name: str = ""  # in its certificate, if it is not HOST
    # The next three as in the switch's configuration; a ring that it makes has these.
    window: Optional[int] = None
    message_bytes: Optional[int] = None
    path_mtu: Optional[int] = None
    ack_timeout_ms: Optional[int] = None
    fallback: str = "none"  # or "ring"
    # Texts, 4 at most: what all_reduce_by names. WEIR_OPERATORS: files, with commas between them.
    operators: tuple[str, ...] = ()
    rendezvous: str = ""  # ADDRESS:0 or ADDRESS:PORT where rank 0 listens; "": all its addresses, any free port

    def __post_init__(self) -> None:
        for name, allowed in (("transport", TRANSPORT_NUMBERS), ("fallback", FALLBACK_NUMBERS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"weir_torch: {name}: found {getattr(self, name)!r}; allowed: {', '.join(allowed)}")
        if self.rings == ():
            raise ValueError("weir_torch: rings: found none; allowed: one id or more")

    @property
    def named_rings(self) -> tuple[int, ...]:
        """Ids that are known before the group is formed."""
        if self.rings is None:
            return () if self.switch else (1,)
        return self.rings

    @classmethod
    def from_environment(cls) -> Options:
        given = {field.name: os.environ[variable_of(field.name)] for field in fields(cls)
                 if variable_of(field.name) in os.environ}
        return cls(**{name: value_of(name, text) for name, text in given.items()})


def variable_of(name: str) -> str:
    return f"WEIR_{name.upper()}"


def value_of(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    if name == "operators":
        return tuple(Path(file).read_text() for file in text.split(",") if file)
    try:
        return tuple(int(part) for part in text.split(",")) if name == "rings" else int(text)
    except ValueError:
        allowed = "numbers with commas between them" if name == "rings" else "a number"
        raise ValueError(f"weir_torch: {variable_of(name)}: found {text!r}; allowed: {allowed}") from None
