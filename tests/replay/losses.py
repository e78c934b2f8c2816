# SPDX-License-Identifier: BSD-3-Clause
"""Jobs with losses and late ranks: tables of frames, each with its outcome and with what the switch says by itself, by
docs/protocol.md §9 and §10. Written by hand, like those of jobs.py, and compared in the same way."""
from __future__ import annotations

from dataclasses import replace

from jobs import SEND_ONLY, SECOND, Hellos, Job, Run, Said, Step, Steps, answer_of_receiver, begun, whole
from roce import flipped

MS, US = 10**6, 1000
NAK, RNR = 0x60, 0x2E  # syndromes: sequence error; timer code 14, 1.28 ms
FIRST_TIMER = 1 * MS  # before a round trip was measured
LEAST_TIMER = 60 * US
QUARTER = (4096 << 14) // 4  # of the ACK timeout with exponent 14


def started(run: Run) -> Steps:
    """All hellos, and the receivers' acknowledgements of their results."""
    yield from begun(run)
    yield from acknowledged(run, 0)


def acknowledged(run: Run, place: int, ranks: tuple[int, ...] = (0, 1, 2)) -> Steps:
    for rank in ranks:
        yield Step(answer_of_receiver(run, rank, place), "forward")


def lost_contribution(hellos: Hellos) -> Steps:
    """The switch asks the rank that lost a packet, once, and nobody else."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from started(run)
    for rank in (1, 2):
        yield Step(run.first(rank, 1), "aggregated")
        yield Step(run.last(rank, 1), "aggregated")
    yield Step(flipped(run.last(0, 1), 60), "drop.bad_icrc")
    yield Step(run.last(0, 1), "drop.unknown_message", says=(Said("ack", 0, 0), Said("nak", 0, 1)))
    yield Step(run.first(0, 2), "aggregated")  # asked already
    yield Step(run.first(0, 1), "aggregated")
    yield Step(run.last(0, 1), "aggregated")
    yield Step(run.first(0, 2), "drop.repeat_held")
    yield Step(run.last(0, 2), "aggregated")
    yield from acknowledged(run, 2)
    yield Step(run.last(1, 2), "drop.unknown_message", says=(Said("ack", 1, 2), Said("nak", 1, 3)))
    yield Step(run.last(1, 2), "drop.unknown_message", says=(Said("rnr-nak", 1, 3),))  # it went back in vain
    yield Step(run.first(1, 2), "aggregated")
    yield Step(run.last(1, 2), "aggregated")
    yield Step(run.first(2, 2), "aggregated")
    yield Step(run.last(2, 2), "aggregated")


def in_order(hellos: Hellos) -> Steps:
    """Results that are complete early wait for the earlier ones."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from started(run)
    for rank in (0, 2):
        for msg in (1, 2):
            yield Step(run.first(rank, msg), "aggregated")
            yield Step(run.last(rank, msg), "aggregated")
    yield Step(run.first(1, 1), "aggregated")
    yield Step(run.first(1, 2), "aggregated", says=(Said("ack", 1, 0), Said("nak", 1, 1)))
    yield Step(run.last(1, 2), "aggregated")
    yield Step(run.plain(2, SEND_ONLY, 5), "drop.out_of_turn")
    yield Step(run.first(0, 2), "drop.repeat_held")  # ready, and not released
    yield Step(run.first(1, 1), "drop.repeat_swallowed")  # asked for; its result is under way
    yield Step(run.last(1, 1), "aggregated")
    yield Step(run.first(1, 2), "drop.repeat_swallowed")
    yield Step(run.plain(2, SEND_ONLY, 5), "forward")


