# SPDX-License-Identifier: BSD-3-Clause
"""weir-replay's options and errors; tests/replay/run.py tests its frames."""
from __future__ import annotations

import json
import struct
from pathlib import Path
from shlex import quote
from typing import Any

from hosts import captured, model
from lab import Lab, smoke_test
from weir import CAPTURES, REPLAY, ROOT, Ended, expect, run_to_end

from expect import write_input  # tests/replay's, on the path since `hosts`

RINGS = ROOT / "tests" / "replay" / "rings"
CONFIG = RINGS / "ring4-f32-mtu1024-psnwrap.yaml"
CAPTURE = CAPTURES / "ring4-f32-mtu1024-psnwrap.pcap"
RESTARTED = "job-equal-epoch-restart"  # three incarnations


def replay(lab: Lab, capture: Path, *more: str | Path, config: Path = CONFIG) -> Ended:
    return run_to_end([REPLAY, "--config", config, "--in", capture, "--out", lab.directory / "out.pcap", *more])


def replay_to(out: str | Path, *more: str | Path) -> Ended:
    return run_to_end([REPLAY, "--config", CONFIG, "--in", CAPTURE, "--out", out, *more])


def refused(ended: Ended, *said: str) -> None:
    expect(ended.status == 2, f"exit status {ended.status}, not 2: {ended}")
    for text in said:
        expect(text in ended.errors, f"standard error should have {text!r}: {ended.errors}")


def statistics(lab: Lab, capture: Path, *more: str, config: Path = CONFIG) -> Any:
    file = lab.directory / "stats.json"
    ended = replay(lab, capture, "--stats", file, *more, config=config)
    expect(ended.status == 0, f"{ended}")
    stats = json.loads(file.read_text())
    row = stats["accounting"][0]
    in_all = sum(row[name] for name in ("forwarded", "consumed", "dropped", "held", "queued"))
    expect(row["received"] == in_all and row["balances"] == "yes", f"{row}")
    return stats


@smoke_test("replay-errors")
def errors(lab: Lab) -> None:
    refused(run_to_end([REPLAY]), "--config, --in and --out are needed", "see weir-replay --help")
    refused(replay(lab, CAPTURE, "stray"), "and nothing else")
    refused(replay(lab, CAPTURE, "--speed", "9"), "weir-replay --help")
    for session in ("0", "-1", "-18446744073709551615", " 7", "x", "", "4294967296", "1x"):
        refused(replay(lab, CAPTURE, "--session", session), f"--session: found '{session}'; allowed: 1 .. 4294967295")
    refused(replay(lab, lab.directory / "none.pcap"), "none.pcap", "No such file")
    refused(replay(lab, lab.file("text.pcap", "no capture, but long enough to have a header")), "text.pcap")
    refused(replay(lab, lab.file("empty.pcap", "")), "empty.pcap")
    refused(replay(lab, CAPTURE, config=lab.directory / "none.yaml"), "none.yaml:1: (document): found no such file")
    for ended, file in ((replay(lab, CAPTURE, "--stats", "/nowhere/stats.json"), "/nowhere/stats.json"),
                        (replay_to("/nowhere/out.pcap"), "/nowhere/out.pcap")):
        expect(ended.status == 1 and f"{file}: cannot be written: No such file or directory" in ended.errors, f"{ended}")


