# SPDX-License-Identifier: BSD-3-Clause
"""One of four ranks that makes several trainings of docs/examples/train.py, because it costs seconds to import torch. Arguments:
those of each training, with "--then" between them. A training's last line is its report."""
from __future__ import annotations

import os
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/examples"))

import train  # noqa: E402

THEN = "--then"

for number, (is_border, arguments) in enumerate(groupby(sys.argv[1:], lambda word: word == THEN)):
    if not is_border:
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + number)  # no rank finds the store of the last one
        sys.argv[1:] = arguments
        train.main()
