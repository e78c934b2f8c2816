# SPDX-License-Identifier: BSD-3-Clause
"""NCCL's plug-in: what NCCL hears of it, reductions by the switch as NCCL's proxy drives them, and how they end."""
from __future__ import annotations

import re
import shlex
import shutil
import signal
import time

from lab import Lab, smoke_test
from mpi_jobs import MpiFabric, working_ring
from netns import Namespace
from page_commands import first_sum
from test_control import said, socket_of
from test_held_rings import MODULE, switch_and_hosts, wait_for_chosen_ring, wait_for_rings, with_room
from test_worker import Process
from weir import BUILD, ROOT, expect, wait_for

PLUG_IN = BUILD / "lib/host/nccl/libnccl-net-weir.so"
RANK = BUILD / "tests/support/nccl_rank"
OTHER = BUILD / "tests/support/libnccl-net-other.so"
VERSIONS = (8, 9, 11, 12)  # of the ranks' tables; 10 is in the other tests
INVALID_USAGE, REMOTE_ERROR = 5, 6


def start(lab: Lab, outside: Namespace, scenario: str, versions: tuple[int, ...] = VERSIONS, **environment: str) -> list[Process]:
    """Each rank by its own version's tables, in a folder that is empty at first."""
    folder = lab.directory / f"ranks-{scenario}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return [Process(lab, outside, [RANK, PLUG_IN, str(version), str(rank), str(len(versions)), folder, scenario],
                    **{"NCCL_COLLNET_ENABLE": "1", "WEIR_DEVICE": f"host{rank}", "WEIR_IP": f"10.77.0.{rank + 1}",
                       "WEIR_SWITCH": f"unix:{socket_of(lab)}", "WEIR_SWITCH_MODULE": str(MODULE), "WEIR_WINDOW": "4",
                       "WEIR_MESSAGE_BYTES": "16384"} | environment) for rank, version in enumerate(versions)]


def check(ranks: list[Process], *due: str, status: int = 0) -> list[str]:
    ended = [process.wait() for process in ranks]
    for rank, (found, output) in enumerate(ended):
        expect(found == status and all(text in output for text in due), f"rank {rank}: {found}, {output}; due: {status}, {due}")
    return [output for _, output in ended]


@smoke_test("nccl-sums")
def sums(lab: Lab) -> None:
    """Every type and operation, and eight steps of twelve channels at once."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    outputs = check(start(lab, outside, "sum"), "INFO Weir: used, since NCCL_COLLNET_ENABLE is 1 and switch ",
                    "of 4 reduces by ring ", "nccl_rank: sum ended well")
    rings = {ring for output in outputs for ring in re.findall(r"of 4 reduces by ring (\d+) of the switch", output)}
    expect(len(rings) == 2, f"two communicators have the rings {rings}")
    expect("device 0 of 1: host2, CollNet's host2, speed 10000, memory 1 and 1" in outputs[2], outputs[2])
    wait_for_rings(lab, 7)
    switch.stop()


def reason(lab: Lab, outside: Namespace, scenario: str = "init", **environment: str) -> str:
    """What the first of the plug-in's ranks says."""
    status, output = start(lab, outside, scenario, (10,), **environment)[0].wait()
    expect(status == 0, output)
    return output