@smoke_test("replay-bad-captures")
def bad_captures(lab: Lab) -> None:
    def capture(data: bytes) -> Path:
        path = lab.directory / "bad.pcap"
        path.write_bytes(data)
        return path
    whole = model.pcap_bytes(captured()[:3])
    refused(replay(lab, capture(whole[:-5])), "bad.pcap", "truncated")
    stranger = captured()[0][:6] + b"\x02\x00\x00\x00\x00\x99" + captured()[0][12:]
    snapped = whole[:24] + struct.pack("<IIII", 0, 0, 60, 90) + captured()[0][:60]
    refused(replay(lab, capture(snapped)), "frame 1: cut to 60 of 90 bytes")
    swollen = whole[:24] + struct.pack("<IIII", 0, 0, 114, 110) + captured()[0][:110] + bytes(4)
    refused(replay(lab, capture(swollen)), "frame 1: found a record of 114 bytes for a frame of 110; allowed: a record as "
            "long as its frame")
    wifi = whole[:20] + struct.pack("<I", 105) + whole[24:]
    refused(replay(lab, capture(wifi)), "found link type 105; allowed: Ethernet (1)")
    runts = statistics(lab, capture(model.pcap_bytes([b"", b"\x52\x54", bytes(13)])))
    expect([(row["reason"], row["count"]) for row in runts["drops"]] == [("runt", 3)], f"{runts}")


@smoke_test("replay-outside")
def outside(lab: Lab) -> None:
    """A station in no port's list: its frames are switched, and frames to it are not written."""
    first = captured()[0]
    stranger = first[:6] + b"\x02\x00\x00\x00\x00\x99" + first[12:14] + b"\x00" * 50
    to_stranger = stranger[6:12] + first[6:12] + stranger[12:]
    to_stranger = to_stranger[:12] + b"\x88\xb5" + to_stranger[14:]
    path = lab.directory / "outside.pcap"
    path.write_bytes(model.pcap_bytes([stranger, to_stranger]))
    result = replay(lab, path)
    expect(result.status == 0, f"{result}")
    expect("names the source 02:00:00:00:00:99: it is outside" in result.errors, f"{result.errors}")
    left = model.read_pcap(lab.directory / "out.pcap")
    expect(left and all(frame == stranger for frame in left), "the stranger's frame was altered or not flooded")


@smoke_test("replay-merged-capture")
def merged_capture(lab: Lab) -> None:
    """Time that goes back between frames ages nothing: the output is the same as from the unchanged capture."""
    config, taken = RINGS / "roce-mix.yaml", CAPTURES / "roce-mix.pcap"
    stats = statistics(lab, taken, config=config)
    left = model.read_pcap(lab.directory / "out.pcap")
    expect(left and stats["accounting"][0]["forwarded"] > 0, f"nothing to compare with: {stats}")
    whole = taken.read_bytes()
    merged = bytearray(whole[:24])
    for number, frame in enumerate(model.read_pcap(taken)):
        merged += struct.pack("<IIII", 1_000_000 - number, 0, len(frame), len(frame)) + frame
    path = lab.directory / "merged.pcap"
    path.write_bytes(merged)
    again = statistics(lab, path, config=config)
    expect(again == stats, f"{again}\n    where the capture as it was taken gives\n{stats}")
    expect(model.read_pcap(lab.directory / "out.pcap") == left, "other frames leave")


@smoke_test("replay-session")
def session(lab: Lab) -> None:
    """The first incarnation has the given session, each later one the next number; data of other sessions is dropped."""
    capture = lab.directory / "restarts.pcap"
    write_input(RESTARTED, capture)
    stats = statistics(lab, capture, "--session", "0xdeadbeef", config=RINGS / f"{RESTARTED}.yaml")
    sessions = [ina.session for ina in headers_in(lab.directory / "out.pcap")]
    expect(sessions == [0xDEADBEEF + job for job in range(3) for rank in range(3)], f"{sessions}")
    drops = {row["reason"]: row["count"] for row in stats["drops"]}
    data = sum(ina.collective != model.HELLO for ina in headers_in(capture))
    expect(drops["wrong_session"] == data, f"{drops}, but {data} messages of sessions 1 to 3")


def headers_in(capture: Path) -> list[model.Ina]:
    frames = [model.parse_roce(frame) for frame in model.read_pcap(capture)]
    return [ina for roce in frames if roce and roce.starts_message and (ina := roce.ina())]


