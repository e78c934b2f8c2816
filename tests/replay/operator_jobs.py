# SPDX-License-Identifier: BSD-3-Clause
"""Jobs by operators of the users' own: tables of frames, each with its outcome by docs/protocol.md §12. Written by hand,
like those of jobs.py, and compared in the same way."""
from __future__ import annotations

from dataclasses import replace
from typing import Iterator

from fold import AS_OPERATOR, TYPES
from jobs import (WRITE_ONLY, Hellos, Job, Run, Said, Step, Steps, answer, answer_of_receiver, begun, between_strangers,
                  whole)
from losses import NAK
from operators import EMPTY, ENTRY_BYTES, Loaded, entry, fields_by, table
from roce import BARRIER, BROADCAST, VERSION, VERSION_WITH_TABLE, Ina

TENANTS, TENANT = ("red", "blue"), "blue"  # the switch's, and whose the ring is
LOADED = (Loaded("maxloc"), Loaded("mxfp8-e4m3-sum"), Loaded("clipped-i8-sum", ("red", "blue")),
          Loaded("valid-sum", ("red",)))  # of which the last one is not for the ring
NOBODYS = bytes(range(32))  # a digest
MAXLOC, CLIPPED, MXFP8 = 128, 200, 255  # numbers, in most tables here
ALL = table({MAXLOC: "maxloc", CLIPPED: "clipped-i8-sum", MXFP8: "mxfp8-e4m3-sum"})


def by_operator(hellos: Hellos) -> Steps:
    """Each number is another operator, which folds each packet by itself. Other messages go on beside them."""
    run = Run(hellos, epoch=5, nonce=0xA, table=ALL)
    yield from begun(run)
    for msg, number in enumerate((CLIPPED, MAXLOC, MXFP8), 1):
        yield from whole(run, msg, **fields_by(number))
    yield from whole(run, 4)
    yield from whole(run, 5, collective=BROADCAST, root=2)
    for rank in range(run.world):
        yield Step(run.only(rank, 6, **fields_by(MXFP8)), "aggregated")  # without data
    yield Step(run.last(1, 1), "cached-repeat")
    yield Step(run.first(2, 2, **fields_by(MAXLOC)), "cached-repeat")
    yield Step(run.first(0, 7, **fields_by(MAXLOC)), "held")
    yield Step(run.first(1, 7, **fields_by(CLIPPED)), "drop.disagree_operation")
    yield Step(run.first(2, 7), "drop.disagree_operation")


def no_operators(hellos: Hellos) -> Steps:
    """Headers of messages that name none."""
    run = Run(hellos, epoch=5, nonce=0xA, table=ALL)
    yield Step(run.hello(0, dtype=AS_OPERATOR), "drop.unsupported_pair")
    yield Step(run.hello(0, **fields_by(MAXLOC)), "drop.unsupported_pair")
    yield from begun(run)
    for said in ({"op": MAXLOC - 1}, {"op": 0}, {"dtype": 0}, {"dtype": TYPES}, {"dtype": AS_OPERATOR - 1},
                 {"collective": BROADCAST}, {"collective": BARRIER, "msg_len": 0}):
        yield Step(run.first(0, 1, **(fields_by(MAXLOC) | said)), "drop.unsupported_pair")
    for size in (4, 12, 20):
        yield Step(small(run, 0, 1, bytes(size)), "drop.partial_element")
    yield Step(small(run, 0, 1, bytes(16)), "drop.incarnation_flush")
    run = replace(run, nonce=0xB, session=2, psn=0x100000)
    yield from begun(run)
    yield from whole(run, 1, **fields_by(MAXLOC))


def small(run: Run, rank: int, msg: int, data: bytes) -> bytes:
    """A message of one packet."""
    header = run.header(rank, msg=msg, msg_len=len(data), **fields_by(MAXLOC))
    return run.packet(rank, WRITE_ONLY, 2 * msg - 1, Ina.LAYOUT.pack(*header) + data)


def lacking_operators(hellos: Hellos) -> Steps:
    """What the switch lacks, or does not grant to the ring's tenant, is zero in the result of the hello, and no number of a
    message. A number means something within one incarnation alone."""
    run = Run(hellos, epoch=5, nonce=0xA, table=table({128: "complex-product", 129: "maxloc", 130: "valid-sum", 131: NOBODYS}))
    yield from begun(run)
    for number in (128, 130, 131, 132, 255):
        yield Step(run.first(0, 1, **fields_by(number)), "drop.operator_not_granted")
    yield from whole(run, 1, **fields_by(129))
    yield Step(run.first(0, 1, **fields_by(128)), "drop.operator_not_granted")  # also in the place of another
    others = replace(run, nonce=0xB, session=2, psn=0x100000, table=table({131: "maxloc", 129: "clipped-i8-sum"}))
    yield from begun(others)
    yield Step(others.first(0, 1, **fields_by(128)), "drop.operator_not_granted")
    yield from whole(others, 1, **fields_by(129))
    yield from whole(others, 2, **fields_by(131))
    nobodys = replace(run, nonce=0xC, session=3, psn=0x200000, table=table({129: NOBODYS}))
    yield from begun(nobodys)
    yield Step(nobodys.first(0, 1, **fields_by(129)), "drop.operator_not_granted")
    yield from whole(nobodys, 1)
    without = replace(run, nonce=0xD, session=4, psn=0x300000, table=b"")
    yield from begun(without)
    yield Step(without.first(0, 1, **fields_by(129)), "drop.operator_not_granted")
    yield from whole(without, 1)


