#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the fuzzers with clang, ASan and UBSan, seeds them from captures, packet tables and configurations, and runs
each for some time, as many at once as there are cores.

tests/fuzz/run.py [--seconds N] [NAME ...]; --seconds 0 runs one after the other until interrupted. A crash leaves
its input under build-fuzz/crashes/NAME/ and the command that replays it is printed. WEIR_BUILD names another build with
fuzzers. Ends in "fuzz: N passed, …".
"""

from __future__ import annotations

import argparse
import os
import shlex
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("WEIR_BUILD", "build-fuzz")
FUZZERS = ["classify", "config", "control", "endpoint", "parse", "program", "quantity", "rpc", "switch", "topology"]
OPTIONS = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dfuzzers=comparisons", "-Dbuildtype=debugoptimized"]
FRAMES_PER_SCRIPT = 40
GENERATORS = ["torus, rows: 3, columns: 4", "mesh, rows: 2, columns: 2", "fat-tree, leaves: 2, nodes_per_leaf: 3",
              "spine-leaf, leaves: 2, nodes_per_leaf: 2, spines: 2, uplink_rate: 2Gbit/s, uplink_latency: 3us",
              "bigraph, nodes_per_switch: 2, switches: 4", "dgx2", "star, nodes: 5"]

QUANTITIES = ["100Gbit/s", "12.5 GB/s", "9007199254740992bit/s", "1.5us", "60s", "0ns", "4096", "64KiB", "70368744177664",
              "32K", "host[0-15]", "n[7-7].x", "a"]

TREE = b"""ports: [{name: up0, device: d0}, {name: h0, device: d1}, {name: down7, device: d2}]
rings:
  - {id: 17, window: 8, max_message_bytes: 65536, mtu: 1024,
     members: [{ip: 10.0.0.1}, {ip: 10.0.0.2}, {ip: 10.0.0.3}, {ip: 10.0.0.4}, {ip: 10.0.0.5}],
     parent: {switch: spine0, port: up0},
     children: [{rank: 0, port: h0}, {rank: 1}, {switch: rack7, ranks: [2, 3], port: down7}]}
"""


def frames_of(capture: Path) -> list[bytes]:
    """The frames of a little-endian pcap file, micro- or nanosecond."""
    data = capture.read_bytes()
    frames, at = [], 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


def script_of(frames: list[bytes]) -> bytes:
    """What frame_script.hpp reads: flags and port, length, bytes."""
    return b"".join(struct.pack("<BH", (frame[11] - 1) & 3, len(frame)) + frame for frame in frames)


def table_scripts() -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="weir-seeds-") as folder:
        subprocess.run([str(BUILD / "tests/fuzz/table_seeds"), folder], check=True)
        return [file.read_bytes() for file in sorted(Path(folder).iterdir())]


def frames_in(script: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(script):
        length = struct.unpack_from("<H", script, at + 1)[0]
        frames.append(script[at + 3:at + 3 + length])
        at += 3 + length
    return frames


def seeds() -> dict[str, list[bytes]]:
    captures = sorted((ROOT / "tests/replay/captures").glob("*.pcap"))
    all_frames = {capture: frames_of(capture) for capture in captures}
    scripts = [script_of(frames[at:at + FRAMES_PER_SCRIPT])
               for frames in all_frames.values() for at in range(0, min(len(frames), 400), FRAMES_PER_SCRIPT)]
    tables = table_scripts()
    scripts += tables
    configurations = [file.read_bytes() for folder in ["config", "tests/replay/rings"]
                      for file in (ROOT / folder).glob("*.yaml")]
    configurations.append(TREE)
    topologies = [file.read_bytes() for file in (ROOT / "config/topologies").glob("*.yaml")]
    topologies += [f"generator: {{kind: {generator}, rate: 1Gbit/s, latency: 1us}}\n".encode() for generator in GENERATORS]
    frames = [frame for frames in all_frames.values() for frame in frames[:200:3]]
    frames += [frame for script in tables for frame in frames_in(script)[::3]]
    return {"control": control_frames(), "parse": frames, "classify": scripts, "switch": scripts, "endpoint": scripts, "config": configurations,
            "program": [file.read_bytes() for file in (ROOT / "config/operators").glob("*.weir")], "quantity": [text.encode() for text in QUANTITIES], "rpc": control_messages(), "topology": topologies}


def control_frames() -> list[bytes]:
    """One of each kind, with bodies of the lengths that docs/host.md and control_note.hpp have; and a join with a proof."""
    frames = [b"WCTL" + struct.pack(">BI", kind, length) + bytes(length)
              for kind in range(17) for length in (0, 1, 4, 8, 16, 22, 25, 48)]
    join = bytes(16) + struct.pack(">HHBB", 1, 2, 3, 32) + b"job" + bytes(32)
    return [*frames, b"".join(frames), b"WCTL" + struct.pack(">BI", 1, len(join)) + join]


def field(number: int, content: bytes | int) -> bytes:
    """Of a protobuf message: a number below 128 or at most 127 bytes."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def control_messages() -> list[bytes]:
    """Of proto/weir/v1/switch.proto; before each the number of its kind in rpc_fuzz.cpp."""
    words = b"".join(field(1, word) for word in (b"show", b"ring", b"7", b"json"))
    cells = field(1, field(1, 7)) + field(1, bytes([17]) + bytes(8)) + field(1, field(3, b"text"))
    columns = b"".join(field(2, field(1, key) + field(2, key)) for key in (b"a", b"b", b"c"))
    table = field(1, b"ports") + columns + field(3, cells) + field(3, cells) + field(4, b"a note")
    members = b"".join(field(7, field(1, ip) + field(2, b"p1")) for ip in (b"10.0.0.1", b"10.0.0.2", b"10.0.0.3"))
    ring = field(1, 9) + field(2, 4) + field(3, 64) + field(5, 60) + field(6, 2) + members
    return [b"\0" + words, b"\1" + field(1, b"show ri"), b"\2" + words + field(2, 100), b"\3" + ring,
            b"\4" + field(1, ring), b"\4" + field(1, ring[2:]) + field(2, 1), b"\5" + field(1, 9) + field(2, 10),
            b"\6" + field(1, table) * 2, b"\0" + field(1, b"x") * 17, b"\0" + field(1, b"")]


