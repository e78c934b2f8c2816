# SPDX-License-Identifier: BSD-3-Clause
"""An interrupted run leaves no process, namespace, interface or file behind."""
from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from hosts import ring_of_hosts
from lab import Lab, smoke_test
from weir import Failed, configuration, expect, wait_for

RUN = Path(__file__).resolve().parent / "run.py"
VICTIM = "hang"


@smoke_test(VICTIM, hidden=True)
def hang(lab: Lab) -> None:
    """Prints what it has made, and waits."""
    fabric, _ = ring_of_hosts(lab)
    taps = configuration(['name: weir0, device: "net_tap0,iface=weir0"'])
    switch = lab.ready_weir(fabric, taps)
    print(f"hanging: namespace {fabric.inode} process {switch.process.pid} directory {lab.directory}", flush=True)
    time.sleep(60)


def holders_of(inode: int) -> list[str]:
    """Processes that are in a network namespace or have a descriptor of it."""
    links = (link for process in Path("/proc").glob("[0-9]*")
             for link in (process / "ns/net", *_descriptors(process)))
    found = []
    for link in links:
        with contextlib.suppress(OSError):
            if os.readlink(link) == f"net:[{inode}]":
                found.append(str(link))
    return found


def _descriptors(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:  # it has ended
        return []


def interrupt(number: signal.Signals) -> None:
    before = socket.if_nameindex()
    victim = subprocess.Popen([sys.executable, RUN, VICTIM], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, start_new_session=True)
    assert victim.stdout is not None
    try:
        line = victim.stdout.readline()
        made = re.match(r"hanging: namespace (\d+) process (\d+) directory (\S+)", line)
        if made is None:
            raise Failed(f"the victim did not come up: {line}{victim.stdout.read()}")
        inode, process, directory = int(made[1]), Path("/proc", made[2]), Path(made[3])
        expect(holders_of(inode) and process.exists() and directory.exists(), "nothing to be left behind")
        victim.send_signal(number)
        output = victim.communicate(timeout=20)[0]
    finally:
        victim.kill()
        victim.communicate()
    wait_for(lambda: not process.exists(), 10, f"{number.name}: process {made[2]} is left behind")
    wait_for(lambda: not holders_of(inode), 10, f"{number.name}: the namespace is left behind: {holders_of(inode)}")
    expect(socket.if_nameindex() == before, f"{number.name}: interfaces are left behind: {socket.if_nameindex()}")
    if number is signal.SIGKILL:  # nothing could remove the directory; only its text may be left
        subprocess.run(["rm", "-r", directory], check=True)
        return
    expect(not directory.exists(), f"{number.name}: {directory} is left behind")
    expect(victim.returncode == 1 and output.endswith("smoke: 0 passed, 1 failed, 0 skipped\n"), f"{output}")


@smoke_test("interrupted-run", is_alone=True)
def interrupted_run(lab: Lab) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        interrupt(number)
