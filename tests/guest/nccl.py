# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios in which NCCL's plug-in reduces over the guests' soft-RoCE queue pairs, driven as NCCL drives it, without a GPU.

Guests reach no control service, so their rings are the configuration's, by a module in the place of libweir_switch.so.
"""

from __future__ import annotations

import re

from allreduce import END_OF_JOB_S, KILLED
from guest import Job
from lab import Lab
from scenarios import C_RING, HTTP_PORT, NCCL_RING, PLAIN, When, expect, scenario

RANK = "build/tests/support/nccl_rank"
PLUG_IN = "build/lib/host/nccl/libnccl-net-weir.so"
RINGS_MODULE = "build/tests/support/libconfigured_rings.so"
VERSIONS = (8, 10, 12)  # of the ranks' tables
FOLDER = "/tmp/nccl"
# What the others hear of a death, and with which result: from the rank's closed connection, or from its NIC.
DEATHS = re.compile(r"WARN Weir: .*rank 2 (died without farewell(.|\n)*: result 6|could not go on(.|\n)*: result 2)\n")


def start_ranks(lab: Lab, what: str) -> list[Job]:
    """Each in an empty folder of its own. Somebody takes connections where the switch would be asked for rings."""
    jobs = []
    for guest, version in zip(lab.guests, VERSIONS, strict=True):
        guest.run(f"rm -rf {FOLDER}; mkdir {FOLDER}")
        variables = (f"NCCL_COLLNET_ENABLE=1 WEIR_DEVICE=rxe0 WEIR_GID_INDEX=1 WEIR_SWITCH=127.0.0.1:{HTTP_PORT} "
                     f"WEIR_SWITCH_MODULE=/usr/bin/libconfigured_rings.so CONFIGURED_RINGS={NCCL_RING.ring_id},{C_RING.ring_id} "
                     f"WEIR_WINDOW={NCCL_RING.window} WEIR_MESSAGE_BYTES={NCCL_RING.max_message_bytes} WEIR_ACK_TIMEOUT_MS=500 "
                     f"WEIR_TIMEOUT_MS=30000 WEIR_FORM_TIMEOUT_MS=60000")
        jobs.append(guest.start(f"{variables} nccl_rank /usr/bin/libnccl-net-weir.so {version} {guest.who.rank} "
                                f"{len(VERSIONS)} {FOLDER} {what}"))
    return jobs


def share_handles(lab: Lab, communicator: str) -> None:
    """As NCCL's bootstrap does: each rank's to all others."""
    for guest in lab.guests:
        file = f"{FOLDER}/{communicator}{guest.who.rank}"
        guest.wait_until(f"test -e {file}")
        handle = guest.get(file)
        for other in lab.guests:
            if other is not guest:
                other.put(f"{file}.new", handle)
                other.run(f"mv {file}.new {file}")


@scenario(PLAIN, needs_weir=True, programs=(RANK, PLUG_IN, RINGS_MODULE), when=When.BY_NAME)
def nccl_plug_in(lab: Lab) -> str:
    """A rank is killed with calls under way: the others hear so by their next test. Then, on the same ring, every type, every
    operation, eight steps of twelve channels at once, and a second communicator."""
    for guest in lab.guests:
        guest.start(f"httpd -f -p {HTTP_PORT} -h /srv")
        guest.wait_listening(HTTP_PORT)
    jobs = start_ranks(lab, "die")
    share_handles(lab, "first")
    *others, victim = [job.wait(END_OF_JOB_S) for job in jobs]
    expect(victim.status == KILLED, victim.complaint)
    for result in others:
        expect(result.status == 0 and DEATHS.search(result.output) is not None, result.complaint)
    jobs = start_ranks(lab, "brief")
    for communicator in ("first", "other"):
        share_handles(lab, communicator)
    results = [job.wait(END_OF_JOB_S) for job in jobs]
    for rank, result in enumerate(results):
        rings = re.findall(rf"INFO Weir: rank {rank} of {len(jobs)} reduces by ring (\d+) of the switch, device rxe0", result.output)
        expect(result.status == 0 and "nccl_rank: brief ended well" in result.output, result.complaint)
        expect(rings == [str(NCCL_RING.ring_id), str(C_RING.ring_id)], result.output)
    return f"a death heard, then exact in {max(result.seconds for result in results):.1f} s, by two rings"
