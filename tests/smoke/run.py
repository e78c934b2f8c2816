#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Smoke tests: the built switch with hosts in network namespaces, its prompt, its telemetry, its start and end.

    tests/smoke/run.py                  all
    tests/smoke/run.py --list           their names
    tests/smoke/run.py 'placement*'     those whose name matches
    tests/smoke/run.py --at-once 1      one after the other

Most tests wait, and each has namespaces of its own, so two processes share them. Those that look at all of the machine come last,
one after the other. Needs root (namespaces), iproute2 and build/app (or $WEIR_BUILD/app). Ends in "smoke: N passed, N failed, N skipped";
status 1 when one failed.
"""
from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import itertools
import os
import resource
import signal
import struct
import sys
import time
import traceback
from types import FrameType

# Each adds its tests to lab.TESTS.
import test_aggregation  # noqa: F401
import test_bootstrap  # noqa: F401
import test_capture  # noqa: F401
import test_cleanup  # noqa: F401
import test_configs  # noqa: F401
import test_control  # noqa: F401
import test_errors  # noqa: F401
import test_events  # noqa: F401
import test_fabric_alerts  # noqa: F401
import test_fabric_allocations  # noqa: F401
import test_fabric_claim  # noqa: F401
import test_fabric_etcd  # noqa: F401
import test_fabric_export  # noqa: F401
import test_fabric_gate  # noqa: F401
import test_fabric_page  # noqa: F401
import test_fabric_rogues  # noqa: F401
import test_fabric_slurm  # noqa: F401
import test_forwarding  # noqa: F401
import test_full_disk  # noqa: F401
import test_gate  # noqa: F401
import test_held_rings  # noqa: F401
import test_host_regions  # noqa: F401
import test_incarnations  # noqa: F401
import test_interfaces  # noqa: F401
import test_leases  # noqa: F401
import test_links  # noqa: F401
import test_loops  # noqa: F401
import test_local_users  # noqa: F401
import test_metrics  # noqa: F401
import test_mpi  # noqa: F401
import test_mpi4py  # noqa: F401
import test_nccl  # noqa: F401
import test_operators  # noqa: F401
import test_plan  # noqa: F401
import test_port_changes  # noqa: F401
import test_process  # noqa: F401
import test_prompt  # noqa: F401
import test_regions  # noqa: F401
import test_reload  # noqa: F401
import test_replay  # noqa: F401
import test_restarts  # noqa: F401
import test_rings  # noqa: F401
import test_server  # noqa: F401
import test_shared_nics  # noqa: F401
import test_split  # noqa: F401
import test_soak  # noqa: F401
import test_sparse  # noqa: F401
import test_steering  # noqa: F401
import test_telemetry  # noqa: F401
import test_tenants  # noqa: F401
import test_torch  # noqa: F401
import test_tree_rings  # noqa: F401
import test_worker  # noqa: F401
from lab import TESTS, Lab, Test
from weir import WEIR, Failed, Skipped

LONGEST_TEST_S = 90
AT_ONCE = 2
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
NUMBER = struct.Struct("H")
VERDICTS = {verdict[0].encode(): verdict for verdict in ("passed", "FAILED", "SKIPPED")}


class Stopped(BaseException):
    """A signal asked the run to end."""


def stop_on_signal(number: int, _: FrameType | None) -> None:
    for repeated in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(repeated, signal.SIG_IGN)  # cleaning up takes some time and must finish
    raise Stopped(signal.Signals(number).name)


def give_up(_: int, __: FrameType | None) -> None:
    raise Failed(f"not done after {LONGEST_TEST_S} s")


def chosen(patterns: list[str]) -> list[Test]:
    for pattern in patterns:
        if not any(fnmatch.fnmatch(test.name, pattern) for test in TESTS):
            sys.exit(f"smoke: found test {pattern!r}; allowed: {', '.join(test.name for test in TESTS)}")
    return [test for test in TESTS
            if any(fnmatch.fnmatch(test.name, pattern) for pattern in patterns) or not (patterns or test.hidden)]


def busy_seconds() -> float:
    """Of processors: what ended children and theirs took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdict_of(test: Test) -> str:
    started, busy_before = time.monotonic(), busy_seconds()
    verdict, problem = "passed", ""
    signal.alarm(LONGEST_TEST_S)
    lab = Lab(test.name)
    try:
        test.body(lab)
    except Skipped as reason:
        verdict, problem = "SKIPPED", str(reason)
    except Failed as failure:
        verdict, problem = "FAILED", str(failure)
    except Exception:  # an error in a test is a failure; the others still run
        verdict, problem = "FAILED", traceback.format_exc()
    finally:
        signal.alarm(0)
        lab.close()
    took = f"{time.monotonic() - started:.1f} s, {busy_seconds() - busy_before:.1f} s of processors"
    told = "".join(f"\n    {line}" for line in problem.strip().splitlines())
    sys.stdout.write(f"  {verdict}  {test.name}  {took}{told}\n")  # in one piece: others write too
    sys.stdout.flush()
    return verdict


