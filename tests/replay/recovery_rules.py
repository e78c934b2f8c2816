# SPDX-License-Identifier: BSD-3-Clause
"""How the model mends losses and keeps senders alive (docs/protocol.md §9 and §10; § means that page)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator, NamedTuple

from recovery_model import (ACK, FIRST_TIMER_NS, GRANULARITY_NS, MOST_DOUBLINGS, NAK, OWN_RNR_CODE, OWN_RNR_WAIT_NS,
                            PATIENCE_NS, RESEND_PAUSE_NS, RESENDS_AT_ONE_TIME, RESENDS_IN_A_TURN,
                            RESENDS_WITHOUT_PROGRESS, RNR, SEQUENCE_ERROR, Flow, Pass, Voice, ack_timeout_ns, follows,
                            plus, resent_result, rnr_wait_ns, syndrome_of, turned_around)
from roce import Roce, serial

if TYPE_CHECKING:
    from switch_model import Slot, Switch, Waiting


class Due(NamedTuple):
    """Something that a timer does."""

    ns: int
    act: Callable[[], None]


class Rules:
    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self.looked_ns = -GRANULARITY_NS
        self.turns: list[int] = []  # ranks whose results leave again
        self.allowed = (-1, 0)  # at which time, how many results
        self.hurry_ns: int | None = None  # when more of them leave

    @property
    def now(self) -> int:
        return self.switch.now

    def flow(self, rank: int) -> Flow:
        assert self.switch.incarnation
        return self.switch.incarnation.connections[rank].the_flow

    # -- who may speak

    def may_answer(self, rank: int) -> bool:
        """The sender told its queue pair, nobody else at its address and port claims it, and `a` is in the history."""
        live = self.switch.live(rank)
        if live is None or live.the_flow.qp == 0:
            return False
        flow = live.the_flow
        is_known = live.floor is None or serial(flow.a, live.floor, 24) >= 0
        return is_known and self.is_sole(flow.hello, flow.qp)

    def is_sole(self, hello: Roce, qp: int) -> bool:
        waiting = [(w.roce.src, w.port, w.qp) for hellos in self.switch.waiting for w in hellos]
        flows = [live.the_flow for live in map(self.switch.live, range(self.switch.case.world)) if live]
        living = [(flow.hello.src, self.switch.port_of_frame(flow.hello), flow.qp) for flow in flows]
        return (waiting + living).count((hello.src, self.switch.port_of_frame(hello), qp)) == 1

    def may_speak(self, rank: int) -> bool:
        assert self.switch.incarnation
        return self.now - self.switch.incarnation.news_ns <= PATIENCE_NS and self.may_answer(rank)

    # -- frames of the switch

    def say_ack(self, rank: int, kind: str = "ack") -> None:
        flow = self.flow(rank)
        self.switch.say(flow.voice.ack(plus(flow.a, -1)), kind, rank, self.switch.port_of_rank(rank))

    def say_nak(self, rank: int, syndrome: int, kind: str) -> None:
        flow = self.flow(rank)
        self.switch.say(flow.voice.says(syndrome, flow.a), kind, rank, self.switch.port_of_rank(rank))

    def send_again(self, rank: int, psn: int) -> None:
        slot, flow = self.released(rank, psn), self.flow(rank)
        if slot is None:
            return
        own = slot.packets[rank]
        assert slot.result is not None and self.switch.incarnation
        ina = own.message.ina if own.k == 0 else None
        frame = resent_result(flow.hello, own.roce, ina, self.switch.incarnation.session, slot.result,
                              asks=plus(psn, 1) == flow.s)
        receiver = (rank + 1) % self.switch.case.world
        self.switch.say(frame, "resent", rank, self.switch.port_of_rank(receiver), slot.tag, own.k)

    def released(self, rank: int, psn: int) -> Slot | None:
        """The slot whose result left on the rank's connection with this PSN."""
        return next((slot for slot in self.switch.slots.values()
                     if slot.released and slot.packets[rank].roce.psn == psn), None)

    def answer(self, rank: int) -> None:
        """R3: to who wants a … s-1 again."""
        flow = self.flow(rank)
        if flow.again_from is not None and not follows(flow.again_from, flow.a):
            return  # they have yet to leave
        if self.now < flow.may_answer_at():
            flow.answer_due = True
            return
        flow.answered()
        self.resend(rank)

    def resend(self, rank: int) -> None:
        """R3: a … s-1."""
        flow = self.flow(rank)
        flow.timed, flow.progress_ns, flow.answer_due, flow.again_from = None, self.now, False, flow.a
        is_alone = not self.turns
        if rank not in self.turns:
            self.turns.append(rank)
        if is_alone:
            self.resend_some()
        else:
            self.hurry_ns = self.now + RESEND_PAUSE_NS

    def resend_some(self) -> None:
        if self.allowed[0] != self.now:
            self.allowed = (self.now, RESENDS_AT_ONE_TIME)
        while self.turns and self.allowed[1]:
            rank = self.turns.pop(0)
            if self.switch.live(rank) is not None and self.take_turn(rank):
                self.turns.append(rank)
        self.hurry_ns = self.now + RESEND_PAUSE_NS if self.turns else None

    def take_turn(self, rank: int) -> bool:
        """Whether more is to leave."""
        flow = self.flow(rank)
        if flow.again_from is None:
            self.allowed = (self.now, self.allowed[1] - 1)
            return False
        released = [slot.packets[rank].roce.psn for slot in self.switch.slots.values() if slot.released]
        first = flow.a if follows(flow.a, flow.again_from) else flow.again_from
        wanted = [psn for psn in released if not follows(first, psn) and follows(flow.s, psn)]
        wanted.sort(key=lambda psn: serial(psn, first, 24))
        count = min(RESENDS_IN_A_TURN, self.allowed[1])
        flow.again_from = wanted[count] if len(wanted) > count else None
        for psn in wanted[:count]:
            self.send_again(rank, psn)
            flow.progress_ns = self.now
        self.allowed = (self.now, self.allowed[1] - max(len(wanted[:count]), 1))
        return flow.again_from is not None

    # -- R2

    def note_gap(self, rank: int, psn: int) -> None:
        if follows(psn, self.flow(rank).e):
            self.ask(rank)

    def ask(self, rank: int) -> None:
        flow = self.flow(rank)
        if self.now < max(flow.hushed_until_ns, flow.may_ask_at()) or not self.may_speak(rank):
            return
        if flow.asks == 0:
            self.say_ack(rank)
            self.say_nak(rank, SEQUENCE_ERROR, "nak")
        else:
            self.say_nak(rank, RNR << 5 | OWN_RNR_CODE, "rnr-nak")
            flow.hushed_until_ns = self.now + OWN_RNR_WAIT_NS
        flow.asked(self.now)

    # -- R4

    def repeat(self, rank: int, psn: int) -> None:
        """A repeat of a packet below s."""
        flow = self.flow(rank)
        flow.heard(psn, self.now)
        if follows(flow.a, psn):
            if flow.done is Pass.NOTHING and self.may_speak(rank):
                flow.done = Pass.ACKNOWLEDGED
                self.say_ack(rank)
            elif flow.done is Pass.NOTHING and self.now >= flow.kept_alive_ns + flow.answer_pause():
                flow.done = Pass.ACKNOWLEDGED
                flow.kept_alive_ns = self.now
                self.send_again(rank, plus(flow.s, -1))  # the receiver has to say it itself
        elif flow.done is not Pass.RESENT:
            flow.done = Pass.RESENT
            under_way = flow.answers_us and self.now - flow.progress_ns < flow.round_trip.timer()
            if not under_way:
                self.answer(rank)

    # -- R3

    def absorbs(self, answer: Roce, rank: int) -> bool:
        """Takes a receiver's ACK or NAK down; says whether it ends here."""
        syndrome, flow = syndrome_of(answer), self.flow(rank)
        if syndrome is None:
            return False
        if syndrome >> 5 == ACK:
            self.take(answer, syndrome, flow, plus(answer.psn, 1))
        elif syndrome >> 5 == RNR and self.take(answer, syndrome, flow, answer.psn):
            flow.no_buffer, flow.answer_due, flow.again_from = True, False, None
            flow.held_until_ns = self.now + 2 * rnr_wait_ns(syndrome)
            flow.hushed_until_ns = max(flow.hushed_until_ns, flow.held_until_ns)
        return syndrome == SEQUENCE_ERROR and self.mends(answer, rank, flow)

    def take(self, answer: Roce, syndrome: int, flow: Flow, upto: int) -> bool:
        taken = flow.acknowledged(upto, self.now)
        if taken:
            flow.voice.take(answer, syndrome)
        return taken

    def mends(self, nak: Roce, rank: int, flow: Flow) -> bool:
        before = flow.a
        is_new = self.take(nak, NAK << 5, flow, nak.psn)
        is_old = follows(before, nak.psn)
        if not (is_new or is_old) or not follows(flow.s, nak.psn) or not self.may_speak(rank):
            return False
        if nak.psn != before:
            self.say_ack(rank)
        if is_new and self.now >= flow.held_until_ns:
            self.answer(rank)
        return True

    # -- timers: R5 and §10

    def advance(self, until: int) -> None:
        """Lets the timers run out that are due by then, each at its time."""
        while True:
            next_ns = min((due.ns for due in self.dues()), default=until + 1)
            next_ns = max(next_ns, self.looked_ns + GRANULARITY_NS, self.now)
            hurry_ns = next_ns if self.hurry_ns is None else min(self.hurry_ns, next_ns)
            if hurry_ns > until:
                return
            self.switch.now = hurry_ns
            if hurry_ns == next_ns:
                self.looked_ns = next_ns
                self.fire()
            self.resend_some()

    def fire(self) -> None:
        """One action may postpone a later one."""
        for place, _ in enumerate(list(self.dues_by_place())):
            due = list(self.dues_by_place())[place]
            if due is not None and due.ns <= self.now:
                due.act()

    def dues(self) -> Iterator[Due]:
        yield from (due for due in self.dues_by_place() if due is not None)

    def dues_by_place(self) -> Iterator[Due | None]:
        """In the order in which things happen at one time."""
        for waiting in self.switch.waiting:
            yield from map(self.hello_due, waiting)
        for rank in range(self.switch.case.world):
            yield self.within_patience(self.late_due(rank))
            yield self.within_patience(self.answer_due(rank))
            yield self.within_patience(self.outstanding_due(rank) or self.waiting_due(rank))

    def within_patience(self, due: Due | None) -> Due | None:
        if due is None or self.switch.incarnation is None:
            return None
        return due if due.ns - self.switch.incarnation.news_ns <= PATIENCE_NS else None

    def hello_due(self, hello: Waiting) -> Due | None:
        if hello.qp == 0 or hello.ina.ack_timeout == 0:
            return None
        ns = hello.kept_alive_ns + ack_timeout_ns(hello.ina.ack_timeout) // 4
        return Due(ns, lambda: self.keep_hello_alive(hello)) if ns - hello.arrived_ns <= PATIENCE_NS else None

    def keep_hello_alive(self, hello: Waiting) -> None:
        hello.kept_alive_ns = self.now
        if self.is_sole(hello.roce, hello.qp):
            voice = Voice(turned_around(hello.roce, hello.qp))
            self.switch.say(voice.ack(plus(hello.roce.psn, -1)), "keep-alive", hello.ina.rank, hello.port)

    def late_due(self, rank: int) -> Due | None:
        """Only missing ranks keep the oldest slot waiting."""
        stalled = self.switch.stalled()
        if stalled is None or rank in stalled[0].packets or not self.may_answer(rank):
            return None
        flow = self.flow(rank)
        flows = map(self.flow, range(self.switch.case.world))
        longest = max((other.timer for other in flows if other.round_trip.smoothed), default=FIRST_TIMER_NS)
        return Due(max(stalled[1] + longest, flow.heard_ns + longest, flow.hushed_until_ns, flow.may_ask_at()),
                   lambda: self.ask(rank))

    def answer_due(self, rank: int) -> Due | None:
        live = self.switch.live(rank)
        if live is None or not live.the_flow.qp or not live.the_flow.answer_due or not live.the_flow.outstanding:
            return None
        flow = live.the_flow
        return Due(max(flow.may_answer_at(), flow.held_until_ns), lambda: self.answer(rank))

    def outstanding_due(self, rank: int) -> Due | None:
        if not self.may_answer(rank):
            return None
        flow = self.flow(rank)
        if not flow.outstanding or flow.resends == RESENDS_WITHOUT_PROGRESS or flow.again_from is not None:
            return None
        return Due(max(flow.progress_ns + flow.timer, flow.hushed_until_ns), lambda: self.resend_late(rank))

    def resend_late(self, rank: int) -> None:
        flow = self.flow(rank)
        flow.resends += 1
        flow.doublings = min(flow.doublings + 1, MOST_DOUBLINGS)
        self.resend(rank)

    def waiting_due(self, rank: int) -> Due | None:
        """A sender whose packet the oldest slot holds, and that has no answer outstanding (§10)."""
        stalled = self.switch.stalled()
        if stalled is None or rank not in stalled[0].packets or not self.may_answer(rank):
            return None
        flow = self.flow(rank)
        if flow.outstanding or flow.ack_timeout == 0:
            return None
        ns = max(flow.heard_ns, flow.kept_alive_ns) + ack_timeout_ns(flow.ack_timeout) // 4
        return Due(ns, lambda: self.keep_alive(rank))

    def keep_alive(self, rank: int) -> None:
        self.flow(rank).kept_alive_ns = self.now
        self.say_ack(rank, "keep-alive")
