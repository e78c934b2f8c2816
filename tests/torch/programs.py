# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are started as their users start them: what the page prints, torchrun with ranks that die, a rank that raises."""
from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from hosts import RANKS
from page_commands import first_sum
from test_held_rings import wait_for_rings
from test_worker import Process
from torch_ranks import TorchJob, installed
from weir import ROOT, expect

HERE = Path(__file__).resolve().parent
LONGEST_S = 80.0
NODES = 2
ENDPOINT = "127.0.0.1:7481"
RAISES, RAISED = 2, "ValueError: no data for step 5"  # of raising.py
COMMAND = re.compile(r"^\$ WEIR_DEVICE=eth1 torchrun (.*) train\.py$", re.MULTILINE)


def printed_command() -> list[str]:
    """torchrun's arguments on the page, with this place's numbers in them."""
    found = COMMAND.search((ROOT / "docs/pytorch.md").read_text())
    expect(found, "docs/pytorch.md has no line for torchrun")
    text = found[1].replace("--nnodes=4", f"--nnodes={NODES}").replace("HOST0:29400", ENDPOINT)
    expect(f"--nnodes={NODES}" in text and ENDPOINT in text, f"the page's line has no place for this: {text}")
    return shlex.split(text)


def torchrun_and_a_rank_that_dies(job: TorchJob, environment: dict[str, str]) -> None:
    """One agent for each node. A rank is killed: the agents start all ranks again, which form a group with a ring of its own."""
    job.give_addresses()
    agents = job.start_some(NODES, "-m", "torch.distributed.run", *printed_command(), HERE / "elastic.py", WEIR_IP="",
                            **environment)
    for agent in agents:
        status, output = agent.wait(LONGEST_S)
        expect(status == 0 and "elastic: exact" in output, f"agent {agent.number}: {status}, {output[-3000:]}")
    expect((Path(environment["TEMP_DIR"]) / "killed").exists(), "no rank was killed")


def the_first_sum_of_the_page(job: TorchJob, environment: dict[str, str]) -> None:
    """What docs/pytorch.md tells a newcomer to type, after the installations: a switch of its own, and four ranks by torchrun."""
    lab = job.lab
    script = first_sum("docs/pytorch.md", lab.directory / "page", {"torchrun ": f"{shlex.quote(str(job.python))} -m torch.distributed.run "})
    status, output = Process(lab, lab.namespace(), ["bash", "-eu", lab.file("first.sh", script)], **installed()).wait(LONGEST_S)
    # Ranks print at the same time, into one another's lines.
    said = re.sub(r"^\[W.*", "", output.split("\nrings\n")[0], flags=re.MULTILINE)
    told = [said.count(words) for words in ("10.0", "switch", "CallStatistics(calls=5, ", "gloo_calls=0)")]
    expect(status == 0 and told == 4 * [RANKS], f"{status}, {told}, {output}")
    header, row = re.search(r"^( *ring  ranks  .*)\n[ -]*\n(.*)$", output, re.MULTILINE).groups()
    ring = dict(zip(re.split(" {2,}", header.strip()), row.split(), strict=True))
    expect(ring["connected"] == str(RANKS) and int(ring["slots done"]) >= 5 * 4_000_000 // 1024, f"the switch shows {ring}")


def a_rank_that_raises(job: TorchJob, environment: dict[str, str]) -> None:
    """In the middle of a training: the others hear why, and train on in a new group. Nothing is left."""
    ranks = job.start(HERE / "raising.py", **environment)
    for rank in ranks:
        status, output = rank.wait(LONGEST_S)
        if rank.number == RAISES:
            expect(status == 1 and RAISED in output, f"{status}, {output[-3000:]}")
        else:
            heard = re.search(r"^raising: heard: (.*)$", output, re.MULTILINE)
            expect(status == 0 and heard and RAISED in heard[1] and f"rank {RAISES}" in heard[1] and "raising: exact" in output,
                   f"rank {rank.number}: {status}, {output[-3000:]}")
    expect(not left_of("raising.py"), f"processes are left: {left_of('raising.py')}")
    wait_for_rings(job.lab, 7)


def left_of(program: str) -> list[str]:
    """What runs it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{HERE}/{program}" in (command := (process / "cmdline").read_text()):
                found.append(f"{process.name}: {command}")
    return found


ALL: dict[str, Callable[[TorchJob, dict[str, str]], None]] = {
    "torchrun-and-a-rank-that-dies": torchrun_and_a_rank_that_dies,
    "a-rank-that-raises": a_rank_that_raises,
    "the-first-sum-of-the-page": the_first_sum_of_the_page,
}
