# SPDX-License-Identifier: BSD-3-Clause
"""The PyTorch backend: a training that is the same to the bit in every run, every call and type, and a rank's death."""
from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hosts import RANKS
from lab import Lab, smoke_test
from netns import KILLED_WITH_US
from test_control import at_socket, said
from torch_ranks import PYTHON, TRAIN, Rank, TorchHosts, TorchJob, need_torch
from weir import Failed, expect, text_file

LOSS = 0.001
STEPS = 24
JOB_S = 80.0
# Gloo adds the ranks' gradients in another order, so each sum may differ in its last bit, and each step adds a little:
# 2.4e-7 was seen.
GLOO_DIFFERENCE = 1e-4


TRAININGS = (("--straggler", "3"), ("--straggler", "1"), ("--backend", "gloo"))


def make_trainings(job: TorchJob) -> list[list[dict[str, Any]]]:
    """The ranks' reports of each. How the ranks end does not count: when DistributedDataParallel holds the last reference to
    PyTorch's Gloo group, the group joins its threads under Python's lock, for which they may wait (PyTorch's issue 56297)."""
    words = [word for training in TRAININGS for word in ("--then", "--steps", str(STEPS), *training)]
    ranks = job.start(Path(__file__).parent / "torch_training.py", *words[1:])
    too_late = threading.Timer(JOB_S, lambda: [rank.process.kill() for rank in ranks])
    too_late.start()
    reports = [reports_of(rank) for rank in ranks]
    too_late.cancel()
    for rank in ranks:
        rank.kill()
    return [list(training) for training in zip(*reports, strict=True)]


def reports_of(rank: Rank) -> list[dict[str, Any]]:
    output, reports = [], []
    for line in rank.lines():
        output.append(line)
        if line.startswith("{"):
            reports.append(dict(json.loads(line)))
        if len(reports) == len(TRAININGS):
            return reports
    raise Failed(f"rank {rank.number} reports {len(reports)} trainings of {len(TRAININGS)}: {output[-30:]}")


HANGING = """
import resource, threading, time

def hang():
    print("here", flush=True)
    threading.Event().wait()

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
hang()
"""


