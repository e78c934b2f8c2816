# SPDX-License-Identifier: BSD-3-Clause
"""Sparse all-reduces by weir-worker, which compares every element with dense tensors."""
from __future__ import annotations

from hosts import RANKS, ring_7
from lab import Lab, smoke_test
from test_worker import WORKER, start_workers, switch_and_hosts
from weir import expect, run_to_end

# Options, and what each rank must say of the result.
JOBS = (
    ("--density 0.01 --size 400004", "form=one-level"),
    ("--density 0.001 --block 16 --type bf16 --op average --size 1000000", "form=one-level"),
    ("--density 0.00001 --size 16000000", "form=two-levels"),
    ("--density 0.5 --block 0 --type i32 --op xor --size 40000", "form=one-level"),
    ("--density 1 --size 100000", "form=dense"),
    ("--density 0 --size 100000", "blocks=0 form=one-level"),
)
USAGE = (
    ("--density 0.1", "--density: only with --collective sparse-all-reduce; see"),
    ("--collective sparse-all-reduce -b 8", "--collective: found sparse-all-reduce; allowed: others in a sweep (--begin)"),
    ("--collective sparse-all-reduce --density 1.5", "--density: found '1.5'; allowed: 0 .. 1"),
    ("--collective sparse-all-reduce --block 65536", "--block: found '65536'; allowed: 0 .. 65535"),
)


@smoke_test("sparse")
def sparse(lab: Lab) -> None:
    """By the switch and without, with one rank's frames lost now and then."""
    switch, outside = switch_and_hosts(lab, ring_7())
    for ring, way in (("7", "switch"), ("8", "ring")):
        for options, due in JOBS:
            ranks = start_workers(lab, outside, ring, "--collective", "sparse-all-reduce", "--repeat", "2", *options.split(),
                                  of_rank=((), ("--loss", "0.01")))
            exchanged = set()
            for rank, process in enumerate(ranks):
                status, output = process.wait()
                expect(status == 0 and f"algorithm={way} verified=every_element" in output and due in output,
                       f"{options}: rank {rank}: {status}, {output}")
                exchanged.add(output.split("exchanged_bytes=")[1].split()[0])
            expect(len(exchanged) == 1, f"{options}: {RANKS} ranks say {exchanged}")
    switch.stop()


@smoke_test("sparse-usage")
def usage(_: Lab) -> None:
    complete = "--rank 0 --world 2 --rendezvous 127.0.0.1:7471 --device iface=lo --ip 10.0.0.1"
    for options, text in USAGE:
        ended = run_to_end([WORKER, *complete.split(), *options.split()])
        expect(ended.status == 2 and text in ended.errors, f"{options}: {ended}")
