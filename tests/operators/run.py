#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judges the shipped operators by numpy, on all CPU levels, and what weir-operator says of wrong texts.

`run.py [BUILD_DIR]`. Ends in "operators: N passed, N failed, 0 skipped"."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import verdicts
from digests import digest_of
from judges import JUDGES
from mistakes import MISTAKES, RULES
from rules import broken

ROOT = Path(__file__).resolve().parent.parent.parent
LEVELS = ("baseline", "avx2", "avx512", "avx512vbmi")
PACKETS = (984, 1024, 4096)  # a FIRST's bytes, full ones, and one of several tiles
RANKS = 5


class Programs:
    def __init__(self, build: Path, folder: Path) -> None:
        self.tool = build / "app" / "weir-operator"
        self.folder = folder

    def call(self, *words: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self.tool, *map(str, words)], capture_output=True, check=False)

    def fold(self, text: Path, inputs: list[np.ndarray], level: str) -> np.ndarray:
        names = []
        for rank, data in enumerate(inputs):
            names.append(self.folder / f"rank{rank}")
            names[-1].write_bytes(data.tobytes())
        done = self.call("run", text, *names, "--cpu", level)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
        return np.frombuffer(done.stdout, np.uint8)

    def levels(self, text: Path) -> list[str]:
        return [level for level in LEVELS if self.call("price", text, "--cpu", level).returncode == 0]


def moderate(name: str, data: np.ndarray, dice: np.random.Generator) -> np.ndarray:
    """Random bytes with numbers near 1 in the place of most."""
    data = data.copy()
    if "mxfp" in name or "mxint" in name or "nvfp" in name:
        unit = {"mxfp8": 33, "mxint": 33, "mxfp6": 25, "mxfp4": 17, "nvfp4": 9}[name[:5]]
        count = len(data) // unit
        data[count * (unit - 1):count * unit] = dice.integers(118, 138, count) if unit != 9 else dice.integers(0, 127, count)
        return data
    if name == "clipped-i8-sum":
        data[:-8] = dice.integers(-30, 31, len(data) - 8).astype(np.int8).view(np.uint8)
        data[-8:] = 0
        return data
    if "f64" in name:
        data.view(np.float64)[::2] = dice.integers(-4, 5, (len(data) // 8 + 1) // 2)
    elif name == "f32-sum" or name == "complex-product":
        data.view(np.float32)[:] = dice.standard_normal(len(data) // 4).astype(np.float32)
    else:
        data.view(np.float32)[::2] = dice.integers(-4, 5, len(data) // 8)
        data.view(np.uint32)[1::2] = dice.integers(0, 3, len(data) // 8)
    return data


def differences(found: np.ndarray, due: np.ndarray) -> str:
    wrong = np.flatnonzero(found != due)
    return "" if len(wrong) == 0 else f"{len(wrong)} bytes differ, the first is {wrong[0]}: found {found[wrong[0]]:#x}, due {due[wrong[0]]:#x}"


def judge(programs: Programs, name: str) -> list[str]:
    text = ROOT / "config" / "operators" / f"{name}.weir"
    dice = np.random.default_rng(1)
    wrong = []
    levels = programs.levels(text)
    for packet in PACKETS:
        for kind in ("random bytes", "moderate"):
            inputs = [dice.integers(0, 256, packet).astype(np.uint8) for _ in range(RANKS)]
            if kind == "moderate":
                inputs = [moderate(name, data, dice) for data in inputs]
            with np.errstate(all="ignore"):
                due = JUDGES[name](inputs)
                alone = JUDGES[name](inputs[:1])
            for level in levels:
                found = programs.fold(text, inputs, level)
                wrong.append(f"{name}, {level}, {packet} bytes, {kind}: " + differences(found, due))
            found = programs.fold(text, inputs[:1], levels[-1])
            wrong.append(f"{name}, one rank, {packet} bytes, {kind}: " + differences(found, alone))
            wrong.append(f"{name}, finished twice, {packet} bytes, {kind}: " + differences(programs.fold(text, [found], levels[-1]), alone))
            said = programs.call("check", text).stdout.decode()
            if "never matters" in said:
                turned = programs.fold(text, inputs[::-1], levels[-1])
                wrong.append(f"{name}, ranks turned round: " + differences(turned, due))
    return [line for line in wrong if not line.endswith(": ")]


def refuse(programs: Programs, text: str, due: str) -> list[str]:
    file = programs.folder / "text.weir"
    file.write_text(text)
    done = programs.call("check", file)
    said = done.stderr.decode()
    is_right = done.returncode == 2 and re.search(due, said)
    return [] if is_right else [f"exit status {done.returncode}; found {said!r}; should match {due!r}"]


def digest(programs: Programs, text: str) -> str:
    file = programs.folder / "text.weir"
    file.write_text(text)
    found = re.search(r"digest: (\w{64})", programs.call("check", file).stdout.decode())
    return found[1] if found else "none"


def judge_digest(programs: Programs, name: str) -> list[str]:
    text = (ROOT / "config" / "operators" / f"{name}.weir").read_text()
    found, due = digest(programs, text), digest_of(name, text).hex()
    return [] if found == due else [f"found {found}, due {due}"]


def digests_differ(programs: Programs) -> list[str]:
    """Blanks and comments are no part of an operator; each other character is."""
    text = (ROOT / "config" / "operators" / "f32-sum.weir").read_text()
    one = digest(programs, text)
    wrong = []
    if digest(programs, text.replace("acc + v", "acc  +  v # a sum")) != one or one == "none":
        wrong.append("blanks and a comment change the digest")
    for edit in (("f32-sum\n", "f32-sun\n"), ("acc + v", "v + acc"), ("acc", "b")):
        if digest(programs, text.replace(*edit)) in (one, "none"):
            wrong.append(f"{edit} does not change the digest")
    return wrong


def main() -> int:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(build, Path(folder))
        shipped = {file.stem for file in (ROOT / "config" / "operators").glob("*.weir")}
        checks = [(f"{name}, by numpy", lambda name=name: judge(programs, name)) for name in JUDGES]
        checks += [(f"{name}, digest", lambda name=name: judge_digest(programs, name)) for name in JUDGES]
        for name in JUDGES:
            text = ROOT / "config" / "operators" / f"{name}.weir"
            checks += [(f"{name}, rules on {level}", lambda text=text, level=level: broken(text, lambda inputs: programs.fold(text, inputs, level)))
                       for level in ("baseline", programs.levels(text)[-1])]
        checks += [(what, lambda text=text, due=due: refuse(programs, text, due)) for what, text, due in (*MISTAKES, *RULES)]
        checks += [("digests", lambda: digests_differ(programs)),
                   ("each shipped operator has a judge", lambda: sorted(shipped ^ set(JUDGES)))]
        return verdicts.run("operators", checks)


if __name__ == "__main__":
    sys.exit(main())
