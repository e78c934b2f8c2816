# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Open MPI whose ranks have a host each: mpirun on the first one starts the others, as it would by ssh."""
from __future__ import annotations

import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import Lab
from netns import KILLED_WITH_US, Namespace
from weir import Failed, expect

NETWORK = "10.77.0.0/24"  # rank r has .r+1 there
# In the place of ssh. Open MPI's daemons have folders by the names of their hosts.
AGENT = """\
#!/bin/sh
case "$1" in
{places}esac
shift
mkdir -p "{folder}/host$number"
exec nsenter --net="$place" unshare --uts sh -c "hostname host$number; export TMPDIR='{folder}/host$number'; $*"
"""
# Nothing but TCP over the cables. A rank that waits lets others compute, for there are fewer processors than ranks.
OPTIONS = ("--allow-run-as-root", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca",
           "btl_tcp_if_include", NETWORK, "--mca", "oob_tcp_if_include", NETWORK, "--mca", "mpi_yield_when_idle", "1", "--mca",
           "mpi_preconnect_mpi", "1")


def run_by_mpi(lab: Lab, hosts: Sequence[Namespace], command: Sequence[str | Path], variables: dict[str, str], seconds: float) -> str:
    """What the ranks say."""
    places = "".join(f"10.77.0.{rank + 1}) number={rank} place={host.path} ;;\n" for rank, host in enumerate(hosts))
    agent = lab.file("agent", AGENT.format(places=places, folder=lab.directory))
    agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
    words = [*KILLED_WITH_US, "mpirun.openmpi", *OPTIONS, "--mca", "plm_rsh_agent", agent, "-n", len(hosts),
             "-H", ",".join(f"10.77.0.{rank + 1}" for rank in range(len(hosts))),
             *(word for name, value in variables.items() for word in ("-x", f"{name}={value}")), *command]
    with hosts[0].entered():
        process = subprocess.Popen(list(map(str, words)), text=True, errors="replace", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lab.on_end(process.kill)
    try:
        output = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        raise Failed(f"mpirun does not end within {seconds} s") from None
    expect(process.returncode == 0, f"mpirun: status {process.returncode}: {output[-3000:]}")
    return output
