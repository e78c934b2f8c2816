# SPDX-License-Identifier: BSD-3-Clause
"""What a build directory compiles, and with which options."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

# What the compiler notes for the build.
NOTES = ("-MD", "-c")
NOTES_IN_A_FILE = ("-o", "-MQ", "-MF")


@dataclass(frozen=True)
class Compilation:
    """Of one object. The file's own name and what the compiler writes are none of the options."""

    folder: Path
    file: Path
    output: Path  # below the folder
    compiler: str
    options: tuple[str, ...]


def compilations_in(build: Path) -> list[Compilation]:
    return [compilation_of(entry) for entry in json.loads((build / "compile_commands.json").read_text())]


def compilation_of(entry: dict[str, str]) -> Compilation:
    words = [word for word in shlex.split(entry["command"]) if word != "ccache"]
    kept = tuple(word for before, word in zip(words, words[1:])
                 if word not in (*NOTES, *NOTES_IN_A_FILE, entry["file"]) and before not in NOTES_IN_A_FILE)
    folder = Path(entry["directory"])
    return Compilation(folder, (folder / entry["file"]).resolve(), Path(entry["output"]), words[0], kept)
