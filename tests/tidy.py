#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy (.clang-tidy says what for) over lib/ and app/, as many at once as there are cores.

All files are one test. Most of the time goes into headers, so libraries of one wing that are compiled alike are looked at in
one piece; if they do not go together, one by one, which takes several times as long and is told. What the build with clang leaves
out is looked at in two. The kernels are left out, because clang-tidy 14 cannot parse some of their GCC vector extensions.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from compile_commands import Compilation, compilations_in  # noqa: E402

BUILD = ROOT / "build-asan"
INCLUDED = re.compile(r"^#include ?<(.+\.cpp)>$", re.MULTILINE)
# What includes sources is made by meson.
CHECKS = "--checks=-bugprone-suspicious-include"
# DPDK's flags are among these: they do no harm to others of a piece.
PLACES = ("-I", "-isystem", "-D", "-include", "rte_config.h", "-march=corei7")
# What says nothing of a source's meaning.
MEANINGLESS = ("-O", "-fPIC", "-pthread", "-fsanitize", "-fno-sanitize")


@dataclass(frozen=True)
class Part:
    """What the build compiles in one piece."""
    file: Path
    sources: frozenset[Path]
    group: str  # of those that may be looked at together
    flags: tuple[str, ...]
    places: tuple[str, ...]  # where headers are, and macros


@dataclass(frozen=True)
class Piece:
    """What clang-tidy looks at in one go."""
    parts: tuple[Part, ...]

    def sources(self) -> frozenset[Path]:
        return frozenset().union(*(part.sources for part in self.parts))

    def bytes(self) -> int:
        return sum(source.stat().st_size for source in self.sources())


def is_ours(source: Path) -> bool:
    below = [source.is_relative_to(ROOT / folder) for folder in ("lib", "app")]
    is_kernel = source.parent == ROOT / "lib" / "core" / "op" and source.name.startswith("kernel_")
    return any(below) and not is_kernel


def sources_in(file: Path) -> frozenset[Path]:
    if not file.name.endswith("-unity0.cpp"):
        return frozenset([file])
    return frozenset((file.parent / name).resolve() for name in INCLUDED.findall(file.read_text()))


def part_of(compilation: Compilation) -> Part:
    output = compilation.output
    is_library = output.parent.name.endswith((".a.p", ".so.p"))
    places = tuple(option for option in compilation.options if option.startswith(PLACES))
    flags = tuple(option for option in compilation.options
                  if not option.startswith((*PLACES, *MEANINGLESS)))
    # A program has a main() of its own.
    group = str(Path(*output.parts[:2])) if is_library else str(output)
    return Part(compilation.file, sources_in(compilation.file), group, flags, places)


def built_parts(folders: tuple[str, ...]) -> list[Part]:
    return [part_of(compilation) for compilation in compilations_in(BUILD) if compilation.output.parts[0] in folders]


def together(parts: list[Part]) -> list[Piece]:
    groups: dict[tuple[str, tuple[str, ...]], list[Part]] = {}
    for part in parts:
        groups.setdefault((part.group, part.flags), []).append(part)
    return [Piece(tuple(group)) for group in groups.values()]


def stand_in_or_not(file: Path) -> str:
    """A stand-in for what this machine lacks has the names of what it stands for."""
    return "stand-ins" if file.stem.endswith("_absent") else "left"


def parts_left(seen: frozenset[Path], built: list[Part]) -> list[Part]:
    """What only a test compiles, as it does; what this build leaves out, as the others."""
    of_tests = {source: part for part in built_parts(("tests",)) for source in part.sources}
    all_places = tuple(dict.fromkeys(place for part in built for place in part.places))
    files = [file for folder in ("lib", "app") for file in (ROOT / folder).rglob("*.cpp") if is_ours(file) and file not in seen]
    found = []
    for file in files:
        known = of_tests.get(file)
        flags, places = (known.flags, known.places) if known else (built[0].flags, all_places)
        found.append(Part(file, frozenset([file]), stand_in_or_not(file), flags, places))
    return found


def pieces() -> list[Piece]:
    """The largest first, so that no core waits long for the last."""
    ours = [part for part in built_parts(("lib", "app")) if part.sources and all(map(is_ours, part.sources))]
    parts = list({part.sources: part for part in ours}.values())  # the modules for two MPIs have the same
    seen = frozenset().union(*(part.sources for part in parts))
    return sorted(together(parts) + together(parts_left(seen, parts)), key=Piece.bytes, reverse=True)


def answer_about(piece: Piece) -> subprocess.CompletedProcess[str]:
    """clang-tidy's. A file of the piece's own includes its parts."""
    places = dict.fromkeys(place for part in piece.parts for place in part.places)
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", prefix="tidy-", dir=BUILD) as whole:
        whole.write("".join(f'#include "{part.file}"\n' for part in piece.parts))
        whole.flush()
        return subprocess.run(["clang-tidy", "--quiet", CHECKS, whole.name, "--", *piece.parts[0].flags, *places], cwd=BUILD,
                              capture_output=True, text=True)


def complaints_about(piece: Piece) -> str:
    answer = answer_about(piece)
    if answer.returncode == 0:
        return ""
    if len(piece.parts) > 1:
        clash = next((line for line in answer.stdout.splitlines() if "clang-diagnostic-error" in line), "")
        if clash:  # two of them have something of one name
            print(f"tidy: {piece.parts[0].group} goes piece by piece, because it does not go together: {clash}")
        return "".join(complaints_about(Piece((part,))) for part in piece.parts)
    return "\n".join(line for line in answer.stdout.splitlines() if "error:" in line) or answer.stderr


def main() -> int:
    if not BUILD.is_dir():
        print(f"tidy: {BUILD.name} is not there; tools/test clang makes it")
        return 1
    found = pieces()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(complaints_about, found))
    for complaint in filter(None, complaints):
        print(complaint)
    print(f"tidy: {sum(len(piece.sources()) for piece in found)} files looked at in {len(found)} pieces, "
          f"{sum(map(bool, complaints))} with complaints")
    print("tidy: 0 passed, 1 failed, 0 skipped" if any(complaints) else "tidy: 1 passed, 0 failed, 0 skipped")
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