@smoke_test("nccl-not-used")
def not_used(lab: Lab) -> None:
    """Where Weir is not wanted or not there, NCCL hears so within two seconds, goes on by itself, and one line says why."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    nowhere = f"unix:{lab.directory}/nowhere.sock"
    refuses = "init: net Weir refuses, result 2\nnccl_rank: init ended well\n"
    outside.ip("address add 10.78.0.1/24 dev host0")  # where nobody else is
    for line, environment in (
            ("INFO Weir: not used: NCCL_COLLNET_ENABLE is not 1", {"NCCL_COLLNET_ENABLE": "0"}),
            ("INFO Weir: not used: NCCL_COLLNET_ENABLE is not 1", {"NCCL_COLLNET_ENABLE": "", "WEIR_NCCL_NET": str(OTHER)}),
            ("INFO Weir: not used: WEIR_DEVICE is not set", {"WEIR_DEVICE": ""}),
            ("WARN Weir: not used: WEIR_DEVICE: found 'eth9'; this host has host0, host1, host2, host3", {"WEIR_DEVICE": "eth9"}),
            ("WARN Weir: not used: device host0: ip: found '10.77.0.1.2'; allowed: none, or an IPv4 or IPv6 address", {"WEIR_IP": "10.77.0.1.2"}),
            ("WARN Weir: not used: WEIR_WINDOW: found '4k'; allowed: a number from 0 to 4294967295", {"WEIR_WINDOW": "4k"}),
            ("WARN Weir: not used: WEIR_SWITCH is not set: it is the address of the switch's control service, which makes the rings",
             {"WEIR_SWITCH": ""}),
            (f"WARN Weir: not used: no switch answers at WEIR_SWITCH={nowhere}: No such file or directory", {"WEIR_SWITCH": nowhere}),
            ("WARN Weir: not used: no switch answers at WEIR_SWITCH=127.0.0.1:1: Connection refused", {"WEIR_SWITCH": "127.0.0.1:1"}),
            ("WARN Weir: not used: no switch answers at WEIR_SWITCH=10.78.0.2:9465: no answer within 2000 ms",
             {"WEIR_SWITCH": "10.78.0.2:9465"}),
            ("WARN Weir: not used: no switch answers at WEIR_SWITCH=here: allowed: unix:/PATH or HOST:PORT", {"WEIR_SWITCH": "here"}),
            ("WARN Weir: not used: WEIR_NCCL_NET: /nowhere.so: cannot open shared object file: No such file or directory",
             {"WEIR_NCCL_NET": "/nowhere.so"}),
            (f"WARN Weir: not used: WEIR_NCCL_NET: {MODULE} has no ncclNetPlugin of version 8 to 12", {"WEIR_NCCL_NET": str(MODULE)})):
        found = reason(lab, outside, **environment)
        expect(found == f"{line}\n{refuses}", f"{environment}: {found}; due: {line}")
    switch.stop()


class Page:
    """What docs/nccl.md prints of a job: what is typed, and what NCCL's log and the switch say."""

    def __init__(self) -> None:
        listing = next(part for part in (ROOT / "docs/nccl.md").read_text().split("```\n") if "/etc/nccl.conf   " in part)
        self.operators = dict(re.findall(r"^(WEIR_\w+)=(\S+)$", listing, re.MULTILINE))  # lines of /etc/nccl.conf
        self.users = dict(re.findall(r"(NCCL_\w+)=(\S+)", listing))
        self.used, self.reduces = re.findall(r"^… NCCL (INFO Weir: .*?)(?:; …)?$", listing, re.MULTILINE)
        self.ring, self.question = re.search(r"^\$ weirctl (show ring (\d+)) ", listing, re.MULTILINE).group(2, 1)

    def here(self, text: str, device: str, switch: str, ring: int) -> str:
        """With this place's names."""
        for printed, ours in ((self.operators["WEIR_DEVICE"], device), (self.operators["WEIR_SWITCH"], switch), (self.ring, str(ring))):
            text = text.replace(printed, ours)
        return text


@smoke_test("nccl-late")
def late(lab: Lab) -> None:
    """What docs/nccl.md prints: weirctl shows the job's ring, NCCL's log that it is used. A rank is away for longer than any time limit,
    and the job goes on."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    page = Page()
    expect(PLUG_IN.name == f"libnccl-net-{page.users['NCCL_NET_PLUGIN']}.so" and {*page.operators} == {"WEIR_DEVICE", "WEIR_SWITCH"},
           f"docs/nccl.md prints {page.users} and {page.operators}")
    ranks = start(lab, outside, "late", (10, 12), WEIR_TIMEOUT_MS="2000", **page.users)
    ring = wait_for_chosen_ring(lab)
    summing = re.compile(rf"^ *{ring} +2 +4 +1024 +\d+ +\d+ +2 +\d+ +[1-9]", re.MULTILINE)  # both are connected, and slots are done
    wait_for(lambda: summing.search(said(lab, page.here(page.question, "", "", ring))) is not None, 20, "weirctl does not show that the ring sums")
    time.sleep(4.5)  # this long the last rank is away
    (lab.directory / "ranks-late/go").touch()
    first = check(ranks, f"of 2 reduces by ring {ring} of the switch", "nccl_rank: late ended well")[0]
    for line in (page.used, page.reduces.replace("0 of 4", "0 of 2")):
        due = page.here(line, "host0", f"unix:{socket_of(lab)}", ring)
        expect(f"{due}\n" in first or f"{due};" in first, f"{first}; docs/nccl.md has {due}")
    wait_for_rings(lab, 7)
    switch.stop()


def ends(lab: Lab, outside: Namespace, scenario: str, why: str, victim: int = 0) -> None:
    """The last rank goes, in the middle of calls if none of its calls happens to end just then."""
    ranks = start(lab, outside, scenario)
    status, output = ranks[-1].wait()
    expect(status == victim, f"{status}, {output}")
    for output in check(ranks[:-1], f": result {REMOTE_ERROR}", f"nccl_rank: {scenario} ended well"):
        expect(re.search(rf"WARN Weir: .*rank 3 ({why}|left the job before call)", output) is not None, output)
    wait_for_rings(lab, 7)


@smoke_test("nccl-dies")
def dies(lab: Lab) -> None:
    """A rank is killed during calls: the others hear of it by their next test, and close."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    ends(lab, outside, "die", "died without farewell", -signal.SIGKILL)
    switch.stop()


