# SPDX-License-Identifier: BSD-3-Clause
"""How the model mends losses and keeps senders alive (docs/protocol.md §9 and §10; § means that page)."""
from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Callable, Iterator, NamedTuple

from recovery_model import (ACK, ENDED, FIRST_TIMER_NS, GRANULARITY_NS, MOST_DOUBLINGS, NAK, OWN_RNR_CODE, OWN_RNR_WAIT_NS,
                            PATIENCE_NS, RESEND_PAUSE_NS, RESENDS_AT_ONE_TIME, RESENDS_IN_A_TURN,
                            RESENDS_WITHOUT_PROGRESS, RNR, SEQUENCE_ERROR, TELL_PAUSE_NS, UNTOLD_CLIMB_NS, Farewell,
                            Flow, Pass, Voice, ack_timeout_ns, follows, plus, remembered_header, resent,
                            rnr_wait_ns, syndrome_of, turned_around)
from roce import Roce, serial
from tree import Kind, Line

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
        self.longest: int | None = None  # timer, while timers are looked at
        self.looks: list[int] = []  # in order, when a switch that may be late was seen to look
        self.turns: list[Line] = []  # on which results leave again
        self.allowed = (-1, 0)  # at which time, how many results
        self.hurry_ns: int | None = None  # when more of them leave

    @property
    def now(self) -> int:
        return self.switch.now

    def flow(self, line: int) -> Flow:
        assert self.switch.incarnation
        return self.switch.incarnation.connections[line].the_flow

    def asks_a_switch(self, line: Line) -> bool:
        return self.switch.tree.is_switch(line.sender)

    # -- who may speak

    def may_answer(self, line: int) -> bool:
        """The sender told its queue pair, nobody else at its address and port claims it, and `a` is in the history."""
        live = self.switch.live(line)
        if live is None or live.the_flow.qp == 0:
            return False
        flow = live.the_flow
        is_known = live.floor is None or serial(flow.a, live.floor, 24) >= 0
        return is_known and self.is_sole(flow.hello, flow.qp)

    def is_sole(self, hello: Roce, qp: int) -> bool:
        return self.claims().count((hello.src, self.switch.port_of_frame(hello), qp)) == 1

    def claims(self) -> list[tuple[str, int, int]]:
        """Of hellos that wait and of live connections: address, port, queue pair."""
        waiting = [(w.roce.src, w.port, w.qp) for hellos in self.switch.waiting for w in hellos]
        flows = [live.the_flow for live in map(self.switch.live, range(len(self.switch.tree.lines))) if live]
        living = [(flow.hello.src, self.switch.port_of_frame(flow.hello), flow.qp) for flow in flows]
        return waiting + living

    def may_speak(self, line: int) -> bool:
        assert self.switch.incarnation
        return self.now - self.switch.incarnation.news_ns <= PATIENCE_NS and self.may_answer(line)

    # -- §2a, "Told"

    def take_leave(self) -> None:
        """Of the ranks of the incarnation that ends now."""
        for line in self.switch.tree.lines:
            live = self.switch.live(line.number)
            if live is None or self.asks_a_switch(line) or not self.may_answer(line.number):
                continue
            flow = live.the_flow
            if not self.is_greeted(flow.hello):
                live.farewell = Farewell(line.rank, self.switch.port_of_frame(flow.hello),
                                         self.switch.bound_port_of_side(line.receiver), self.now)

    def is_greeted(self, roce: Roce) -> bool:
        """A hello waits on the connection."""
        return any(waiting.roce.connection == roce.connection for hellos in self.switch.waiting for waiting in hellos)

    def tell(self, farewell: Farewell, flow: Flow, roce: Roce, port: int) -> None:
        """A packet that may be its rank's has come by the port."""
        reach = 2 * self.switch.case.window * self.switch.case.packets_per_message
        is_near = -reach <= serial(roce.psn, flow.a, 24) < reach
        is_claimed = (flow.hello.src, port, flow.qp) in self.claims()
        if not is_near or port != farewell.port or is_claimed or self.is_greeted(roce):
            return
        if follows(flow.a, roce.psn):
            if self.now >= farewell.acknowledged_ns + TELL_PAUSE_NS:
                farewell.acknowledged_ns = self.now
                self.switch.say(flow.voice.ack(plus(flow.a, -1)), "ack", farewell.rank, farewell.port)
        elif self.now >= farewell.told_ns + TELL_PAUSE_NS:
            farewell.told_ns = self.now
            self.switch.say(flow.voice.says(ENDED, flow.a), "nak", farewell.rank, farewell.port)

    def take_late(self, answer: Roce, port: int) -> None:
        """Perhaps an acknowledgement that was under way when its run ended: of the latest with that queue pair."""
        leavers = [(c.farewell, c.the_flow) for c in self.switch.connections.values()
                   if c.farewell and c.the_flow.qp == answer.qp and (c.the_flow.hello.dst, c.the_flow.hello.src) == (answer.src, answer.dst)]
        syndrome = syndrome_of(answer)
        if not leavers or syndrome is None:
            return
        farewell, flow = max(leavers, key=lambda leaver: leaver[0].since_ns)
        if farewell.acknowledged_by not in (None, port):
            return
        if syndrome >> 5 == ACK:
            self.take(answer, syndrome, flow, plus(answer.psn, 1))
        elif syndrome >> 5 == RNR or syndrome == SEQUENCE_ERROR:
            self.take(answer, syndrome, flow, answer.psn)

    # -- frames of the switch

    def say_ack(self, line: Line, kind: str = "ack") -> None:
        flow = self.flow(line.number)
        self.switch.say(flow.voice.ack(plus(flow.a, -1)), kind, line.rank, self.switch.port_of_side(line.sender))

    def say_nak(self, line: Line, syndrome: int, kind: str) -> None:
        flow = self.flow(line.number)
        self.switch.say(flow.voice.says(syndrome, flow.a), kind, line.rank, self.switch.port_of_side(line.sender))

    def send_again(self, line: Line, psn: int) -> None:
        slot, flow = self.left_with(line, psn), self.flow(line.number)
        if slot is None:
            return
        own = slot.packets[line.number]
        header = None
        if own.k == 0:
            hello = flow.hello.ina()
            assert hello
            header = self.switch.outgoing_header(remembered_header(hello, own.message.ina), line)
        frame = resent(flow.hello, own.roce, header, self.switch.data_for(slot, line), asks=plus(psn, 1) == flow.s)
        self.switch.say(frame, "resent", line.rank, self.switch.port_of_side(line.receiver), slot.tag, own.k)

    def left_with(self, line: Line, psn: int) -> Slot | None:
        """The slot whose packet left on the line with this PSN."""
        return next((slot for slot in self.cached(line) if slot.packets[line.number].roce.psn == psn), None)

    def cached(self, line: Line) -> list[Slot]:
        """The slots whose packets have left on the line."""
        return [slot for slot in self.switch.slots.values() if self.switch.has_left(slot, line.number)]

    def answer(self, line: Line) -> None:
        """R3: to who wants a … s-1 again."""
        flow = self.flow(line.number)
        if self.is_under_way(flow):
            return
        if self.now < self.may_answer_at(line):
            flow.answer_due = True
            return
        flow.answered()
        self.resend(line)

    def may_answer_at(self, line: Line) -> int:
        flow = self.flow(line.number)
        return flow.may_answer_switch_at() if self.switch.tree.is_switch(line.receiver) else flow.may_answer_at()

    @staticmethod
    def is_under_way(flow: Flow) -> bool:
        """They have yet to leave."""
        return flow.again_from is not None and not follows(flow.again_from, flow.a)

    def resend(self, line: Line) -> None:
        """R3: a … s-1."""
        flow = self.flow(line.number)
        flow.timed, flow.progress_ns, flow.answer_due, flow.again_from = None, self.now, False, flow.a
        is_alone = not self.turns
        if line not in self.turns:
            self.turns.append(line)
        if is_alone:
            self.resend_some()
        else:
            self.hurry_ns = self.now + RESEND_PAUSE_NS

    def resend_some(self) -> None:
        if self.allowed[0] != self.now:
            self.allowed = (self.now, RESENDS_AT_ONE_TIME)
        while self.turns and self.allowed[1]:
            line = self.turns.pop(0)
            if self.switch.live(line.number) is not None and self.take_turn(line):
                self.turns.append(line)
        self.hurry_ns = self.now + RESEND_PAUSE_NS if self.turns else None

    def take_turn(self, line: Line) -> bool:
        """Whether more is to leave."""
        flow = self.flow(line.number)
        if flow.again_from is None:
            self.allowed = (self.now, self.allowed[1] - 1)
            return False
        left = [slot.packets[line.number].roce.psn for slot in self.cached(line)]
        first = flow.a if follows(flow.a, flow.again_from) else flow.again_from
        wanted = [psn for psn in left if not follows(first, psn) and follows(flow.s, psn)]
        wanted.sort(key=lambda psn: serial(psn, first, 24))
        count = min(RESENDS_IN_A_TURN, self.allowed[1])
        flow.again_from = wanted[count] if len(wanted) > count else None
        for psn in wanted[:count]:
            self.send_again(line, psn)
            flow.progress_ns = self.now
        self.allowed = (self.now, self.allowed[1] - max(len(wanted[:count]), 1))
        return flow.again_from is not None

    # -- R2

    def note_gap(self, line: Line, psn: int) -> None:
        if follows(psn, self.flow(line.number).e):
            self.ask(line)

    def may_ask_at(self, line: Line) -> int:
        flow = self.flow(line.number)
        return flow.may_ask_switch_at() if self.asks_a_switch(line) else flow.may_ask_at()

    def ask(self, line: Line) -> None:
        flow = self.flow(line.number)
        if self.now < max(flow.hushed_until_ns, self.may_ask_at(line)) or not self.may_speak(line.number):
            return
        if self.asks_a_switch(line):
            self.say_nak(line, SEQUENCE_ERROR, "nak")
            flow.asks = flow.asks_in_a_row()
        elif flow.asks == 0:
            self.say_ack(line)
            self.say_nak(line, SEQUENCE_ERROR, "nak")
        else:
            self.say_nak(line, RNR << 5 | OWN_RNR_CODE, "rnr-nak")
            flow.hushed_until_ns = self.now + OWN_RNR_WAIT_NS
            if line.kind is Kind.OUTGOING and flow.outstanding:
                self.answer(line)  # perhaps it waits for the acknowledgement of a sum
        flow.asked(self.now)

    # -- R4

    def repeat(self, line: Line, psn: int) -> None:
        """A repeat of a packet below s."""
        flow = self.flow(line.number)
        flow.heard(psn, self.now)
        if follows(flow.a, psn):
            if flow.done is Pass.NOTHING and self.may_speak(line.number):
                flow.done = Pass.ACKNOWLEDGED
                self.say_ack(line)
            elif flow.done is Pass.NOTHING and self.now >= flow.kept_alive_ns + flow.answer_pause():
                flow.done = Pass.ACKNOWLEDGED
                flow.kept_alive_ns = self.now
                self.send_again(line, plus(flow.s, -1))  # the receiver has to say it itself
        elif flow.done is not Pass.RESENT:
            flow.done = Pass.RESENT
            if not self.is_answered_already(line, flow):
                self.answer(line)

    def is_answered_already(self, line: Line, flow: Flow) -> bool:
        """The pass is what the switch has asked for itself, and results are under way; or sums, if it has asked once."""
        if line.kind is Kind.OUTGOING:
            return flow.answers_us and flow.asks <= 1
        return flow.answers_us and self.now - flow.progress_ns < flow.round_trip.timer()

    # -- R3

    def absorbs(self, answer: Roce, line: Line) -> bool:
        """Takes a receiver's ACK or NAK down; says whether it ends here."""
        syndrome, flow = syndrome_of(answer), self.flow(line.number)
        if syndrome is None:
            return False
        if syndrome >> 5 == ACK:
            self.take(answer, syndrome, flow, plus(answer.psn, 1))
        elif syndrome >> 5 == RNR and self.take(answer, syndrome, flow, answer.psn):
            flow.no_buffer, flow.answer_due, flow.again_from = True, False, None
            flow.held_until_ns = self.now + 2 * rnr_wait_ns(syndrome)
            flow.hushed_until_ns = max(flow.hushed_until_ns, flow.held_until_ns)
        return syndrome == SEQUENCE_ERROR and self.mends(answer, line, flow)

    def take(self, answer: Roce, syndrome: int, flow: Flow, upto: int) -> bool:
        taken = flow.acknowledged(upto, self.now)
        if taken:
            flow.voice.take(answer, syndrome)
        return taken

    def mends(self, nak: Roce, line: Line, flow: Flow) -> bool:
        before = flow.a
        is_new = self.take(nak, NAK << 5, flow, nak.psn)
        is_old, is_cached = follows(before, nak.psn), follows(flow.s, nak.psn)
        goes_up = line.kind is Kind.OUTGOING
        is_heard = self.may_speak(line.number)
        is_mendable = is_cached and (is_new or is_old)
        if not (is_heard or goes_up if is_mendable else goes_up or self.switch.tree.is_switch(line.sender)):
            return False
        if nak.psn != before and is_heard and (is_new or is_old and not goes_up):
            self.say_ack(line)
        if is_cached and (is_new or is_old and goes_up) and self.now >= flow.held_until_ns:
            self.answer(line)
        return True

    # -- timers: R5 and §10

    def look_ns(self) -> int | None:
        """When timers are looked at next."""
        due_ns = min((due.ns for due in self.dues()), default=None)
        if due_ns is None:
            return None
        earliest = max(due_ns, self.looked_ns + GRANULARITY_NS, self.now)
        seen = self.looks[bisect_left(self.looks, earliest):][:1]
        return seen[0] if seen and seen[0] - earliest < GRANULARITY_NS else earliest

    def next_ns(self) -> int | None:
        """When the switch does something by itself."""
        return min((ns for ns in (self.look_ns(), self.hurry_ns) if ns is not None), default=None)

    def advance(self, until: int) -> None:
        """Lets the timers run out that are due by then, each at its time."""
        while True:
            look_ns = self.look_ns()
            now = min((ns for ns in (look_ns, self.hurry_ns) if ns is not None), default=until + 1)
            if now > until:
                return
            self.switch.now = now
            if now == look_ns:
                self.looked_ns = now
                self.fire()
            self.resend_some()

    def fire(self) -> None:
        """One action may postpone a later one; but for how long a rank may be late is found once."""
        self.longest = self.longest_timer() if self.switch.incarnation else None
        for place, _ in enumerate(list(self.dues_by_place())):
            due = list(self.dues_by_place())[place]
            if due is not None and due.ns <= self.now:
                due.act()
        self.longest = None

    def dues(self) -> Iterator[Due]:
        yield from (due for due in self.dues_by_place() if due is not None)

    def dues_by_place(self) -> Iterator[Due | None]:
        """In the order in which things happen at one time."""
        yield self.climb_due()
        for waiting in self.switch.waiting:
            yield from map(self.hello_due, waiting)
        for line in self.switch.tree.lines:
            yield self.within_patience(self.late_due(line))
            yield self.within_patience(self.answer_due(line))
            yield self.within_patience(self.outstanding_due(line) or self.waiting_due(line))

    def within_patience(self, due: Due | None) -> Due | None:
        if due is None or self.switch.incarnation is None:
            return None
        return due if due.ns - self.switch.incarnation.news_ns <= PATIENCE_NS else None

    def hello_due(self, hello: Waiting) -> Due | None:
        if hello.qp == 0 or hello.ina.ack_timeout == 0 or not self.keeps_waiting(hello):
            return None
        ns = hello.kept_alive_ns + ack_timeout_ns(hello.ina.ack_timeout) // 4
        return Due(ns, lambda: self.keep_hello_alive(hello)) if ns - hello.arrived_ns <= PATIENCE_NS else None

    def keeps_waiting(self, hello: Waiting) -> bool:
        """Ranks are kept alive, but not those of a complete set that is not the newest."""
        if self.switch.tree.is_switch(hello.line):
            return False
        newest = self.switch.newest_climb()
        return hello.run not in self.switch.climbs or newest is self.switch.climbs[hello.run]

    def keep_hello_alive(self, hello: Waiting) -> None:
        hello.kept_alive_ns = self.now
        if self.is_sole(hello.roce, hello.qp):
            voice = Voice(turned_around(hello.roce, hello.qp))
            self.switch.say(voice.ack(plus(hello.roce.psn, -1)), "keep-alive", hello.ina.rank, hello.port)

    def climb_due(self) -> Due | None:
        climb = self.switch.newest_climb()
        if climb is None:
            return None
        told = climb.hello.ina.ack_timeout
        ns = climb.last_ns + (ack_timeout_ns(told) // 4 if told else UNTOLD_CLIMB_NS)
        return Due(ns, lambda: self.switch.send_climb(climb)) if ns - climb.hello.arrived_ns <= PATIENCE_NS else None

    def late_due(self, line: Line) -> Due | None:
        """Only missing children keep the oldest slot waiting; or the parent's totals have a gap."""
        if not self.may_answer(line.number):
            return None
        flow = self.flow(line.number)
        if line.kind is Kind.ENTERING:
            asked_ns = flow.question.ns if flow.question else 0
            ns = max(max(flow.heard_ns, asked_ns) + flow.timer, flow.hushed_until_ns, self.may_ask_at(line))
            return Due(ns, lambda: self.ask(line)) if flow.lacks_packets else None
        longest = self.longest if self.longest is not None else self.longest_timer()
        stalled = self.switch.stalled()
        if stalled is None or line.number in stalled[0].packets:
            return None
        return Due(max(stalled[1] + longest, flow.heard_ns + longest, flow.hushed_until_ns, self.may_ask_at(line)),
                   lambda: self.ask(line))

    def longest_timer(self) -> int:
        flows = [self.flow(line.number) for line in self.switch.tree.lines]
        return max((flow.timer for flow in flows if flow.round_trip.smoothed), default=FIRST_TIMER_NS)

    def answer_due(self, line: Line) -> Due | None:
        live = self.switch.live(line.number)
        if live is None or not live.the_flow.qp or not live.the_flow.answer_due or not live.the_flow.outstanding:
            return None
        flow = live.the_flow
        return Due(max(self.may_answer_at(line), flow.held_until_ns), lambda: self.answer(line))

    def outstanding_due(self, line: Line) -> Due | None:
        """Not of partial sums: only the parent knows what is late."""
        if line.kind is Kind.OUTGOING or not self.may_answer(line.number):
            return None
        flow = self.flow(line.number)
        if not flow.outstanding or flow.resends == RESENDS_WITHOUT_PROGRESS or flow.again_from is not None:
            return None
        return Due(max(flow.progress_ns + flow.timer, flow.hushed_until_ns), lambda: self.resend_late(line))

    def resend_late(self, line: Line) -> None:
        flow = self.flow(line.number)
        flow.resends += 1
        flow.doublings = min(flow.doublings + 1, MOST_DOUBLINGS)
        self.resend(line)

    def waiting_due(self, line: Line) -> Due | None:
        """A sender whose packet the oldest slot holds, and that has no answer outstanding (§10)."""
        if line.kind is Kind.ENTERING or not self.may_answer(line.number):
            return None
        flow, slot = self.flow(line.number), self.switch.oldest_incomplete()
        if line.kind is Kind.OUTGOING:
            stalled = self.switch.stalled()
            slot = stalled[0] if stalled else None
        if slot is None or line.number not in slot.packets or flow.outstanding or flow.ack_timeout == 0:
            return None
        ns = max(flow.heard_ns, flow.kept_alive_ns) + ack_timeout_ns(flow.ack_timeout) // 4
        return Due(ns, lambda: self.keep_alive(line))

    def keep_alive(self, line: Line) -> None:
        self.flow(line.number).kept_alive_ns = self.now
        self.say_ack(line, "keep-alive")
