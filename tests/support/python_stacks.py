# SPDX-License-Identifier: BSD-3-Clause
"""Where a Python program stood, by what its faulthandler has printed."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

HEAD = "(most recent call first):"
FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$')
CAUSE = re.compile(r"^(?:Fatal Python error: .+|Timeout \(.+\)!)$")
MOST_CALLS = 10  # told of a thread


def stacks_in(lines: Sequence[str]) -> list[list[str]]:
    """Of each thread the calls that it was in, innermost first: "wait (threading.py:320)"."""
    stacks: list[list[str]] = []
    for line in lines:
        if line.endswith(HEAD):
            stacks.append([])
        elif stacks and (frame := FRAME.match(line)):
            stacks[-1].append(f"{frame[3]} ({PurePath(frame[1]).name}:{frame[2]})")
    return stacks


def standing(lines: Sequence[str]) -> str:
    """Why the stacks were printed, and where the main thread was: "Timeout (0:01:00)!, in wait (threading.py:320) < main (job.py:7)"."""
    causes = [line for line in lines if CAUSE.match(line)]
    stacks = [stack for stack in stacks_in(lines) if stack]
    if not stacks:
        return "printed no stack"
    main = stacks[-1]  # the newest thread is the first
    return ", in ".join([*causes[:1], " < ".join(main[:MOST_CALLS])])