@smoke_test("nccl-closes")
def closes(lab: Lab) -> None:
    """A rank closes during calls, after it took its memory back or before: nothing is written there, and the others hear of it."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    for scenario, why in (("abort", "takes memory back during a call that uses it"), ("close", "has closed the communicator during a call")):
        ends(lab, outside, scenario, f"aborted its group: NCCL {why}")
    switch.stop()


def check_cause(ranks: list[Process], scenario: str, cause: str, result: int = REMOTE_ERROR) -> None:
    for output in check(ranks, f": result {result}", f"nccl_rank: {scenario} ended well"):
        expect(re.search(f"WARN Weir: .*{cause}", output) is not None, f"{output}; due: {cause}")


@smoke_test("nccl-bad-days")
def bad_days(lab: Lab) -> None:
    """The switch is stopped, a rank's calls are shorter, the ring is withdrawn: each rank hears why. The next job has a new ring."""
    fabric = MpiFabric(lab)
    ranks = start(lab, fabric.outside, "loop")
    working_ring(lab, fabric)
    fabric.switch.stop()
    check_cause(ranks, "loop", "aborted: .*the switch stops")
    fabric.switch = fabric.start_switch()
    check_cause(start(lab, fabric.outside, "unlike"), "unlike", "mismatch: ", INVALID_USAGE)
    wait_for_rings(lab, 7)
    ranks = start(lab, fabric.outside, "loop")
    ring = working_ring(lab, fabric)
    said(lab, f"withdraw ring {ring}")
    check_cause(ranks, "loop", f"aborted: .*ring {ring} was withdrawn")
    wait_for_rings(lab, 7)
    fabric.switch.stop()


@smoke_test("nccl-absent")
def absent(lab: Lab) -> None:
    """A rank that does not come, and a switch without room: CollNet's connect fails in time, and NCCL goes on without it."""
    switch, outside = switch_and_hosts(lab, with_room(lab, rings=0))
    ranks = start(lab, outside, "absent", WEIR_FORM_TIMEOUT_MS="1000")
    ranks.pop().wait()
    check(ranks, "WARN Weir: rank ", " of 4 does not reduce by the switch, and NCCL goes on without CollNet: rendezvous_timeout: ",
          "connect: result 2", "nccl_rank: absent ended well")
    check(start(lab, outside, "sum", (10, 12)), "NCCL goes on without CollNet: not_aggregated: switch ", "connect: result 2")
    switch.stop()


@smoke_test("nccl-pair")
def pair(lab: Lab) -> None:
    """Point-to-point of the plug-in's own."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    receiver, sender = check(start(lab, outside, "pair", (8, 10)), "nccl_rank: pair ended well")
    expect("pair: at most 32 sends at once" in sender, sender)
    expect("connect" not in receiver, receiver)
    expect("found a handle of another network plug-in" in sender, sender)
    expect("found a message of 100 bytes with tag 1; its receive has room for 99" in receiver and
           f"too long a message ends with result {REMOTE_ERROR}" in receiver, receiver)
    switch.stop()


@smoke_test("nccl-passes-another")
def passes_another(lab: Lab) -> None:
    """Another plug-in's point-to-point: NCCL finds the versions that it has, and CollNet has its devices."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    output = reason(lab, outside, WEIR_NCCL_NET=str(OTHER), WEIR_DEVICE="host0,host1", WEIR_IP="")
    expect("the other plug-in is loaded\n" in output, output)
    expect(f"point-to-point by {OTHER}\nthe other plug-in begins\n"
           "init: net Other, begun device 0 of 2: other, CollNet's other, speed 400000, memory 3 and 1\n"
           "init: net Other, begun device 1 of 2: host1, CollNet's host1, speed 400000, memory 3 and 1\n" in output, output)
    status, output = start(lab, outside, "init", (12,), WEIR_NCCL_NET=str(OTHER))[0].wait()
    expect(status == 1 and "there is no ncclNetPlugin_v12" in output, output)
    switch.stop()


