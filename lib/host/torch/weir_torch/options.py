# SPDX-License-Identifier: BSD-3-Clause
"""What a rank must know of its device and its ring, from the program or from the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional, Union

from .c_api import FALLBACKS, TRANSPORTS

TRANSPORT_NUMBERS = {name.removeprefix("WEIR_").lower(): number for name, number in TRANSPORTS.items()}
FALLBACK_NUMBERS = {name.removeprefix("WEIR_FALLBACK_").lower(): number for name, number in FALLBACKS.items()}
SWITCH_FILES = ("switch_certificate", "switch_key", "switch_authority")
TEXTS = ("device", "ip", "mac", "rendezvous", "switch", *SWITCH_FILES, "switch_name")
WORDS = {"transport": TRANSPORT_NUMBERS, "fallback": FALLBACK_NUMBERS}
PLACED = ("device", "ip", "mac")  # where % and a letter stand for a rank's number, as for MPI
PLACES = {"r": "RANK", "l": "LOCAL_RANK"}  # by letter, torchrun's variables
MOST = {"gid_index": 2**8 - 1}  # of numbers
MOST_USUALLY = 2**32 - 1
OFFERED = "offered"


@dataclass(frozen=True)
class Options:
    """None and "" leave the library's default. The environment variable of a field is WEIR_ and its name in capitals."""

    transport: str = "software"  # or "verbs"
    device: str = ""  # software: a network interface; verbs: an RDMA device
    ip: str = ""  # software: this rank's address, as in the switch's ring
    mac: str = ""
    gid_index: Optional[int] = None
    # Ids, as in the switch's configuration. None: 1, or whatever `switch` chooses. OFFERED: one for each of its workers.
    rings: Union[tuple[int, ...], str, None] = None
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
    # Texts, 4 at most: what all_reduce_by names. WEIR_OPERATORS: files, with commas between them; \, is a comma in a name.
    operators: tuple[str, ...] = ()
    rendezvous: str = ""  # ADDRESS:0 or ADDRESS:PORT where rank 0 listens; "": all its addresses, any free port

    def __post_init__(self) -> None:
        for name, allowed in WORDS.items():
            if getattr(self, name) not in allowed:
                raise refusal(name, getattr(self, name), ", ".join(allowed))
        if self.rings == () or isinstance(self.rings, str) and self.rings != OFFERED:
            raise ValueError(f"weir_torch: rings: found {self.rings!r}; allowed: one id or more, or {OFFERED!r}")

    @property
    def named_rings(self) -> tuple[int, ...]:
        """Ids that are known before the group is formed."""
        if self.rings is None or self.rings == OFFERED:
            return () if self.switch else (1,)
        return self.rings

    @classmethod
    def from_environment(cls) -> Options:
        """An empty variable is as none, as for Weir's other guests (lib/host/variables has all their variables)."""
        given = {field.name: os.environ.get(variable_of(field.name)) for field in fields(cls)}
        return cls(**{name: value_of(name, text) for name, text in given.items() if text})


def variable_of(name: str) -> str:
    return f"WEIR_{name.upper()}"


def refusal(called: str, found: str, allowed: str) -> ValueError:
    """In the words of Weir's other guests."""
    return ValueError(f"weir_torch: {called}: found '{found}'; allowed: {allowed}")


def value_of(name: str, text: str) -> Any:
    """Of a variable's text."""
    if name in PLACED:
        return placed(name, text)
    if name in TEXTS:
        return text
    if name in WORDS and text not in WORDS[name]:
        raise refusal(variable_of(name), text, ", ".join(WORDS[name]))
    if name in WORDS:
        return text
    if name == "operators":
        return tuple(map(text_of, filter(None, files_in(text))))
    return rings_in(name, text) if name == "rings" else number_in(name, text)


def placed(name: str, text: str) -> str:
    def number(found: re.Match[str]) -> str:
        letter = found[1]
        if letter == "%":
            return "%"
        if letter not in PLACES:
            raise refusal(variable_of(name), text, "after a '%' one of 'r', 'l' and '%'")
        if PLACES[letter] not in os.environ:
            raise refusal(variable_of(name), text, f"'%{letter}' where {PLACES[letter]} is set, as torchrun sets it")
        return os.environ[PLACES[letter]]
    return re.sub("%(.?)", number, text)


def files_in(text: str) -> list[str]:
    return [part.replace(r"\,", ",") for part in re.split(r"(?<!\\),", text)]


def text_of(file: str) -> str:
    try:
        return Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        allowed = r"texts' files, with commas between them, and \, for a comma in a name"
        raise ValueError(f"weir_torch: WEIR_OPERATORS: found '{file}', which cannot be read ({error}); allowed: {allowed}") from None


def number_in(name: str, text: str) -> int:
    most = MOST.get(name, MOST_USUALLY)
    if not is_number(text, most):
        raise refusal(variable_of(name), text, f"a number from 0 to {most}")
    return int(text)


def rings_in(name: str, text: str) -> Union[tuple[int, ...], str]:
    if text == OFFERED:
        return text
    parts = text.split(",")
    if not all(is_number(part, MOST_USUALLY) for part in parts):
        raise refusal(variable_of(name), text, f"numbers from 0 to {MOST_USUALLY}, with commas between them, or {OFFERED}")
    return tuple(map(int, parts))


def is_number(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= most