@smoke_test("torch-places")
def torch_places(_: Lab) -> None:
    """What is told of a rank that hangs begins with where its main thread stands."""
    rank = Rank(0, subprocess.Popen([*KILLED_WITH_US, PYTHON, "-X", "faulthandler", "-c", HANGING], text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    rank.job = [rank]
    next(rank.lines())
    try:
        rank.wait(0.01)
    except Failed as told:
        place = str(told).splitlines()[1]
        expect(re.fullmatch(r"rank 0: status -6: Fatal Python error: Aborted, in (.+ < )?hang \(<string>:[56]\) < <module> "
                            r"\(<string>:10\)", place), f"{told}")
        return
    raise Failed("the rank ended by itself")


@smoke_test("torch-training")
def torch_training(lab: Lab) -> None:
    """Two runs with losses and a straggler end in the same bits; the loss of each step is as with Gloo."""
    need_torch()
    job = TorchJob(lab, LOSS)
    first, second, by_gloo = make_trainings(job)
    expect(job.cables.lost() > 0, "the cables lost nothing, so nothing was tested")
    for report in (*first, *second):
        expect(report["algorithm"] == "switch" and report["calls"] > 2 * STEPS, f"{report}")
    repeated = [sum(report["retransmitted_packets"] for report in training) for training in (first, second)]
    expect(min(repeated) > 0, f"packets repeated in each run: {repeated}, so nothing was tested")
    ends = {(report["parameters"], *report["losses"]) for report in (*first, *second)}
    expect(len(ends) == 1, f"two runs of {RANKS} ranks end in {len(ends)} sets of parameters and losses")
    losses = first[0]["losses"]
    differences = [abs(ours - theirs) for ours, theirs in zip(losses, by_gloo[0]["losses"], strict=True)]
    expect(max(differences) < GLOO_DIFFERENCE, f"differences from Gloo's losses: {differences}")
    expect(min(losses[-5:]) < losses[0] / 2, f"the loss does not fall: {losses}")
    job.switch.stop()


def run_exactly(job: TorchJob, program: str, victim: int | None = None, **environment: str) -> None:
    """A program of this folder, which compares everything by itself. The victim kills itself."""
    ranks = job.start(Path(__file__).parent / f"{program}.py", **environment)
    ended = [(rank, *rank.wait(JOB_S)) for rank in ranks]
    unlike = [f"rank {rank.number}: {status}, {output[-3000:]}" for rank, status, output in ended
              if not (status == -signal.SIGKILL if rank.number == victim else status == 0 and f"{program}: exact" in output)]
    expect(not unlike, "\n".join(unlike))
    job.switch.stop()


@smoke_test("torch-calls")
def torch_calls(lab: Lab) -> None:
    """Each call, type and operation, of Weir and of Gloo, against values computed by hand. Without WEIR_IP."""
    need_torch()
    job = TorchJob(lab, LOSS)
    job.give_addresses()
    run_exactly(job, "torch_calls", WEIR_IP="")


@smoke_test("torch-meeting")
def torch_meeting(lab: Lab) -> None:
    """A rank that comes wrongly or not at all is named by the others soon. All of it over IPv6."""
    need_torch()
    job = TorchJob(lab, loss=0)
    job.use_ipv6()
    run_exactly(job, "torch_meeting", MASTER_ADDR="::1")


@smoke_test("torch-again")
def torch_again(lab: Lab) -> None:
    """Groups are formed again at once after their end; the profiler shows calls."""
    need_torch()
    run_exactly(TorchJob(lab, loss=0), "torch_again")


def check_words(job: TorchJob, due: str, status: int = 1, count: int = 1, **environment: str) -> None:
    for rank in job.start_some(count, "-m", "weir_torch.check", **environment):
        ended, output = rank.wait(JOB_S)
        expect(ended == status and due in output, f"rank {rank.number}: {ended}, {output}; due: {status}, {due}")


def in_a_list(file: Path) -> str:
    return str(file).replace(",", r"\,")


@smoke_test("torch-check")
def torch_check(lab: Lab) -> None:
    """weir_torch.check says what is missing, and with all ranks that nothing is. One operator's file has a comma in its name."""
    need_torch()
    known = lab.file("a,b.weir", text_file("clipped-i8-sum").read_text())
    files = f"{in_a_list(known)},{in_a_list(text_file('valid-sum'))}"
    job = TorchJob(lab, loss=0, more=f"operators:\n  - {{ file: {json.dumps(str(known))} }}\n")
    check_words(job, "library    MISSING: weir_torch: /nowhere.so: ", WEIR_LIBRARY="/nowhere.so")
    check_words(job, "device     MISSING: there is no network interface eth7; there are: host0, host1, host2, host3, lo", WEIR_DEVICE="eth7")
    check_words(job, "MTU        MISSING: frames of 1500 bytes have no room for a path MTU of 2048", WEIR_PATH_MTU="2048")
    check_words(job, "rings      MISSING: WEIR_SWITCH names /nowhere", WEIR_SWITCH="unix:/nowhere")
    check_words(job, f"device     MISSING: weir_torch: WEIR_OPERATORS: found '{lab.directory}/a', which cannot be read", WEIR_OPERATORS=f"{in_a_list(lab.directory)}/a,b.weir")
    for rank in job.start_some(RANKS, "-m", "weir_torch.check", WEIR_OPERATORS=files):
        status, output = rank.wait(JOB_S)
        expect(status == 0 and "all-reduce 1000 numbers of 4 ranks, by way of switch: exact" in output, f"{status}, {output}")
        expect("operators  clipped-i8-sum: folded by the switch; operator 1 (valid-sum, digest " in output, output)
    job.switch.stop()


@smoke_test("torch-hosts")
def torch_hosts(lab: Lab) -> None:
    """Hosts whose own names lead nowhere: the inner Gloo group meets where Weir's ranks have met."""
    need_torch()
    job = TorchHosts(lab, loss=0)
    job.give_addresses(bits=24)
    check_words(job, "by way of switch: exact", status=0, count=RANKS, MASTER_ADDR="10.77.0.1")
    job.switch.stop()


def ring_of(number: int, *ranks: int) -> str:
    members = "".join(f"      - {{ ip: 10.77.0.{rank + 1}, port: p{rank} }}\n" for rank in ranks)
    return f"  - id: {number}\n    window: 8\n    max_message_bytes: 65536\n    mtu: 1024\n    members:\n{members}"


@smoke_test("torch-groups")
def torch_groups(lab: Lab) -> None:
    """Three groups on three rings. Two of them have the rank that is killed; the third goes on."""
    need_torch()
    run_exactly(TorchJob(lab, 0, ring_of(8, 0, 2) + ring_of(9, 1, 3)), "torch_groups", victim=3)


def train_until(job: TorchJob, happens: Callable[[], object], error: str, *words: str) -> None:
    """All ranks end within their time limit, by the same error. Its other words depend on the moment: who has the last result."""
    ranks = job.start(Path(__file__).parent / "torch_bad_day.py")
    next(line for line in ranks[0].lines() if line == "step 3")
    happens()
    for rank in ranks:
        status, output = rank.wait(JOB_S)
        expect(status == 0 and all(word in output for word in (f"status: {error}\nweir: {error}: ", *words)),
               f"rank {rank.number}: {status}, {output[-3000:]}")


@smoke_test("torch-bad-days")
def torch_bad_days(lab: Lab) -> None:
    """In the middle of a training the switch is started again: the next one is exact. Then its ring is withdrawn."""
    need_torch()
    job = TorchJob(lab, 0, more=at_socket(lab, ""))
    train_until(job, job.restart_switch, "timeout", "nothing moved for 5000 ms")
    check_words(job, "by way of switch: exact", status=0, count=RANKS)
    train_until(job, lambda: said(lab, "withdraw ring 7"), "transport_failure", "its ring was reset or withdrawn")
    job.switch.stop()


@smoke_test("torch-death")
def torch_death(lab: Lab) -> None:
    """A rank is killed during the training: the others end with an error that names it."""
    need_torch()
    job = TorchJob(lab, loss=0)
    ranks = job.start(TRAIN, "--steps", "1000000")
    next(line for line in ranks[0].lines() if line.startswith("step 3 "))
    victim = ranks[2]
    victim.process.kill()
    for rank in ranks:
        if rank is not victim:
            status, output = rank.wait(30)
            expect(status == 1 and "WeirError: weir: peer_died: " in output and "rank 2" in output,
                   f"rank {rank.number}: {status}, {output[-3000:]}")
    job.switch.stop()
