#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends RoCE frames of capture files through an interface, as they are: stranger.py INTERFACE FILE…

The first ones and the last ones of each file; it prints how many. It sends a few at a time, so that who receives them
misses none.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

from capture import is_rocev2, read_frames

EACH = 200  # of a file's beginning, and of its end
AT_ONCE = 50
PAUSE_S = 0.02


def first_and_last(file: Path) -> list[bytes]:
    frames = [frame for frame in read_frames(file) if is_rocev2(frame)]
    return frames if len(frames) <= 2 * EACH else frames[:EACH] + frames[-EACH:]


def main() -> int:
    frames = [frame for file in sys.argv[2:] for frame in first_and_last(Path(file))]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
        port.bind((sys.argv[1], 0))
        for number, frame in enumerate(frames):
            port.send(frame)
            if number % AT_ONCE == 0:
                time.sleep(PAUSE_S)
    print(len(frames))
    return 0


if __name__ == "__main__":
    sys.exit(main())