def shell(lab: Lab, script: str) -> Ended:
    """`script` with `replay`, the program and its configuration, and $capture, in the lab's folder."""
    return run_to_end(["bash", "-c", f"""
        replay() {{ {quote(str(REPLAY))} --config {quote(str(CONFIG))} "$@"; }}
        capture={quote(str(CAPTURE))}
        {script}"""], lab.directory)


@smoke_test("replay-pipes")
def pipes(lab: Lab) -> None:
    """What can be read once is read once, and what is written may be a pipe."""
    expect(replay(lab, CAPTURE).status == 0, "the plain way")
    expected = (lab.directory / "out.pcap").read_bytes()
    report = replay(lab, CAPTURE).output
    for script in ('replay --in - --out got < "$capture"', 'cat "$capture" | replay --in - --out got',
                   'cat "$capture" | replay --in /dev/stdin --out got', 'replay --in <(cat "$capture") --out got',
                   'mkfifo fifo; cat "$capture" > fifo & replay --in fifo --out got',
                   'replay --in "$capture" --out >(cat > got) && sleep 0.2'):
        ended = shell(lab, script)
        expect(ended.status == 0 and ended.output == report, f"{script}: {ended}")
        expect((lab.directory / "got").read_bytes() == expected, f"{script}: another capture")
        (lab.directory / "got").unlink()
    ended = shell(lab, 'cat "$capture" | replay --in - --out - > got')
    expect(ended.status == 0 and ended.errors == report, f"what people read goes to standard error: {ended}")
    expect((lab.directory / "got").read_bytes() == expected, "another capture by standard output")
    ended = shell(lab, 'replay --in "$capture" --out /dev/null --stats -')
    expect(ended.status == 0 and ended.errors == report and "accounting" in json.loads(ended.output), f"{ended}")


@smoke_test("replay-own-files")
def own_files(lab: Lab) -> None:
    """A file that is written is none of the others, whatever its name."""
    (lab.directory / "config.yaml").write_text(CONFIG.read_text())
    before = {"in.pcap": CAPTURE.read_bytes(), "config.yaml": CONFIG.read_bytes()}
    (lab.directory / "in.pcap").write_bytes(before["in.pcap"])
    expect(shell(lab, "ln in.pcap hard; ln -s in.pcap soft; ln -s soft softer; ln -s . here; ln -s new dangling; mkfifo fifo"
                 ).status == 0, "links")
    own = "replay --config config.yaml"
    for script in (*(f"{own} --in in.pcap --out {name}" for name in ("in.pcap", "./in.pcap", "hard", "soft", "softer",
                                                                     "here/in.pcap", "$PWD/in.pcap")),
                   f"{own} --in soft --out hard", f"{own} --in - --out in.pcap < in.pcap",
                   f"{own} --in in.pcap --out - >> in.pcap", f"{own} --in in.pcap --out new --stats in.pcap",
                   f"{own} --in in.pcap --out config.yaml", f"{own} --in in.pcap --out new --stats config.yaml",
                   f"{own} --in in.pcap --out new --stats new", f"{own} --in in.pcap --out new --stats ./here/new",
                   f"{own} --in in.pcap --out dangling --stats new", f"{own} --in in.pcap --out fifo --stats fifo",
                   f"{own} --in in.pcap --out - --stats -", f"touch new; {own} --in in.pcap --out new > new"):
        refused(shell(lab, script), "the same file; allowed: a file of its own for what is written")
        for name, data in before.items():
            expect((lab.directory / name).read_bytes() == data, f"{script}: {name} was changed")
        expect(not (lab.directory / "new").exists() or (lab.directory / "new").stat().st_size == 0, f"{script}: new")
    for script in (f"{own} --in in.pcap --out /dev/null --stats /dev/null", f"{own} --in in.pcap --out out --stats stats"):
        expect(shell(lab, script).status == 0, script)


@smoke_test("replay-help")
def help_option(lab: Lab) -> None:
    ended = run_to_end([REPLAY, "--help"])
    expect(ended.status == 0 and "--session NUMBER" in ended.output, f"{ended}")
