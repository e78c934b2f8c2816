#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What weir-replay must send for each capture, computed without Weir's own code.

switch_model.py is a second implementation of docs/protocol.md. cases.py and jobs.py have the input: captures,
changed captures, and jobs written frame by frame. tree_jobs.py has that of each switch of a tree; of what such a switch
must send only a digest is kept, in expected/trees.txt. ICRCs are compared with scapy's.

    expect.py --write                         write rings/*.yaml and expected/*.txt
    expect.py --check                         those files are equal to the model's output, the model agrees with the
                                              tables of jobs.py, and results have scapy's ICRC
    expect.py --check-captures                every ICRC in the captures is the one scapy computes
    expect.py --trace CASE                    the outcome for every input frame
    expect.py --input CASE FILE.pcap          the case's frames as a capture, for weir-replay
    expect.py --pcap CASE FILE.pcap           the expected frames as a capture
    expect.py --verify OUT.pcap --expected expected/CASE.txt      exit 1 and explain the first difference
"""
from __future__ import annotations

import argparse
import hashlib
import sys
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Iterator

from cases import CASES, HERE, Case, ring_yaml
from jobs import Said
from recovery_model import ACKNOWLEDGE, GRANULARITY_NS, syndrome_of
from roce import (HELLO, INA_LEN, RC_DATA, Roce, describe, hex_rows, parse_roce, pcap_bytes, read_pcap, read_stamped,
                  scapy_icrc, serial, stamped_pcap_bytes, without_trailer)
from switch_model import OWN_KINDS, Sent, Switch, result_of
from tree_jobs import TREE_CASES, TreeCase, tree_yaml

AnyCase = Case | TreeCase
ALL: dict[str, AnyCase] = {**CASES, **TREE_CASES}
TREES = HERE / "expected" / "trees.txt"

# -- the model's run


def run(case: AnyCase, looks: list[int] | None = None) -> tuple[list[bytes], Switch]:
    """The model sees no trailers: a result is that of the packets alone. What is forwarded leaves as it came (I2).
    `looks`: when another switch was seen to look at its timers. It may do so late, and where many of them run out within
    a few microseconds that decides which comes first."""
    stamped = case.frames()
    switch = Switch(case)
    switch.rules.looks = looks or []
    for index, (ns, frame) in enumerate(stamped):
        switch.receive(index, without_trailer(frame), ns)
    frames = [frame for _, frame in stamped]
    switch.sent = [replace(sent, frame=frames[sent.cause]) if sent.kind in ("forward", "flood") and sent.cause is not None
                   else sent for sent in switch.sent]
    return frames, switch


def counters(case: AnyCase, frames: list[bytes], switch: Switch) -> dict[str, int]:
    """Counts each received frame once (I6) and each sent frame once; asserts both sums."""
    fates, kinds = Counter(switch.fate.values()), Counter(s.kind for s in switch.sent)
    released = sum(slot.released for slot in switch.slots.values())
    result = {
        "received": len(frames),
        "forwarded": fates["forward"],
        "flooded": fates["flood"],
        "aggregated": fates["aggregated"],
        "cached_repeats": fates["cached-repeat"],
        "held_at_end": fates["held"],
        **{name: count for name, count in sorted(fates.items()) if name.startswith("drop.")},
        "sent": len(switch.sent),
        "sent_flood_copies": kinds["flood"],
        "sent_results": kinds["result"],
        "sent_cached_results": kinds["cached-result"],
        **{f"sent_{kind.replace('-', '_')}": kinds[kind] for kind in kinds_of(switch)},
        "slots_completed": switch.completed,
        "slots_released_at_end": released,
        "slots_filling_at_end": len(switch.slots) - released,
    }
    result |= {f"foreign.{name}": count for name, count in sorted(switch.foreign.items())}
    assert len(switch.fate) == len(frames) == sum(fates.values())
    return result | reached(case, frames, switch) if isinstance(case, Case) and not case.job else result


def kinds_of(switch: Switch) -> tuple[str, ...]:
    """Those of a single switch, and what only one of a tree sends."""
    return OWN_KINDS + ("climb", "partial") * switch.tree.has_switches


def reached(case: Case, frames: list[bytes], switch: Switch) -> dict[str, int]:
    """Which (message, packet) each rank reached, only by PSN: no history, no slots, no order of arrival.

    All messages of these captures except the hello have the same number of packets, so a packet's PSN minus that of
    its connection's hello gives its slot. Also asserted: a repeat has the data of the original, so the result is the
    same for any copy; and every result that leaves is the reduction of each rank's data at its PSN."""
    packets = [(i, roce) for i, roce in enumerate(map(parse_roce, frames))
               if roce and roce.opcode in RC_DATA and (roce.src, roce.dst) in switch.neighbours]
    hello = {roce.connection: roce.psn for _, roce in packets
             if (ina := roce.ina()) and ina.ring == case.ring and ina.collective == HELLO}
    headers = {serial(roce.psn, hello[roce.connection], 24): ina for _, roce in packets
               if roce.connection in hello and (ina := roce.ina())}
    planted = ("drop.bad_icrc", "drop.wrong_session", "drop.history_conflict")  # only from hurt(): no copies of other packets
    taken = ("held", "aggregated", "cached-repeat", "drop.repeat_held")
    present: dict[int, set[int]] = {}
    accepted: dict[int, set[int]] = {}
    data: dict[tuple[int, int], bytes] = {}
    for index, roce in packets:
        if roce.connection not in hello or switch.fate[index] in planted:
            continue
        rank, place = switch.neighbours[roce.src, roce.dst], serial(roce.psn, hello[roce.connection], 24)
        assert data.setdefault((rank, place), roce.payload) == roce.payload, f"frame {index}: a repeat changed its data"
        present.setdefault(place, set()).add(rank)
        if switch.fate[index] in taken:
            accepted.setdefault(place, set()).add(rank)
    for sent in switch.sent:
        roce = parse_roce(sent.frame)
        if roce and sent.kind in ("result", "cached-result"):
            place = serial(roce.psn, hello[roce.connection], 24)
            header = INA_LEN if roce.ina() else 0
            said = headers[max(start for start in headers if start <= place)]
            parts = [data[rank, place][header:] for rank in range(case.world)]
            assert roce.payload[header:] == result_of(said, parts, case.children), line_of(0, sent)
    full = [sum(len(ranks) == case.world for ranks in places.values()) for places in (present, accepted)]
    return {"slots_in_capture_from_all_ranks": full[0], "slots_reached_by_all_ranks": full[1]}


# --------------------------------------------------------------------------------- expectation files


def digest(frame: bytes) -> str:
    return hashlib.sha256(frame).hexdigest()


def line_of(index: int, sent: Sent) -> str:
    place = " ".join("-" if v is None else str(v) for v in (sent.rank, sent.msg, sent.k))
    cause = f"@{sent.ns}" if sent.cause is None else sent.cause
    return f"{index} {cause} {sent.kind} p{sent.port} {place} {len(sent.frame)} {digest(sent.frame)}"


def expectation(case: AnyCase) -> tuple[str, Switch]:
    frames, switch = run(case)
    counts = counters(case, frames, switch)
    all_met = case.window == 32 and not case.job
    if all_met:  # then no slot is used twice, and none that all ranks reached may be missing
        assert counts["slots_reached_by_all_ranks"] == counts["slots_completed"], counts
    text = [f"# {case.name}: what leaves, in order, when rings/{case.name}.yaml meets {case.source}",
            "# Written by tests/replay/expect.py --write. Frame lines: index, input frame that caused it (@ and a time",
            "# in ns: a timer did), kind, egress port, rank, message, packet, length, SHA-256 of the whole frame.",
            "# Counter lines at the end.",
            f"case {case.name}"]
    text += [line_of(i, sent) for i, sent in enumerate(switch.sent)]
    if all_met:
        text += [f"# All ranks reached {counts['slots_reached_by_all_ranks']} slots, and as many were completed."]
    text += [f"counter {name} {value}" for name, value in counts.items()]
    return "\n".join(text) + "\n", switch


def files_of(case: Case) -> Iterator[tuple[Path, str, Switch]]:
    text, switch = expectation(case)
    yield HERE / "rings" / f"{case.name}.yaml", ring_yaml(case), switch
    yield HERE / "expected" / f"{case.name}.txt", text, switch


def tree_line(case: TreeCase, text: str, switch: Switch) -> str:
    kept = hashlib.sha256((tree_yaml(case) + text).encode())
    return f"{case.name} {len(case.frames())} {len(switch.sent)} {kept.hexdigest()}"


TREES_HEAD = """# The switches of tree_jobs.py: frames that come, frames that leave, SHA-256 of configuration and expectation.
# Written by tests/replay/expect.py --write.
"""


def write() -> int:
    for case in CASES.values():
        for path, text, _ in files_of(case):
            path.write_text(text)
            print(f"{path.relative_to(HERE)}: {len(text)} bytes")
    TREES.write_text(TREES_HEAD + "".join(f"{tree_line(case, *expectation(case))}\n" for case in TREE_CASES.values()))
    return 0


def check() -> int:
    """Checks that the files are current; scapy confirms each 50th ICRC of the model and each kind of header."""
    bad = 0
    for case in CASES.values():
        switch = None
        for path, text, switch in files_of(case):
            if not path.exists() or path.read_text() != text:
                print(f"{path}: not what the model says; look at the difference, then expect.py --write")
                bad += 1
        assert switch is not None
        bad += wrong_fates(case, switch) + wrong_frames(case, switch)
    kept = TREES.read_text().splitlines()
    for tree in TREE_CASES.values():
        text, switch = expectation(tree)
        if tree_line(tree, text, switch) not in kept:
            print(f"{TREES}: {tree.name} is not what the model says; expect.py --write")
            bad += 1
        bad += wrong_frames(tree, switch)
    return bool(bad)


def wrong_frames(case: AnyCase, switch: Switch) -> int:
    """Those that say too much, and those whose ICRC is not scapy's."""
    bad = said_too_much(case, switch)
    seen: set[tuple[str, int]] = set()
    checked = 0
    results = (s for s in switch.sent if s.kind not in ("forward", "flood"))
    for number, sent in enumerate(results):
        header = sent.kind, sent.frame[42]
        if number % 50 == 0 or header not in seen:
            seen.add(header)
            checked += 1
            if scapy_icrc(sent.frame) != sent.frame[-4:]:
                print(f"{case.name}: scapy has another ICRC for {line_of(number, sent)}")
                bad += 1
    print(f"{case.name}: {len(switch.sent)} frames expected; scapy confirms {checked} ICRCs that the switch writes")
    return bad


def said_too_much(case: AnyCase, switch: Switch) -> int:
    """I9, without the model's state: a receiver acknowledged it before the switch did, or the hello begins there."""
    stamped = case.frames()
    roces = [parse_roce(frame) for _, frame in stamped]
    begins = {(roce.src, ina.qp, roce.psn) for roce in roces if roce and roce.opcode in RC_DATA
              and (ina := roce.ina()) and ina.collective == HELLO}
    wrong = 0
    for sent in (s for s in switch.sent if s.kind in OWN_KINDS and s.kind != "resent"):
        roce = parse_roce(sent.frame)
        assert roce
        upto = acknowledged_by(roce)
        end = bisect_left(stamped, (sent.ns + 1,)) if sent.cause is None else sent.cause + 1
        before = [r for r in roces[:end] if r and (r.src, r.dst, r.qp) == (roce.src, roce.dst, roce.qp)]
        if (roce.dst, roce.qp, upto) not in begins and all(
                r.opcode != ACKNOWLEDGE or serial(acknowledged_by(r), upto, 24) < 0 for r in before):
            print(f"{case.name}: {sent.kind} at {sent.ns} ns says more than the receiver: {describe(sent.frame)}")
            wrong += 1
    return wrong


def acknowledged_by(answer: Roce) -> int:
    """The PSN below which all is acknowledged."""
    syndrome = syndrome_of(answer)
    return answer.psn if syndrome is None or syndrome >> 5 else (answer.psn + 1) % (1 << 24)


def wrong_fates(case: Case, switch: Switch) -> int:
    """Compares the outcomes of a job's frames, and what the switch says by itself, with its table."""
    wrong = 0
    for index, step in enumerate(case.steps()):
        if step.fate != switch.fate[index]:
            print(f"{case.name} frame {index}: the table says {step.fate}, the model {switch.fate[index]}: "
                  f"{describe(step.frame)}")
            wrong += 1
    for index, (step, said) in enumerate(zip(case.steps(), own_frames(case, switch) if case.job else ())):
        if list(step.says) != said:
            print(f"{case.name} frame {index}: the table says {step.says}, the model {said}")
            wrong += 1
    return wrong


def own_frames(case: Case, switch: Switch) -> list[list[Said]]:
    """What the switch says by itself at each step and in the time before it."""
    times = [0] + [ns for ns, _ in case.frames()]
    said: list[list[Said]] = [[] for _ in case.frames()]
    hello: dict[int, int] = {}
    for frame in (step.frame for step in case.steps()):
        roce = parse_roce(frame)
        if roce and (ina := roce.ina() if roce.opcode in RC_DATA else None) and ina.collective == HELLO:
            hello.setdefault(ina.rank, roce.psn)
    for sent in switch.sent:
        if sent.kind not in OWN_KINDS:
            continue
        roce = parse_roce(sent.frame)
        assert roce and sent.rank is not None
        step = bisect_left(times[1:], sent.ns) if sent.cause is None else sent.cause
        after = sent.ns - times[step] if sent.cause is None else None
        said[step].append(Said(sent.kind, sent.rank, serial(roce.psn, hello[sent.rank], 24), after))
    return said


def check_captures() -> int:
    bad = 0
    for capture in sorted({case.capture for case in CASES.values()}):
        captured = read_pcap(HERE / "captures" / capture)
        frames = [(i, without_trailer(f)) for i, f in enumerate(captured) if parse_roce(f)]
        for index, frame in frames:
            roce = parse_roce(frame)
            right = scapy_icrc(frame)
            if roce is None or right != frame[-4:] or not roce.icrc_is_right():
                print(f"{capture} frame {index}: ICRC {frame[-4:].hex()}, scapy says {right.hex()}")
                bad += 1
        print(f"{capture}: {len(frames)} RoCE frames, {'all ICRCs right' if not bad else f'{bad} wrong so far'}")
    return bool(bad)




def verify(out: Path, expected: Path) -> int:
    lines = [line for line in expected.read_text().splitlines() if line and not line.startswith(("#", "counter "))]
    case = CASES.get(lines[0].removeprefix("case ")) if lines else None
    if case is None:
        sys.exit(f"{expected}: its first line that is no comment should name a case: case {' | '.join(CASES)}")
    wanted, stamped = lines[1:], read_stamped(out)
    got = [frame for _, frame in stamped]
    for number, (line, (ns, frame)) in enumerate(zip(wanted, stamped)):
        _, cause, _, _, _, _, _, length, sha = line.split()
        if len(frame) != int(length) or digest(frame) != sha:
            explain(case, number, line, frame, got)
            return 1
        late = ns - int(cause[1:]) if cause.startswith("@") else 0
        if not 0 <= late < GRANULARITY_NS:
            print(f"frame {number}, sent by a timer: {late} ns late, allowed: less than {GRANULARITY_NS}: {line}")
            return 1
    if len(got) != len(wanted):
        print(f"{out}: {len(got)} frames, expected {len(wanted)}; all those in both are equal")
        if len(got) < len(wanted):
            print(f"  first one missing: {wanted[len(got)]}")
        else:
            print(f"  first one too many: {describe(got[len(wanted)])}")
        return 1
    print(f"{out}: {len(got)} frames, each as {expected.name} has it")
    return 0


def explain(case: Case, number: int, line: str, frame: bytes, got: list[bytes]) -> None:
    _, switch = run(case)
    want = switch.sent[number]
    print(f"frame {number} differs from: {line}")
    if line_of(number, want) != line:
        print("  (the model now says something else than this file: run expect.py --check first)")
    print(f"  expected: {describe(want.frame)}\n  got:      {describe(frame)}")
    caused = "a timer" if want.cause is None else f"input frame {want.cause}, fate {switch.fate[want.cause]}"
    print(f"  cause: {caused}")
    if want.contributors:
        print(f"  slot: message {want.msg}, packet {want.k}; to rank {want.rank}'s successor; summed input frames "
              f"{', '.join(f'rank {r}: {i}' for r, i in enumerate(want.contributors))}")
    later = [i for i, f in enumerate(got) if f == want.frame]
    if later:
        print(f"  the expected frame is in the output, at {later[:4]}: order, or something before it too many or few")
    elsewhere = [i for i, s in enumerate(switch.sent) if s.frame == frame]
    if elsewhere:
        print(f"  the frame got is expected at {elsewhere[:4]}")
    print(hex_rows(want.frame, frame))


def trace(name: str) -> int:
    if name not in ALL:
        sys.exit(f"no case {name}; there are {', '.join(ALL)}")
    frames, switch = run(ALL[name])
    for index, frame in enumerate(frames):
        out = [i for i, s in enumerate(switch.sent) if s.cause == index]
        print(f"{index} {switch.fate[index]}{f' -> out {out[0]}..{out[-1]}' if out else ''}: {describe(frame)}")
    return 0


def write_pcap(name: str, path: Path) -> int:
    """The expected frames as a capture, for wireshark and for trying --verify."""
    if name not in ALL:
        sys.exit(f"no case {name}; there are {', '.join(ALL)}")
    _, switch = run(ALL[name])
    path.write_bytes(pcap_bytes([sent.frame for sent in switch.sent]))
    return 0


def write_input(name: str, path: Path) -> int:
    if name not in ALL:
        sys.exit(f"no case {name}; there are {', '.join(ALL)}")
    path.write_bytes(stamped_pcap_bytes(ALL[name].frames()))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    action.add_argument("--check-captures", action="store_true")
    action.add_argument("--trace", metavar="CASE")
    action.add_argument("--verify", type=Path, metavar="OUT.pcap")
    action.add_argument("--input", nargs=2, metavar=("CASE", "FILE"))
    action.add_argument("--pcap", nargs=2, metavar=("CASE", "FILE"))
    parser.add_argument("--expected", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.write:
        return write()
    if given.check:
        return check()
    if given.check_captures:
        return check_captures()
    if given.trace:
        return trace(given.trace)
    if given.input:
        return write_input(given.input[0], Path(given.input[1]))
    if given.pcap:
        return write_pcap(given.pcap[0], Path(given.pcap[1]))
    if given.expected is None:
        parser.error("--verify needs --expected FILE")
    return verify(given.verify, given.expected)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: no such file")