def write_corpus(name: str, inputs: list[bytes]) -> Path:
    folder = BUILD / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(inputs):
        (folder / f"seed-{number:04}").write_bytes(content)
    return folder


def build() -> None:
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), *OPTIONS], cwd=ROOT, check=True, env=os.environ | {"CXX": "clang++"},
                       stdout=subprocess.DEVNULL)
    targets = [*(f"tests/fuzz/{name}_fuzz" for name in FUZZERS), "tests/fuzz/table_seeds"]
    subprocess.run(["ninja", "-C", str(BUILD), "--quiet", *targets], check=True)


def run(name: str, corpus: Path, seconds: int) -> bool:
    crashes = BUILD / "crashes" / name
    crashes.mkdir(parents=True, exist_ok=True)
    command = [str(BUILD / f"tests/fuzz/{name}_fuzz"), str(corpus), f"-max_total_time={seconds}", "-timeout=120",
               "-rss_limit_mb=3000", "-max_len=65536" if name != "parse" else "-max_len=2048", "-print_final_stats=1",
               f"-artifact_prefix={crashes}/", "-verbosity=0" if seconds else "-verbosity=1"]
    print(f"fuzz {name}: {'until interrupted' if seconds == 0 else f'{seconds} s'}", flush=True)
    answer = subprocess.run(command, stderr=subprocess.PIPE if seconds else None, text=True, errors="replace")
    if answer.returncode == 0:
        executed = [line for line in (answer.stderr or "").splitlines() if "number_of_executed_units" in line]
        print(f"fuzz {name}: {executed[0].split()[-1] if executed else '?'} inputs, nothing found", flush=True)
        return True
    print("\n".join((answer.stderr or "").splitlines()[-40:]))
    for artifact in sorted(crashes.iterdir()):
        print(f"fuzz {name}: replay with {shlex.join([command[0], str(artifact)])}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="for each fuzzer (default 20); 0: no end")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in FUZZERS]:
        parser.error(f"found {unknown[0]!r}; allowed: {', '.join(FUZZERS)}")
    build()
    inputs = seeds()
    names = options.names or FUZZERS
    corpora = [write_corpus(name, inputs[name]) for name in names]
    with ThreadPoolExecutor(os.cpu_count() if options.seconds else 1) as pool:
        passed = sum(pool.map(run, names, corpora, [options.seconds] * len(names)))
    print(f"fuzz: {passed} passed, {len(names) - passed} failed, 0 skipped")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