def with_other_tables(run: Run) -> Iterator[Run]:
    """Each differs from the run's in one thing."""
    rows = [run.table[at:at + ENTRY_BYTES] for at in range(0, len(run.table), ENTRY_BYTES)]
    one_bit = run.table[:-1] + bytes([run.table[-1] ^ 1])
    for other in (one_bit, b"".join([entry(201, rows[0][8:]), *rows[1:]]), b"".join(reversed(rows)), b"".join(rows[1:]),
                  run.table + entry(201, NOBODYS), b""):
        yield replace(run, table=other)


def tables_that_differ(hellos: Hellos) -> Steps:
    """They make no set, of whatever version a hello is. The right hellos still do."""
    run = Run(hellos, epoch=5, nonce=0xA, table=ALL)
    yield Step(run.hello(0), "aggregated")
    yield Step(run.hello(1), "aggregated")
    for other in with_other_tables(run):
        yield Step(other.hello(2), "drop.operator_tables_differ")
    yield Step(replace(run, table=b"").hello(2, version=VERSION_WITH_TABLE), "drop.operator_tables_differ")
    yield Step(run.hello(2, op=1), "drop.disagree_operation")
    for other in with_other_tables(run):
        yield Step(other.hello(1), "drop.repeat_held")  # the first copy stays
    yield Step(replace(run, nonce=0xB, qp=0x40, table=entry(128, NOBODYS)).hello(2), "drop.hello_given_up")  # another run's
    yield Step(run.hello(2), "aggregated")
    yield Step(replace(run, table=run.table[:-1] + b"\0").hello(1), "cached-repeat")
    yield Step(replace(run, table=b"").hello(1), "drop.history_conflict")
    yield from whole(run, 1, **fields_by(CLIPPED))
    mixed = replace(run, nonce=0xC, session=2, psn=0x100000, table=b"")
    yield Step(mixed.hello(0), "aggregated")
    yield Step(replace(mixed, table=EMPTY[:4]).hello(1), "drop.bad_hello")
    yield Step(replace(mixed, table=ALL).hello(1), "drop.operator_tables_differ")
    yield Step(mixed.hello(1, version=VERSION_WITH_TABLE), "aggregated")  # it has none either
    yield Step(mixed.hello(2), "aggregated")
    yield from whole(mixed, 1)


def tables_that_are_none(hellos: Hellos) -> Steps:
    """A hello has a table as §12.1 says, or is refused."""
    run, one = Run(hellos, epoch=5, nonce=0xA, table=ALL), entry(128, "maxloc")
    for none in (entry(127, "maxloc"), entry(0, "maxloc"), one + one, one + entry(128, NOBODYS), EMPTY, one + EMPTY, one[:20],
                 one + one[:20], *(one[:at] + b"\1" + one[at + 1:] for at in range(1, 8)),
                 b"".join(entry(number, NOBODYS) for number in range(128, 133))):
        yield Step(replace(run, table=none).hello(0), "drop.bad_hello")
    yield Step(run.hello(0, version=VERSION), "drop.bad_hello")
    yield Step(run.hello(0, msg_len=ENTRY_BYTES), "drop.length_mismatch")
    yield Step(replace(run, table=one).hello(0, msg_len=2 * ENTRY_BYTES), "drop.length_mismatch")
    full = replace(run, table=table({number: NOBODYS for number in range(128, 131)} | {250: "maxloc"}))
    yield from begun(full)
    yield from whole(full, 1, **fields_by(250))


def table_said_again(hellos: Hellos) -> Steps:
    """The result of the hello is sent again with the switch's own table, and a sum by an operator as it was."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11, table=table({MAXLOC: "maxloc", CLIPPED: NOBODYS}))
    yield from begun(run)
    yield Step(answer_of_receiver(run, 0, 0, NAK), "drop.nak_mended", says=(Said("resent", 0, 0),))
    yield Step(run.hello(1), "drop.repeat_swallowed", says=(Said("resent", 1, 0),))
    yield Step(replace(run, table=ALL).hello(2), "drop.repeat_swallowed", says=(Said("resent", 2, 0),))
    yield Step(replace(run, table=b"\1" * 20).hello(2), "drop.wrong_session")  # no hello
    for rank in range(run.world):
        yield Step(answer_of_receiver(run, rank, 0), "forward")
    yield from whole(run, 1, **fields_by(MAXLOC))
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended", says=(Said("resent", 0, 1), Said("resent", 0, 2)))
    yield Step(run.first(1, 1, **fields_by(CLIPPED)), "drop.repeat_swallowed",
               says=(Said("resent", 1, 1), Said("resent", 1, 2)))


def operators_of_another_ring(hellos: Hellos) -> Steps:
    """Its hellos pass with their tables, and its messages when another switch has answered."""
    ours = Run(hellos, epoch=5, nonce=0xA, table=ALL)
    yield from begun(ours)
    for others in (hellos, [between_strangers(hello) for hello in hellos]):
        theirs = replace(ours, hellos=others, ring=9, qp=0x30)
        yield Step(theirs.first(0, 1, **fields_by(MAXLOC)), "drop.unannounced")
        yield Step(theirs.hello(0, version=VERSION), "drop.unannounced")  # that has no table: it is no hello
        yield Step(theirs.hello(0), "forward")
        yield Step(theirs.first(0, 1, **fields_by(MAXLOC)), "drop.unannounced")
        yield Step(answer(theirs, 0), "forward")
        yield Step(theirs.hello(0), "forward")
        yield Step(theirs.first(0, 1, **fields_by(MAXLOC)), "forward")
        yield Step(theirs.last(0, 1), "forward")
    yield from whole(ours, 1, **fields_by(MAXLOC))


OPERATOR_JOBS: dict[str, Job] = {job.__name__.replace("_", "-"): job for job in (
    by_operator, no_operators, lacking_operators, tables_that_differ, tables_that_are_none, table_said_again,
    operators_of_another_ring)}
