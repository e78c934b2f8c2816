# SPDX-License-Identifier: BSD-3-Clause
"""What a run reports about its machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
USED_FLAGS = re.compile(r"^(sse4_2|avx2|f16c|avx512\w+|pclmulqdq|vpclmulqdq)$")
OPTIONS = ("buildtype", "optimization", "b_ndebug", "b_lto", "cpp_args")


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def fields_of(path: str) -> dict[str, str]:
    """The first "name: value" of each name."""
    fields: dict[str, str] = {}
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields


def build_options(build: Path) -> dict[str, Any]:
    options = json.loads(output_of("meson", "introspect", "--buildoptions", str(build)))
    return {option["name"]: option["value"] for option in options if option["name"] in OPTIONS}


def last_level_cache() -> str:
    """Of one core, as the kernel says: getconf counts all of a processor on some AMD CPUs."""
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return size.read_text().strip() if size.exists() else "unknown"


def describe(build: Path) -> dict[str, Any]:
    cpu, memory = fields_of("/proc/cpuinfo"), fields_of("/proc/meminfo")
    return {
        "cpu": cpu.get("model name", "unknown"),
        "cores": os.cpu_count(),
        "cores this process may use": len(os.sched_getaffinity(0)),
        "flags used": [flag for flag in cpu.get("flags", "").split() if USED_FLAGS.match(flag)],
        "last-level cache": last_level_cache(),
        "hypervisor": "yes" if "hypervisor" in cpu.get("flags", "").split() else "no",
        "memory": memory["MemTotal"],
        "huge pages": f"{memory.get('HugePages_Total', '0')} of {memory.get('Hugepagesize', 'unknown')}",
        "kernel": os.uname().release,
        "compiler": output_of("c++", "--version").split("\n")[0],
        "build": build_options(build),
        "DPDK": output_of("pkg-config", "--modversion", "libdpdk"),
        "commit": output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"),
        "load average at start": os.getloadavg(),
    }
