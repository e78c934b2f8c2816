# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are started as their users start them: by torchrun, with ranks that die."""
from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from torch_ranks import TorchJob
from weir import ROOT, expect

HERE = Path(__file__).resolve().parent
LONGEST_S = 80.0
NODES = 2
ENDPOINT = "127.0.0.1:7481"
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


ALL: dict[str, Callable[[TorchJob, dict[str, str]], None]] = {
    "torchrun-and-a-rank-that-dies": torchrun_and_a_rank_that_dies,
}
