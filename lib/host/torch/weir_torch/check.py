# SPDX-License-Identifier: BSD-3-Clause
"""Says what works on this machine and what is missing, with the options of the environment: python3 -m weir_torch.check

With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as a program has them, it meets the other ranks that run it, and makes a
small all-reduce. Status 0: nothing is missing.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import socket
import struct
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from .c_api import library, library_file
from .options import Options
from .process_group import ProcessGroupWeir

TIMEOUT = timedelta(seconds=60)
COUNT = 1000
HEADERS = 40 + 8 + 12 + 16 + 4 + 4  # IPv6, UDP, BTH, RETH, immediate, ICRC: the most there is within a frame
PATH_MTUS = (4096, 2048, 1024, 512, 256)
RDMA_DEVICES = Path("/sys/class/infiniband")
SIOCGIFFLAGS, SIOCGIFMTU, IFF_UP = 0x8913, 0x8921, 1
LOCKED_MIB = 64  # what queue pairs and their buffers take over verbs, with the usual windows


class Missing(Exception):
    """What is missing, and what would be right."""


def look_at_torch() -> str:
    return f"PyTorch {torch.__version__}, Python {platform.python_version()}"


def look_at_library() -> str:
    return f"{library_file()}, version {library.weir_version().decode()}"


def look_at_device() -> str:
    options = Options.from_environment()
    if not options.device:
        raise Missing("WEIR_DEVICE is not set: name the network interface, or over verbs the RDMA device")
    if options.transport == "verbs":
        return look_for("RDMA device", options.device, sorted(each.name for each in RDMA_DEVICES.glob("*")))
    words = look_for("network interface", options.device, sorted(name for _, name in socket.if_nameindex()))
    if not number_of(options.device, SIOCGIFFLAGS) & IFF_UP:
        raise Missing(f"{words} is down: ip link set {options.device} up")
    return f"{words}, up"


def look_for(kind: str, name: str, there: list[str]) -> str:
    if name not in there:
        raise Missing(f"there is no {kind} {name}; there are: {', '.join(there) or 'none'}")
    return f"{kind} {name}"


def number_of(interface: str, request: int) -> int:
    """A short one, as netdevice(7) has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, request, struct.pack("16sI12x", interface.encode(), 0))
    return struct.unpack_from("16xH", answer)[0]


def look_at_mtu() -> str:
    options = Options.from_environment()
    if options.transport == "verbs":
        return "that of the RDMA device: ibv_devinfo says it"
    mtu = number_of(options.device, SIOCGIFMTU)
    wanted = options.path_mtu or PATH_MTUS[-1]
    most = next((size for size in PATH_MTUS if size + HEADERS <= mtu), 0)
    if most < wanted:
        raise Missing(f"frames of {mtu} bytes have no room for a path MTU of {wanted}")
    return f"frames of {mtu} bytes: rings with a path MTU of up to {most}"


def look_at_memlock() -> str:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    words = "no limit" if limit == resource.RLIM_INFINITY else f"{limit >> 10} KiB"
    if Options.from_environment().transport != "verbs":
        return f"{words}; the software transport locks nothing"
    if limit != resource.RLIM_INFINITY and limit < LOCKED_MIB << 20:
        raise Missing(f"{words} of memory may be locked, and verbs need more: ulimit -l unlimited")
    return words


def look_at_rings() -> str:
    options = Options.from_environment()
    if not options.switch:
        return f"{', '.join(map(str, options.named_rings))}, as the switch's configuration has them"
    path = options.switch.removeprefix("unix:")
    if path != options.switch and not Path(path).is_socket():
        raise Missing(f"WEIR_SWITCH names {path}, and no switch listens there")
    return f"made by the switch at {options.switch}"


def all_reduce() -> str:
    if lacking := [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]:
        return f"not tried, without {', '.join(lacking)}: start this on every rank as you start your program"
    dist.init_process_group("weir", timeout=TIMEOUT)
    try:
        group = dist.distributed_c10d._get_default_group()
        summed = reduce_in(group)
        return f"{summed}\n{line('operators', operators_of(group))}" if group.operators else summed
    finally:
        dist.destroy_process_group()


def operators_of(group: ProcessGroupWeir) -> str:
    """Which of them the switch folds, and which the hosts."""
    if group.algorithm != "switch":
        return f"{', '.join(group.operators)}: folded by the hosts, as all calls are"
    lacking = group.missing_operators
    folded = [name for number, name in enumerate(group.operators) if f"operator {number} ({name}," not in lacking]
    return "; ".join(filter(None, (f"{', '.join(folded)}: folded by the switch" if folded else "", lacking)))


def reduce_in(group: ProcessGroupWeir) -> str:
    ranks = group.size()
    dist.barrier()
    started = time.monotonic()
    total = torch.full((COUNT,), group.rank() + 1)
    dist.all_reduce(total)
    took_ms = 1000 * (time.monotonic() - started)
    due = ranks * (ranks + 1) // 2
    if not torch.equal(total, torch.full((COUNT,), due)):
        raise Missing(f"the sum of {ranks} ranks is {total[0].item()}, and should be {due}")
    return f"{COUNT} numbers of {ranks} ranks, by way of {group.algorithm}: exact, in {took_ms:.1f} ms"


STEPS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("PyTorch", look_at_torch), ("library", look_at_library), ("device", look_at_device), ("MTU", look_at_mtu),
    ("memlock", look_at_memlock), ("rings", look_at_rings), ("all-reduce", all_reduce))


def line(name: str, words: str) -> str:
    return f"{name:10} {words}"


def main() -> int:
    """It goes no further than what is missing, for the rest needs it."""
    for name, look in STEPS:
        try:
            print(line(name, look()), flush=True)
        except (Missing, ImportError, OSError, RuntimeError, ValueError) as error:
            print(line(name, f"MISSING: {error}"), flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