def lost_result(hellos: Hellos) -> Steps:
    """A receiver's NAK is answered from the cache; what the cache does not have goes to the sender."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from started(run)
    yield from whole(run, 1)
    yield from acknowledged(run, 2, (1, 2))
    yield Step(flipped(answer_of_receiver(run, 0, 1, NAK), 56), "forward")  # anybody's, without an ICRC
    yield Step(answer_of_receiver(replace(run, own_qp=0x12), 0, 1, NAK), "forward")  # another queue pair's
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended", says=(Said("resent", 0, 1), Said("resent", 0, 2)))
    yield Step(answer_of_receiver(run, 0, 2, NAK), "drop.nak_mended", says=(Said("ack", 0, 1), Said("resent", 0, 2)))
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended", says=(Said("ack", 0, 1),))
    yield Step(answer_of_receiver(run, 0, 9), "forward")  # above s: nothing is acknowledged
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=(Said("ack", 0, 1),))
    yield Step(answer_of_receiver(run, 0, 3, NAK), "forward")
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=(Said("ack", 0, 2),))
    yield Step(answer_of_receiver(run, 0, 3, NAK + 1), "forward")  # no sequence error


def repeats(hellos: Hellos) -> Steps:
    """One answer for each pass of a sender, but not two within a round trip."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    both = Said("resent", 0, 1), Said("resent", 0, 2)
    yield from started(run)
    yield from whole(run, 1)
    yield from acknowledged(run, 2, (1, 2))
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=both)
    yield Step(run.last(0, 1), "drop.repeat_swallowed")
    yield Step(run.first(0, 1), "drop.repeat_swallowed", 100 * US,  # 1 us after the answer: too soon
               says=tuple(Said("resent", 0, place, LEAST_TIMER - 1 * US) for place in (1, 2)))
    yield from acknowledged(run, 2, (0,))
    yield Step(run.last(0, 1), "drop.repeat_swallowed")
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=(Said("ack", 0, 2),))
    yield Step(flipped(run.last(0, 1), 60), "drop.bad_icrc")
    yield Step(run.last(0, 1), "drop.repeat_swallowed")
    yield Step(run.hello(0), "drop.repeat_swallowed", says=(Said("ack", 0, 2),))
    yield Step(run.first(0, 1, session=2), "drop.wrong_session")
    yield Step(run.first(0, 1, op=6, ring=8, epoch=4, rank=2), "drop.repeat_swallowed")  # a result was written over it
    yield from whole(run, 2)
    yield from acknowledged(run, 4)


def receiver_without_buffer(hellos: Hellos) -> Steps:
    """Its RNR NAK passes; its NAK is not mended until the sender comes again or the time is over."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    both = Said("resent", 0, 1), Said("resent", 0, 2)
    yield from started(run)
    yield from whole(run, 1)
    yield from acknowledged(run, 2, (1, 2))
    yield Step(answer_of_receiver(run, 0, 1, RNR), "forward")
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended")
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended", MS)
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=both)
    yield Step(answer_of_receiver(run, 0, 1, NAK), "drop.nak_mended")  # too soon
    yield Step(answer_of_receiver(run, 0, 1, RNR), "forward")
    yield Step(answer_of_receiver(run, 0, 2), "forward", 3 * MS,  # twice 1.28 ms later
               says=(Said("resent", 0, 1, 2 * 1280 * US), Said("resent", 0, 2, 2 * 1280 * US)) + tuple(
                   Said("resent", 0, place, 2 * 1280 * US + 2 * LEAST_TIMER) for place in (1, 2)) + tuple(
                   Said("resent", 0, place, 2 * 1280 * US + 6 * LEAST_TIMER) for place in (1, 2)))


def nobody_acknowledges(hellos: Hellos) -> Steps:
    """Results are sent again five times, each wait twice the one before."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from begun(run)
    waits = [FIRST_TIMER * (2**i - 1) for i in range(1, 6)]
    yield Step(answer_of_receiver(run, 0, 0), "forward", 50 * MS,
               says=tuple(Said("resent", rank, 0, wait) for wait in waits for rank in range(3)))
    yield from whole(run, 1)


def late_rank(hellos: Hellos) -> Steps:
    """The switch asks the only rank that is missing: a NAK, then RNR NAKs. No gap shows that anything was lost."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from started(run)
    yield Step(run.first(0, 1), "aggregated")
    yield Step(run.first(1, 1), "aggregated")
    since = LEAST_TIMER - 1 * US  # the timer runs from the slot's first packet
    yield Step(run.first(2, 1), "aggregated", 210 * MS, says=(
        Said("ack", 2, 0, since), Said("nak", 2, 1, since),
        *(Said("rnr-nak", 2, 1, since + wait * MS) for wait in (15, 30, 60, 120))))
    yield from acknowledged(run, 1)


def keep_alive(hellos: Hellos) -> Steps:
    """A sender that waits for a slow rank hears from the switch each quarter of its ACK timeout."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield Step(run.hello(0, ack_timeout=14), "aggregated", MS)
    yield Step(run.hello(1), "aggregated")  # it tells no ACK timeout
    yield Step(run.hello(2, qp=0), "aggregated", 40 * MS,  # it tells no queue pair
               says=(Said("keep-alive", 0, -1, QUARTER - US), Said("keep-alive", 0, -1, 2 * QUARTER - US)))
    yield from acknowledged(run, 0)
    yield Step(run.first(1, 1), "aggregated")
    yield Step(run.first(0, 1), "aggregated")
    yield Step(run.first(2, 1), "aggregated", 60 * MS,
               says=tuple(Said("keep-alive", 0, 0, i * QUARTER) for i in (1, 2, 3)))
    yield from acknowledged(run, 1)


