# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests, unchanged, as ranks of a job make them."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lab import Lab
from mpi_jobs import OPEN_MPI, Mpi, MpiFabric
from torch_ranks import PYTHON
from weir import BUILD, Skipped, expect

SOURCES = BUILD / "mpi4py"  # tools/prepare
FOR_MPICH = SOURCES / "mpich"  # tests/mpi4py.py; Debian's own is for Open MPI
EVERY_CALL = {"WEIR_THRESHOLD": "1"}
SPAWN = "spawn"  # what MPI_Comm_spawn starts is MPI's


class Verdicts:
    """Of each rank's tests, by name."""

    def __init__(self, outputs: Sequence[str]) -> None:
        self.ranks = [dict(re.findall(r"^(test\w+ \(\S+\)) \.\.\. (?:.*\n)??.*?\b(ok|FAIL|ERROR|skipped)\b", output, re.MULTILINE))
                      for output in outputs]

    def made(self) -> set[str]:
        return {name for rank in self.ranks for name in rank}

    def passed(self) -> set[str]:
        """On all ranks."""
        return set.intersection(*({name for name, verdict in rank.items() if verdict == "ok"} for rank in self.ranks))


def need_sources() -> None:
    missing = BUILD / "mpi4py.missing"
    if not SOURCES.exists():
        raise Skipped(missing.read_text().strip() if missing.exists() else f"there is no {SOURCES}; tools/prepare test makes it")


def make_tests(lab: Lab, fabric: MpiFabric, mpi: Mpi, ranks: int, words: Sequence[str], variables: dict[str, str], seconds: float) -> tuple[Verdicts, int, str]:
    """What each rank's tests said, the launcher's status, and what rank 0 printed."""
    where = [] if mpi == OPEN_MPI else [f"--path={FOR_MPICH}"]
    folder = lab.directory / f"mpi4py-{len(list(lab.directory.iterdir()))}"
    folder.mkdir()
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    command = ["sh", "-c", f'exec "$@" >"{folder}/{rank}" 2>&1', "rank", PYTHON, SOURCES / "test/runtests.py", "--no-builddir", "--verbose", *where,
               f"--exclude={SPAWN}", *words]
    status, said = fabric.start_plainly(mpi, command, variables, ranks).wait(seconds)
    outputs = [Path(folder / str(number)).read_text(errors="replace") for number in range(ranks)]
    told = said + "".join(output[-2000:] for output in outputs)
    counts = [re.findall(r"^Ran (\d+) tests in ", output, re.MULTILINE) for output in outputs]
    verdicts = Verdicts(outputs)
    read = [[str(len(rank))] for rank in verdicts.ranks]
    expect(counts == read, f"status {status}: the ranks made {counts} tests, and {read} verdicts were read: {told}")
    return verdicts, status, outputs[0]
