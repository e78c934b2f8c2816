# SPDX-License-Identifier: BSD-3-Clause
"""Questions on DPDK's telemetry socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path


def ask(path: Path, command: str) -> str:
    """The answer of the socket at `path` to `command` ("/weir/drops", "/weir/ring,1"): JSON. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        limit = int(json.loads(connection.recv(4096))["max_output_len"])
        connection.send(command.encode())
        return connection.recv(max(limit, 4096) + 1024).decode()
