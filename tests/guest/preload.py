# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that change what a worker's verbs do. Each is a C file of this folder."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from lab import Lab
from switch import Ring


def preloaded(lab: Lab, ring: Ring, name: str) -> str:
    """Builds NAME.c, copies it to all members of the ring, and returns what a command there needs before it."""
    library = build(name)
    for member in ring.guests:
        lab.guests[member].put(f"/tmp/{name}.so", library)
    return f"LD_PRELOAD=/tmp/{name}.so"


def build(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.so"
        source = Path(__file__).with_name(f"{name}.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-s", "-o", target, source, "-ldl"], check=True)
        return target.read_bytes()
