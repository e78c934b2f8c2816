#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy (.clang-tidy says what for) over lib/ and app/, as many at once as there are cores.

All files are one test. Most of the time goes into headers, so the sources that the build with clang compiles in one piece
are looked at in one piece, too; the others, which that build leaves out, one by one. The kernels are left out, because
clang-tidy 14 cannot parse some of their GCC vector extensions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-asan"
INCLUDED = re.compile(r"^#include ?<(.+\.cpp)>$", re.MULTILINE)
# What includes sources is made by meson.
CHECKS = "--checks=-bugprone-suspicious-include"


@dataclass(frozen=True)
class Piece:
    """What clang-tidy looks at in one go."""
    file: Path
    sources: frozenset[Path]

    def bytes(self) -> int:
        return sum(source.stat().st_size for source in self.sources)


def is_ours(source: Path) -> bool:
    below = [source.is_relative_to(ROOT / folder) for folder in ("lib", "app")]
    is_kernel = source.parent == ROOT / "lib" / "core" / "op" and source.name.startswith("kernel_")
    return any(below) and not is_kernel


def sources_in(file: Path) -> frozenset[Path]:
    if not file.name.endswith("-unity0.cpp"):
        return frozenset([file])
    return frozenset((file.parent / name).resolve() for name in INCLUDED.findall(file.read_text()))


def built_pieces() -> list[Piece]:
    """Each piece once, although some programs compile it again. A piece of a test's own may have sources of ours, too."""
    found: dict[frozenset[Path], Piece] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = (Path(entry["directory"]) / entry["file"]).resolve()
        sources = sources_in(file)
        if sources and all(map(is_ours, sources)):
            found.setdefault(sources, Piece(file, sources))
    return list(found.values())


def pieces() -> list[Piece]:
    """The largest first, so that no core waits long for the last."""
    built = built_pieces()
    seen = frozenset().union(*(piece.sources for piece in built))
    sources = (file for folder in ("lib", "app") for file in (ROOT / folder).rglob("*.cpp"))
    left = [Piece(file, frozenset([file])) for file in sources if is_ours(file) and file not in seen]
    return sorted(built + left, key=Piece.bytes, reverse=True)


def complaints_about(piece: Piece) -> str:
    answer = subprocess.run(["clang-tidy", "--quiet", CHECKS, "-p", str(BUILD), str(piece.file)], capture_output=True, text=True)
    return "" if answer.returncode == 0 else "\n".join(line for line in answer.stdout.splitlines() if "error:" in line) \
        or answer.stderr


def main() -> int:
    if not BUILD.is_dir():
        print(f"tidy: {BUILD.name} is not there; tools/test clang makes it")
        return 1
    found = pieces()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(complaints_about, found))
    for complaint in filter(None, complaints):
        print(complaint)
    print(f"tidy: {sum(len(piece.sources) for piece in found)} files looked at in {len(found)} pieces, "
          f"{sum(map(bool, complaints))} with complaints")
    print("tidy: 0 passed, 1 failed, 0 skipped" if any(complaints) else "tidy: 1 passed, 0 failed, 0 skipped")
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