def patience(hellos: Hellos) -> Steps:
    """After ten minutes without news the switch acknowledges nothing: the receiver has to, asked by a result."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    yield from started(run)
    yield from whole(run, 1)
    yield from acknowledged(run, 2)
    yield Step(run.first(0, 1), "drop.repeat_swallowed", 599 * SECOND, says=(Said("ack", 0, 2),))
    yield Step(run.first(0, 1), "drop.repeat_swallowed", 2 * SECOND, says=(Said("resent", 0, 2),))
    yield Step(run.last(0, 3), "drop.unknown_message")  # nobody is asked


def two_claims(hellos: Hellos) -> Steps:
    """While two connections of one host claim one queue pair, the switch answers for neither."""
    run = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    restarted = replace(run, nonce=0xB, qp=0x40, session=2)
    yield from started(run)
    yield from whole(run, 1)
    yield from acknowledged(run, 2)
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=(Said("ack", 0, 2),))
    yield Step(restarted.hello(0), "drop.hello_overtaken")
    yield Step(run.first(0, 1), "cached-repeat")
    yield Step(run.last(0, 3), "drop.unknown_message")
    yield Step(run.first(1, 1), "drop.repeat_swallowed", says=(Said("ack", 1, 2),))
    yield Step(restarted.last(0, 1), "drop.unclassified")  # it takes the waiting hello out
    yield Step(run.first(0, 1), "drop.repeat_swallowed", says=(Said("ack", 0, 2),))


def another_run(hellos: Hellos) -> Steps:
    """Another run begins: the ranks of the first are told when they send, and not before (§2a)."""
    first = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    second = replace(first, nonce=0xB, session=2, qp=0x40, own_qp=0x21, psn=0x500000)
    third = replace(first, nonce=0xC, session=3, qp=0x50, psn=0x600000)  # it has the first one's numbers
    yield from started(first)
    yield from whole(first, 1)
    yield from acknowledged(first, 2)
    yield Step(first.first(1, 2), "drop.incarnation_flush")
    yield Step(second.hello(0), "aggregated")
    yield Step(second.hello(1), "aggregated")
    yield Step(second.hello(2), "aggregated")
    yield from acknowledged(second, 0)
    yield Step(first.last(1, 2), "drop.dead_connection", MS, says=(Said("nak", 1, 3),))
    yield Step(first.last(1, 2), "drop.dead_connection")  # it has been told a moment ago
    yield Step(first.first(0, 9000), "drop.wrong_session")  # so far it cannot have come
    yield Step(first.first(0, 2), "drop.wrong_session", MS, says=(Said("nak", 0, 3),))
    yield Step(first.last(0, 2), "drop.dead_connection")
    yield Step(first.last(0, 2), "drop.dead_connection", MS, says=(Said("nak", 0, 3),))
    yield Step(first.hello(0), "drop.retired_nonce", MS, says=(Said("ack", 0, 2),))
    yield Step(flipped(first.last(0, 2), 60), "drop.dead_connection", MS)
    yield Step(third.hello(0), "held")
    yield Step(first.first(0, 2), "drop.wrong_session")  # the number may be another process's now
    yield Step(first.first(1, 2), "drop.wrong_session", says=(Said("nak", 1, 3),))
    yield from whole(second, 1)


def late_acknowledgements(hellos: Hellos) -> Steps:
    """Acknowledgements pass when another run has begun: the ranks are told of the PSN that these leave them at (§2a)."""
    first = Run(hellos, epoch=5, nonce=0xA, own_qp=0x11)
    second = replace(first, nonce=0xB, session=2, qp=0x40, own_qp=0x21, psn=0x500000)
    yield from started(first)
    yield from whole(first, 1)
    yield from acknowledged(first, 2)
    yield from whole(first, 2)
    yield from started(second)
    yield Step(answer_of_receiver(first, 0, 3), "forward")
    yield Step(answer_of_receiver(first, 0, 5), "forward")  # of what has not left
    yield Step(first.last(0, 2), "drop.dead_connection", MS, says=(Said("nak", 0, 4),))
    yield Step(first.first(0, 2), "drop.wrong_session", says=(Said("ack", 0, 3),))
    yield Step(answer_of_receiver(first, 1, 4), "forward")
    yield Step(answer_of_receiver(first, 1, 3), "forward")  # overtaken
    yield Step(first.last(1, 2), "drop.dead_connection", says=(Said("ack", 1, 4),))
    yield Step(first.first(1, 3), "drop.wrong_session", says=(Said("nak", 1, 5),))
    yield Step(answer_of_receiver(first, 2, 4, NAK), "forward")
    yield Step(first.first(2, 2), "drop.wrong_session", says=(Said("ack", 2, 3),))
    yield Step(answer_of_receiver(first, 2, 5, RNR), "forward")
    yield Step(first.last(2, 2), "drop.dead_connection", MS, says=(Said("ack", 2, 4),))
    yield from whole(second, 1)


LOSSES: dict[str, Job] = {job.__name__.replace("_", "-"): job for job in (
    lost_contribution, in_order, lost_result, repeats, receiver_without_buffer, nobody_acknowledges, late_rank,
    keep_alive, patience, two_claims, another_run, late_acknowledgements)}