def run_by_turns(tests: list[Test], share: tuple[int, int]) -> None:
    """In a process of its own: takes the next test of all until none is left. Its pipes give numbers, and take verdicts."""
    numbers, verdicts = share
    with contextlib.suppress(Stopped):
        while number := os.read(numbers, NUMBER.size):
            index = NUMBER.unpack(number)[0]
            os.write(verdicts, NUMBER.pack(index) + verdict_of(tests[index])[0].encode())


def in_halves(tests: list[Test]) -> list[Test]:
    """Each of the first half beside one of the second: so neighbours, which often want the same of the machine, do not meet."""
    middle = (len(tests) + 1) // 2
    return [test for pair in itertools.zip_longest(tests[:middle], tests[middle:]) for test in pair if test is not None]


def run_side_by_side(tests: list[Test], count: int) -> list[str]:
    """Their verdicts; a test whose process died has failed."""
    (numbers, given), (answers, verdicts) = os.pipe(), os.pipe()
    os.write(given, b"".join(NUMBER.pack(index) for index in range(len(tests))))
    os.close(given)
    workers = []
    for _ in range(count):
        if (worker := os.fork()) == 0:
            os.close(answers)
            os.setsid()  # tests look for processes of their own session
            ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGTERM)
            run_by_turns(tests, (numbers, verdicts))
            sys.exit(0)
        workers.append(worker)
    os.close(numbers)
    os.close(verdicts)
    found = {}
    try:
        with open(answers, "rb") as stream:
            while answer := stream.read(NUMBER.size + 1):
                found[NUMBER.unpack(answer[:-1])[0]] = VERDICTS[answer[-1:]]
    except Stopped:
        for worker in workers:
            os.kill(worker, signal.SIGTERM)
        raise
    finally:
        for worker in workers:
            os.waitpid(worker, 0)
    return [found.get(index, "FAILED") for index in range(len(tests))]


def ending(passed: int, failed: int, skipped: int) -> int:
    print(f"smoke: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the tests' names")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, metavar="N", help=f"tests that run at once (default {AT_ONCE})")
    parser.add_argument("tests", nargs="*", metavar="NAME", help="shell patterns")
    options = parser.parse_args()
    tests = chosen(options.tests)
    if options.list:
        print("\n".join(test.name for test in tests))
        return 0
    if os.geteuid() != 0:
        print("smoke: *** ALL SKIPPED: network namespaces need root ***")
        return ending(0, 0, len(tests))
    if not WEIR.exists():
        print(f"smoke: there is no {WEIR}: meson setup build && ninja -C build")
        return ending(0, len(tests), 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    signal.signal(signal.SIGALRM, give_up)
    verdicts: list[str] = []
    together = in_halves([test for test in tests if not test.is_alone]) if options.at_once > 1 else []
    try:
        if len(together) > 1:
            verdicts += run_side_by_side(together, options.at_once)
        for test in tests:
            if len(together) <= 1 or test.is_alone:
                verdicts.append(verdict_of(test))
    except Stopped as stopped:
        print(f"smoke: stopped by {stopped}")
        verdicts += ["FAILED"] + ["SKIPPED"] * (len(tests) - len(verdicts) - 1)
    return ending(*(verdicts.count(word) for word in ("passed", "FAILED", "SKIPPED")))


if __name__ == "__main__":
    sys.exit(main())
