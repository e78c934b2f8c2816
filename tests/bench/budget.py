#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the packet path with its instruction budget: instructions per packet and stage by callgrind.

Instruction counts do not depend on other work of the machine, so a few per cent more come from a change. The budget
was recorded with one compiler and one ISA-L; with others the counts are shown and not judged. `--record` writes a new one.
Ends in "budget: N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import callgrind
import machine

ROOT = Path(__file__).resolve().parent.parent.parent
BUDGET = Path(__file__).resolve().parent / "instruction_budget.json"
PROGRAM = "tests/bench/budget_path"
RECORD = "tests/bench/budget.py --record"
TOLERANCE = 0.03
ROUNDING = 1  # instruction per packet

# A stage begins in these functions. The functions that they call count for it until another stage begins.
STAGES = {
    "receive": ("weir::stage::Receive::", "weir::stage::Dispatch::"),
    "learn": ("weir::l2::Bridge::learn(",),
    "parse": ("weir::wire::parse(",),
    "worker": ("weir::stage::Classify::", "weir::stage::Aggregate::", "weir::stage::Reduce::", "weir::stage::Emit::", "weir::slot::Reduction::"),
    "classify": ("weir::conn::Classifier::classify(",),
    "verify": ("weir::wire::verify_icrc(", "weir::wire::compute_icrc("),
    "recover": ("weir::stage::Recover::",),
    "slot": ("weir::slot::SlotTable::",),
    "reduce": ("weir::slot::fold_frames(",),
    "splice": ("weir::slot::seal_result(", "weir::slot::write_result("),
    "forward": ("weir::stage::Forward::",),
}
STAGES_OF = {  # that its traffic must reach
    "ring": tuple(STAGES),
    "acks": ("receive", "learn", "parse", "verify", "recover", "forward"),
    "plain": ("receive", "learn", "parse", "forward"),
}

Counts = dict[str, float]  # instructions per packet by stage


def stage_of(function: str) -> str | None:
    return next((stage for stage, prefixes in STAGES.items() if function.startswith(prefixes)), None)


def share_out(profile: callgrind.Profile) -> dict[str, float]:
    """Instructions by stage; "other" is what belongs to none.

    A function outside the stages counts for its callers, in proportion to the work of each call. Such functions call each
    other, so the shares are computed again until they do not change.
    """
    inclusive: dict[str, int] = dict(profile.own)
    for (caller, _), cost in profile.calls.items():
        inclusive[caller] = inclusive.get(caller, 0) + cost
    callers: dict[str, list[tuple[str, float]]] = {}
    for (caller, callee), cost in profile.calls.items():
        callers.setdefault(callee, []).append((caller, cost))
    shares = {function: {stage_of(function) or "other": 1.0} for function in inclusive}
    helpers = [function for function in inclusive if stage_of(function) is None and function in callers]
    for _ in range(len(helpers) + 1):
        for function in helpers:
            whole = sum(cost for _, cost in callers[function]) or 1
            mixed: dict[str, float] = {}
            for caller, cost in callers[function]:
                for stage, share in shares[caller].items():
                    mixed[stage] = mixed.get(stage, 0.0) + share * cost / whole
            shares[function] = mixed
    counts: dict[str, float] = {}
    for function, cost in profile.own.items():
        for stage, share in shares[function].items():
            counts[stage] = counts.get(stage, 0.0) + share * cost
    return counts


def count(build: Path, traffic: str) -> Counts:
    """Runs the packet path under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        answer = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=drive_packets", "--quiet",
                                 f"--callgrind-out-file={out}", str(build / PROGRAM), traffic],
                                capture_output=True, text=True)
        if answer.returncode != 0:
            sys.exit(f"budget: {PROGRAM} {traffic} ended with {answer.returncode}\n{answer.stderr}")
        profile = callgrind.read(out)
    packets = int(answer.stdout)
    counts = {stage: round(cost / packets, 1) for stage, cost in share_out(profile).items()}
    for stage in STAGES_OF[traffic]:
        if stage not in counts:
            sys.exit(f"budget: no instruction of stage {stage!r} was seen; does none of {', '.join(STAGES[stage])} exist "
                     f"any more? STAGES in tests/bench/budget.py names what a stage begins with")
    in_order = {stage: counts[stage] for stage in (*STAGES, "other") if stage in counts}
    return in_order | {"total": round(profile.total() / packets, 1)}


def environment() -> dict[str, str]:
    return {"compiler": machine.output_of("c++", "--version").split("\n")[0],
            "ISA-L": machine.output_of("pkg-config", "--modversion", "libisal"),
            "valgrind": machine.output_of("valgrind", "--version")}


def compare(traffic: str, counts: Counts, budget: Counts) -> list[str]:
    """Returns a line for each count over the budget; prints all counts."""
    mistakes = []
    print(f"{traffic}: instructions per packet\n  {'stage':10} {'budget':>9} {'now':>9} {'change':>8}")
    for stage in dict.fromkeys([*budget, *counts]):
        allowed, now = budget.get(stage, 0.0), counts.get(stage, 0.0)
        change = f"{100 * (now / allowed - 1):+.1f} %" if allowed else "new"
        print(f"  {stage:10} {allowed:9.1f} {now:9.1f} {change:>8}")
        if now > allowed * (1 + TOLERANCE) + ROUNDING:
            mistakes.append(f"{traffic}: stage {stage} takes {now:.1f} instructions a packet, {now - allowed:.1f} more "
                            f"than its budget of {allowed:.1f} ({change}; {100 * TOLERANCE:.0f} % are allowed)")
    return mistakes


def judge(build: Path) -> int:
    recorded = json.loads(BUDGET.read_text())
    here = environment()
    differing = [f"{name} is {here[name]}, recorded with {was}" for name, was in recorded["environment"].items()
                 if here[name] != was]
    mistakes = {traffic: compare(traffic, count(build, traffic), recorded["per packet"].get(traffic, {})) for traffic in STAGES_OF}
    if differing:
        print(f"budget: NOT JUDGED, since counts of another compiler or library are others: {'; '.join(differing)}")
        print(f"budget: 0 passed, 0 failed, {len(STAGES_OF)} skipped")
        return 0
    for lines in mistakes.values():
        for line in lines:
            print(f"budget: {line}")
    failed = sum(bool(lines) for lines in mistakes.values())
    if failed:
        print(f"budget: if the change is worth that, record a new budget: {RECORD}")
    print(f"budget: {len(STAGES_OF) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def record(build: Path) -> None:
    content = {"environment": environment(), "per packet": {traffic: count(build, traffic) for traffic in STAGES_OF}}
    BUDGET.write_text(json.dumps(content, indent=1) + "\n")
    print(f"recorded {BUDGET.relative_to(ROOT)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write what is counted now as the budget")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder (default build)")
    options = parser.parse_args()
    if shutil.which("valgrind") is None or "avx2" not in machine.fields_of("/proc/cpuinfo").get("flags", "").split():
        print(f"budget: NOT JUDGED: needs valgrind and a CPU with AVX2\nbudget: 0 passed, 0 failed, {len(STAGES_OF)} skipped")
        return 0
    subprocess.run(["ninja", "-C", str(options.build), PROGRAM], check=True, stdout=subprocess.DEVNULL)
    if options.record:
        record(options.build)
        return 0
    return judge(options.build)


if __name__ == "__main__":
    sys.exit(main())
