# SPDX-License-Identifier: BSD-3-Clause
"""Regions (docs/protocol.md §13) among real stacks: docs/examples/region.c, plain verbs on soft-RoCE, links nothing of Weir's; and
the host library over verbs. Guests reach no control service, so what its rank 0 asks for is carried, by a module in the place of
libweir_switch.so."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from allreduce import END_OF_JOB_S, KILLED, RENDEZVOUS_PORT
from bad_links import lost_on
from guest import Job
from lab import Lab
from image import REPOSITORY
from scenarios import C_RING, PLAIN, expect, scenario

MEMBER = "build/tests/support/example_region"
RANK = "build/tests/support/region_rank"
FILES_MODULE = "build/tests/support/libregion_files.so"
CLIENT = REPOSITORY / "tests/smoke/control_client.py"
BYTES = (64 << 10) + 4 * 8192  # of docs/examples/region.c
VIEWS = [{"operation": "sum", "type": "f32"}, {"operation": "sum", "type": "i32"}]  # likewise
MESSAGES = 60
READS = 3 * (MESSAGES // 2 + (MESSAGES // 2 + 2) * 4)  # of all members: behind each message one, or a view in four pieces
PATIENCE_S = 4
GONE = 2  # the guest that falls silent
LATE_S = 6  # by which emulated guests on a busy machine may hear later; without the switch's word they would not hear at all
USED_S = 2.0  # for which all write before


@contextlib.contextmanager
def held(lab: Lab, wanted: dict[str, Any]) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """A call HoldRegion, and its first answer."""
    call = subprocess.Popen([sys.executable, str(CLIENT), f"unix:{lab.weir.control_socket}", "hold-region",
                             json.dumps({"region": wanted})], stdout=subprocess.PIPE, text=True)
    try:
        assert call.stdout is not None
        answer = json.loads(call.stdout.readline())
        expect("ends" in answer, f"no region: {answer}")
        yield answer, call
    finally:
        call.kill()
        call.communicate()


def start(lab: Lab, messages: int) -> list[Job]:
    """Members that read what the switch says from a file, and end when there is another."""
    wait_for_file = "until [ -e /run/region.{name} ]; do sleep 0.1; done"
    reads = f"{wait_for_file.format(name='told')}; cat /run/region.told; {wait_for_file.format(name='over')}"
    return lab.start_on_all(lambda guest: f"rm -f /run/region.*; mkfifo /run/region.in; ( {reads} ) > /run/region.in & "
                            f"example_region rxe0 {guest.who.ip} {guest.who.rank + 1} {messages} < /run/region.in; "
                            "status=$?; kill $!; exit $status")


def tell(lab: Lab, answer: dict[str, Any]) -> None:
    for guest, end in zip(lab.guests, answer["ends"], strict=True):
        token = base64.b64decode(end["token"]).hex()
        line = (f"{answer['ip']} {end['queue_pair']} {end.get('first_psn', 0)} {answer['base']} {answer['key']} {token} "
                f"{' '.join(str(key) for key in answer['view_keys'])}")
        guest.control(f"echo {line} > /run/region.tmp; mv /run/region.tmp /run/region.told")


def region_of(jobs: list[Job]) -> dict[str, Any]:
    members = [json.loads(job.wait_for(r"member (\{.*\})", 60.0)[1]) for job in jobs]
    return {"bytes": BYTES, "loopback": True, "patience": PATIENCE_S, "views": VIEWS, "members": members}


def region_row(lab: Lab) -> dict[str, Any]:
    return dict(list(lab.weir.telemetry("/weir/region")["regions"].values())[-1])


@scenario(PLAIN, needs_weir=True, programs=(MEMBER,))
def region_multicast(lab: Lab) -> str:
    """Three guests write to all at random places over links that lose, and read sums of all members' numbers between: these
    have the exact bits, which the guests check. In the end all memories are equal. One falls silent: the others get a fatal
    error when patience is over, and who holds the region hears why."""
    for guest in lab.guests:
        guest.netem_both_ways("loss 3%")
    jobs = start(lab, MESSAGES)
    with held(lab, region_of(jobs)) as (answer, _):
        tell(lab, answer)
        sums = {job.wait_for(r"memory ([0-9a-f]{16})", 180.0)[1] for job in jobs}
        lost = [lost_on(lab, device) for device in ("eth0", "ifb0")]
        row = region_row(lab)
        lab.run_on_all(lambda guest: "touch /run/region.over")
        for job in jobs:
            expect(job.wait(30.0).status == 0, f"a member failed: {job.output}")
    expect(len(sums) == 1, f"the memories differ: {sums}")
    expect(min(lost) > 0 and row["again"] > 0, f"nothing was lost: {lost}, {row}")
    expect(row["reads"] >= READS and row["folds_again"] > 0 and row["member_reads_again"] > 0, f"READs: {row}")
    return (f"equal after {row['accepted']} packets, {row['copies']} copies, {row['again']} again; {row['reads']} READs by "
            f"{row['folds']} packets, {row['folds_again']} again, {row['member_reads_again']} of {row['member_reads']} READs of "
            f"members again; lost {lost}; {fall_silent(lab)}")


def fall_silent(lab: Lab) -> str:
    for guest in lab.guests:
        guest.reset()
    jobs = start(lab, 0)
    with held(lab, region_of(jobs)) as (answer, call):
        tell(lab, answer)
        for job in jobs:
            job.wait_for("open", 60.0)
        time.sleep(USED_S)
        lab.guests[GONE].stop()
        ends = [job.wait_for(r"ended: (.*), (\d+) ms after", 60.0) for rank, job in enumerate(jobs) if rank != GONE]
        assert call.stdout is not None
        why = json.loads(call.stdout.readline())
    lab.guests[GONE].resume()
    for end in ends:
        expect(end[1] == "remote operation error" and int(end[2]) <= 1000 * (PATIENCE_S + LATE_S), end[0])
    expect(why["code"] == "ABORTED" and re.search(r"member 2 \(10\.77\.0\.3\) .* silent for 4 s", why["message"]) is not None, f"{why}")
    return f"after a member's silence the others failed in {' and '.join(end[2] for end in ends)} ms"


# -- by the host library


def start_ranks(lab: Lab, way: str) -> list[Job]:
    """Rank 0 alone asks for the region."""
    first = lab.guests[0]
    first.run("rm -f /run/region.*")
    asking = "WEIR_SWITCH=unix:/run/nobody.sock WEIR_SWITCH_MODULE=/usr/bin/libregion_files.so"
    return lab.start_on_all(lambda guest: f"{asking if guest is first else ''} region_rank {guest.who.rank} {len(lab.guests)} "
                            f"{first.who.ip}:{RENDEZVOUS_PORT} {C_RING.ring_id} rxe0 verbs {way} thread")


def answer_text(answer: dict[str, Any]) -> str:
    """As region_files_module.cpp reads it."""
    region = answer["region"]
    lines = [f"{answer['id']} {answer['ip']} {answer['mac']} {answer['base']} {answer['key']} {region['window']} {region['patience']}"]
    lines += [f"{end['queue_pair']} {end.get('first_psn', 0)} {base64.b64decode(end['token']).hex()}" for end in answer["ends"]]
    return "\n".join([*lines, " ".join(str(key) for key in answer["view_keys"])]) + "\n"


def carry(lab: Lab, name: str, text: str) -> None:
    first = lab.guests[0]
    first.put(f"/run/{name}.new", text.encode())
    first.control(f"mv /run/{name}.new /run/{name}")


@contextlib.contextmanager
def ranks_with_region(lab: Lab, way: str) -> Iterator[tuple[list[Job], subprocess.Popen[str]]]:
    """Ranks whose region is made, and the call that holds it."""
    jobs = start_ranks(lab, way)
    with held(lab, json.loads(jobs[0].wait_for(r"wanted (\{.*\})")[1])) as (answer, call):
        carry(lab, "region.made", answer_text(answer))
        yield jobs, call


def expect_said(jobs: list[Job], *due: str) -> None:
    for job in jobs:
        result = job.wait(END_OF_JOB_S)
        expect(result.status == 0 and all(text in result.output for text in due), f"due: {due}; {result.complaint}")


@scenario(PLAIN, needs_weir=True, programs=(RANK, FILES_MODULE))
def region_of_the_library(lab: Lab) -> str:
    """The same by weir_region_form over verbs: exact over links that lose, and in requests of many pieces; what does not lie within the region is refused before
    anything is sent; who falls silent, and who dies, is named to the others."""
    for guest in lab.guests:
        guest.netem_both_ways("loss 3%")
    began = time.monotonic()
    with ranks_with_region(lab, "loopback") as (jobs, _):
        expect_said(jobs, "region_rank: exact\n")
        seconds, row = time.monotonic() - began, region_row(lab)
    expect(row["again"] > 0 and row["folds_again"] > 0, f"nothing was lost: {row}")
    for guest in lab.guests:
        guest.reset()
    began = time.monotonic()
    with ranks_with_region(lab, "large") as (jobs, _):
        expect_said(jobs, "region_rank: exact\n")
        large = time.monotonic() - began
    with ranks_with_region(lab, "range") as (jobs, _):
        expect_said(jobs, "bytes: found 8 from offset 32001; allowed: up to 32008, where the region ends\n")
    return (f"exact in {seconds:.1f} s, {row['again']} copies and {row['folds_again']} folds again; 2 MiB of each in {large:.1f} s; "
            f"{end_by_silence(lab)}; {end_by_death(lab)}")


def end_by_silence(lab: Lab) -> str:
    with ranks_with_region(lab, "write") as (jobs, call):
        for job in jobs:
            job.wait_for("region_rank: open")
        lab.guests[GONE].stop()
        assert call.stdout is not None
        why = json.loads(call.stdout.readline())["message"]
        carry(lab, "region.ended", why)
        expect_said([job for rank, job in enumerate(jobs) if rank != GONE], "region_rank: no_region: ", why)
    expect(re.search(r"member 2 \(10\.77\.0\.3\) .* silent for 3 s", why) is not None, why)
    lab.guests[GONE].reset()
    return why


def end_by_death(lab: Lab) -> str:
    with ranks_with_region(lab, "write") as (jobs, _):
        for job in jobs:
            job.wait_for("region_rank: open")
        jobs[GONE].kill()
        expect(jobs[GONE].wait().status == KILLED, "it lives")
        expect_said([job for rank, job in enumerate(jobs) if rank != GONE], f"region_rank: peer_died: rank {GONE} died")
    return f"rank {GONE}'s death told"
