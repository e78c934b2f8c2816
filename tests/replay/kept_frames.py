# SPDX-License-Identifier: BSD-3-Clause
"""What came to each switch of a tree, kept between programs. A network of models takes up to a second for a job, and four stages
send the same frames. Who checks the models (expect.py) keeps nothing, and asks them."""
from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roce import Stamped, read_stamped, stamped_pcap_bytes
from tree_jobs import TreeCase

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MADE_BY = HERE, ROOT / "tests" / "operators", ROOT / "config" / "operators"  # what all frames depend on
KEPT = ROOT / "build" / "captures-of-trees"


@cache
def sources_digest() -> str:
    files = sorted(file for folder in MADE_BY for file in folder.iterdir() if file.suffix in (".py", ".weir"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def folder() -> Path:
    """Of what the present sources make; others' is removed."""
    for other in KEPT.glob("*"):
        if other.name != sources_digest():
            shutil.rmtree(other, ignore_errors=True)
    (KEPT / sources_digest()).mkdir(parents=True, exist_ok=True)
    return KEPT / sources_digest()


@dataclass(frozen=True)
class KeptCase(TreeCase):
    """Its frames are made where none are kept yet."""

    def frames(self) -> list[Stamped]:
        kept = folder() / f"{self.name}.pcap"
        if kept.exists():
            return read_stamped(kept)
        made = super().frames()
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as whole:
            whole.write(stamped_pcap_bytes(made))
        os.replace(whole.name, kept)  # another process may make the same
        return made


def with_kept_frames(case: TreeCase) -> KeptCase:
    return KeptCase(case.name, case.job, case.place)