PROGRAM = BUILD / "app/weir-nccl-check"


@smoke_test("nccl-page")
def page(lab: Lab) -> None:
    """What docs/nccl.md tells a newcomer to type ends in a sum that Weir has made."""
    script = lab.file("first.sh", first_sum("docs/nccl.md", lab.directory / "page", {"--repeat 20": f"--plug-in {shlex.quote(str(PLUG_IN))}"}))
    outside = lab.namespace()
    status, output = Process(lab, outside, ["bash", "-eu", script], WEIR_SWITCH_MODULE=str(MODULE)).wait()
    due = (r"^INFO Weir: used, since NCCL_COLLNET_ENABLE is 1 and switch unix:.* answers: .*by device weir0; ",
           r"^INFO Weir: rank 0 of 4 reduces by ring \d+ of the switch, device weir0$",
           r"^weir-nccl-check: 4 ranks, 12 MiB of each summed as f32, f16, i32, every element exact$")
    expect(status == 0 and all(re.search(line, output, re.MULTILINE) for line in due), f"{status}, {output}; due: {due}")


def checked(lab: Lab, outside: Namespace, *words: str, **environment: str) -> tuple[int, str]:
    return start_check(lab, outside, *words, **environment).wait()


def start_check(lab: Lab, outside: Namespace, *words: str, **environment: str) -> Process:
    return Process(lab, outside, [PROGRAM, "--plug-in", PLUG_IN, *words], **{"WEIR_SWITCH_MODULE": str(MODULE)} | environment)


@smoke_test("nccl-check")
def check_of_each_rank(lab: Lab) -> None:
    """Ranks that a launcher starts meet at rank 0; one that cannot, does not come or is another's tells all why."""
    switch, outside = switch_and_hosts(lab, with_room(lab))
    settings = lab.file("nccl.conf", f"# ours\nWEIR_SWITCH=unix:{socket_of(lab)}\nWEIR_WINDOW=4\nWEIR_MESSAGE_BYTES=16384\nWEIR_DEVICE=eth9\n")

    def ranks(count: int, **environment: str) -> list[tuple[int, str]]:
        started = [start_check(lab, outside, "--meet", "127.0.0.1:7471", "--wait", "5", **{
            "NCCL_CONF_FILE": str(settings), "WEIR_DEVICE": f"host{rank}", "WEIR_IP": f"10.77.0.{rank + 1}", "RANK": str(rank), "WORLD_SIZE": "4"} | ({} if rank != count - 1 else environment)) for rank in range(count)]
        return [process.wait() for process in started]

    right = ranks(4, MASTER_ADDR="127.0.0.1", MASTER_PORT="7470")
    expect([status for status, _ in right] == [0] * 4 and "4 ranks, 12 MiB of each" in right[0][1], f"{right}")
    for came, environment, due in (
            (4, {"WEIR_DEVICE": "eth9"}, "rank 3 cannot: Weir: not used: WEIR_DEVICE: found 'eth9'"),
            (4, {"WEIR_SWITCH": f"unix:{lab.directory}/nowhere"}, "rank 3 cannot: Weir: not used: no switch answers"),
            (3, {}, "has not come: rank 3"),
            (4, {"RANK": "2"}, "two come as rank 2"),
            (4, {"WEIR_RENDEZVOUS": "10.99.0.1:0"}, "rank 3 cannot: "),
            (4, {"WORLD_SIZE": "5"}, "one comes as rank 3 of 5; here are 4 ranks")):
        wrong = ranks(came, **environment)
        expect(all(status == 1 for status, _ in wrong) and sum(due in output for _, output in wrong) >= 3, f"{due}: {wrong}")
        expect(came == 4 or "rank 0 waits: has not come: rank 3\n" in wrong[0][1], f"{wrong}")
    wait_for_rings(lab, 7)
    for words, due in ((("--ranks", "1"), "--ranks: found '1'; allowed: 2 .. 256"), ((), "--ranks: found 0; allowed: 2 .. 256"),
                       (("--ranks", "2", "--rank", "2", "--meet", "a:1"), "--rank: found 2; allowed: 0 .. 1"),
                       (("--ranks", "2", "--rank", "1"), "--meet is needed"), (("--ranks", "2", "--meet", "a:1"), "--meet without --rank"),
                       (("--meet", "here"), "--meet: found 'here'; allowed: HOST:PORT"), (("all",), "found 'all'; allowed: options")):
        status, output = checked(lab, outside, *words)
        expect(status == 2 and due in output, f"{words}: {status}, {output}")
    switch.stop()
