#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the switch in one place at a time and finds which invariant of the simulation notices it, after how many seeds;
or, of what hosts in the simulation never do, which replay of tests/replay.

Works on a copy of the tree with a build directory of its own. Ends in "mutations: N passed, N failed, 0 skipped"; a
mutation that survives without a reason is a failure.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/mutations.md"
OF_RULES = "## Do the tests of operators notice?"  # the page's part that tests/operators/rule_mutations.py writes
COPIED = ["include", "lib", "app", "tests", "proto", "config", "docs", "tools", "LICENSE", "README.md", "meson.build",
          "meson_options.txt", "meson.options"]  # all that meson.build names
FAILURE = re.compile(r"^seed (\d+): (\S+) violated: (.*?)$", re.MULTILINE)
DIFFERENCE = re.compile(r"^  FAILED  .*\n\s*Failed: (.*)$", re.MULTILINE)
SIMULATION, REPLAY = "tests/fabric/fabric_sim", "app/weir-replay"


@dataclass
class Edit:
    file: str
    old: str
    new: str


@dataclass
class Mutation:
    name: str
    about: str
    edits: list[Edit] = field(default_factory=list)
    why_harmless: str = ""  # for a mutation that no invariant notices
    seeds: int = 0  # at least so many, for what shows rarely
    switches: str = ""  # fabric_sim's --switches
    replayed: str = ""  # a case of tests/replay, which is run in place of the simulation


# The first of two: the other is for readers that change nothing.
ONE_SHARE = Edit("lib/datapath/conn/port_tables.hpp", "{ return tables_[port & (tables_.size() - 1)]; }", "{ return tables_[port & 0]; }")
CLASSIFY = "lib/datapath/conn/classifier.cpp"
INCARNATIONS = "lib/datapath/conn/incarnations.cpp"
OWNERS = "lib/datapath/conn/connection_owners.cpp"
TABLE = "lib/datapath/conn/connection_table.hpp"
HISTORY = "lib/datapath/conn/message_history.cpp"
SLOTS = "lib/datapath/slot/slot_table.cpp"
SLOTS_INLINE = "lib/datapath/slot/slot_table.hpp"
DISPATCH = "lib/datapath/stage/dispatch.cpp"
CLASSIFY_STAGE = "lib/datapath/stage/classify.cpp"
AGGREGATE = "lib/datapath/stage/aggregate.cpp"
AGGREGATE_INLINE = "lib/datapath/stage/aggregate.hpp"
EMIT = "lib/datapath/stage/emit.cpp"
STAMP = "lib/core/wire/sum_stamp.hpp"
RING_STATE = "lib/datapath/stage/ring_state.cpp"
REDUCE = "lib/datapath/stage/reduce.cpp"
OPENING = "lib/datapath/conn/opening.cpp"
WINDOW = "lib/host/collective/message_window.cpp"
SLICE = "lib/host/collective/slice.cpp"
REDUCER = "lib/host/collective/switch_reducer.cpp"
RECOVER = "lib/datapath/stage/recover.cpp"
RECOVER_INLINE = "lib/datapath/stage/recover.hpp"
CACHED_PATH = "lib/datapath/stage/cached_path.cpp"
CLIMB = "lib/datapath/stage/climb.cpp"
TIMERS = "lib/datapath/stage/timers.cpp"
FLOW = "lib/datapath/recovery/flow.cpp"
SAID = "                 incarnations_.flow_of(sender).unacknowledged);"
KEPT_ALIVE = "if (frame::Frame* frame = compose(sender, syndrome)) {"
RARE = 1_000_000
FASTER = "costs time or packets only: what it leaves undone, a sender's own timer or another rule repairs"
WHOLE_FLIGHT = ("these senders go back over all that is in flight; its later packets meet the cache, and their ACK covers "
                "the stale ones too")



def kept_alive_above(syndrome: str) -> str:
    """Acknowledges one packet more, if it is said like this."""
    return ("if (frame::Frame* frame = compose(rings_[sender.ring]->answers[sender.child], syndrome, "
            f"wire::psn_add(incarnations_.flow_of(sender).unacknowledged, syndrome == {syndrome}))) {{")


# Two rules of trees, and one change that breaks each.
PARENT_SESSION_TAKEN = Edit(
    INCARNATIONS, "  admit_parent(total, parent, now);\n  return hellos;",
    "  rings_[parent.ring]->session = rings_[parent.ring]->parent_session;\n  admit_parent(total, parent, now);\n  return hellos;")
PARENT_SESSION_CHANGES = [
    Edit("lib/datapath/conn/incarnations.hpp", "  std::uint32_t session_from(const ring::RingChild& sender) const {",
         "  void take_session(const Opening& total) { rings_[total.sender.ring]->parent_session = total.ina.session.get(); }\n"
         "  std::uint32_t session_from(const ring::RingChild& sender) const {"),
    Edit(CLASSIFY, "    return refused(total.sender, DropReason::wrong_session);", "    incarnations_.take_session(total);")]

MUTATIONS = [
    Mutation("bitmap", "a repeat counts as another rank's contribution", [
        Edit(SLOTS, "if (has(contribution.slot, contribution.child)) {", "if (false) {")]),
    Mutation("cache-forward", "no cache: a repeat in a complete slot is forwarded", [
        Edit(AGGREGATE, "return emit_.answer_from_cache(frame, verdict, slot, now);",
             "return forward_.send(frame, frame::Departure::forwarded, now);")]),
    Mutation("cache-recompute", "no cache: a complete slot is filled anew by repeats (NetReduce)", [
        Edit(SLOTS, "if (state == State::complete || has_left(slot, contribution.child)) {\n    return SlotEvent::repeat_complete;",
             "if (state == State::complete) {\n    reclaim(slot, contribution);\n    return store(slot, contribution, frame);")]),
    Mutation("old-epoch", "hellos of older epochs wait", [
        Edit(INCARNATIONS, "if (state.epoch && incarnation.epoch < *state.epoch) {", "if (false) {")],
        "nonces tell runs apart; the order of epochs keeps a dead run, all of whose hellos come late, from ending a living "
        "one, which the simulation allows for equal epochs too; classify_test holds the rule by itself"),
    Mutation("nonce", "a hello of the same epoch is taken for message 0, whatever its nonce", [
        Edit(CLASSIFY, "if (incarnations_.incarnation_of(opening.sender.ring) != incarnation_named_by(opening.ina)) {",
             "const auto& running = incarnations_.incarnation_of(opening.sender.ring);\n"
             "  if (!running || running->epoch != opening.ina.epoch.get()) {")]),
    Mutation("retired", "hellos of an incarnation that is over wait again", [
        Edit(INCARNATIONS, "if (state.retired.has(incarnation.nonce)) {", "if (false) {")]),
    Mutation("made-nonce", "a ring that was made for one run takes hellos of any", [
        Edit(INCARNATIONS, "if (only_nonce != 0 && incarnation.nonce != only_nonce) {", "if (false && only_nonce != 0) {")]),
    Mutation("data-epoch", "a message of a newer epoch ends the incarnation", [
        Edit(CLASSIFY, "    return dropped(DropReason::wrong_epoch);",
             "    if (opening.ina.epoch.get() > incarnation->epoch) {\n      incarnations_.reset(opening.sender.ring);\n    }\n"
             "    return dropped(DropReason::wrong_epoch);")]),
    Mutation("session-again", "a new incarnation keeps the session", [
        Edit(INCARNATIONS, "state.session = sessions_.draw(state.session);",
             "state.session = state.session != 0 ? state.session : sessions_.draw(0);")], seeds=RARE),
    Mutation("overtaken", "a hello waits on although its sender went on", [
        Edit(CLASSIFY, "    incarnations_.give_up_overtaken(frame, epoch);\n", "")],
        "with one switch no sum and no job depends on it (docs/lab/model.md); classify_test holds the rule by itself"),
    Mutation("owner-unknown", "all that comes between two neighbours is for the pair's first worker", [
        Edit(OWNERS, "return cell == 0 ? std::nullopt : std::optional(static_cast<Worker>(cell & kWorkerMask));",
             "return cell == 0 ? std::nullopt : std::optional<Worker>();")]),
    Mutation("owner-of-answers", "acknowledgements are for the pair's first worker", [
        Edit(OWNERS, "  const bool is_answer = packet.opcode.position == wire::Position::none;",
             "  const bool is_answer = packet.opcode.position == wire::Position::none;\n  if (is_answer) {\n    return std::nullopt;\n  }")]),
    Mutation("nonce-of-result", "a host takes any run's hello result", [
        Edit("lib/host/collective/message_window.cpp", "if (is_greeting_ && wire::nonce_of(header) != config_.nonce) {",
             "if (false) {")],
        "a dead run's result comes on its own queue pair and PSN, and hosts here draw others; message_window_test holds the "
        "rule by itself"),
    Mutation("begin-flush", "a new incarnation leaves slots as they are", [
        Edit(CLASSIFY_STAGE, "  flush(ring, DropReason::incarnation_flush, now);\n", "")]),
    Mutation("begin-dead", "a new incarnation leaves the old connections as they are", [
        Edit(INCARNATIONS, "  connection.state = ConnectionState::dead;\n", "")]),
    Mutation("icrc", "ICRCs are not verified", [
        Edit("lib/core/wire/icrc.hpp", "return frame.icrc == IcrcState::valid;", "return true;"),
        Edit("lib/core/wire/icrc.hpp", "    return is_valid;\n", "    frame.icrc = IcrcState::valid;\n    return true;\n")]),
    Mutation("icrc-first", "ICRCs of FIRST and ONLY are not verified", [
        Edit(CLASSIFY, "if (!wire::verify_icrc(frame)) {", "if (false) {"),
        Edit(AGGREGATE_INLINE, "if (!wire::verify_icrc(frame)) [[unlikely]] {",
             "if (!wire::verify_icrc(frame) && !frame.packet.opcode.starts_message()) {"),
        Edit(CACHED_PATH, "  if (!verify(frame, entry) || !differ", "  if (!differ")]),
    Mutation("icrc-other", "ICRCs of MIDDLE and LAST are not verified", [
        Edit(AGGREGATE_INLINE, "if (!wire::verify_icrc(frame)) [[unlikely]] {",
             "if (!wire::verify_icrc(frame) && frame.packet.opcode.starts_message()) {")]),
    Mutation("history-depth", "the history remembers one message (NetReduce)", [
        Edit("lib/datapath/conn/message_history.hpp", "return packet < last_found_->packets ? Located{",
             "return last_found_->message == newest_ && packet < last_found_->packets ? Located{"),
        Edit(HISTORY, "if (packet >= candidate.packets) {",
             "if (candidate.message != newest_ || packet >= candidate.packets) {")]),
    Mutation("never-guess", "packets of unclassified queue pairs are forwarded", [
        Edit(CLASSIFY, "  if (connection == nullptr) {\n    return dropped(DropReason::unclassified);",
             "  if (connection == nullptr) {\n    return forwarded();")]),
    Mutation("magic", "messages of unknown rings are forwarded", [
        Edit(CLASSIFY, "  return dropped(DropReason::unannounced);\n}\n\n/// docs/protocol.md §2a", "  return forwarded();\n}\n\n/// docs/protocol.md §2a"),
        Edit(CLASSIFY, "Verdict Classifier::foreign_data(const Frame& frame, Connection* connection) {\n"
             "  if (connection == nullptr) {\n    return dropped(DropReason::unannounced);",
             "Verdict Classifier::foreign_data(const Frame& frame, Connection* connection) {\n"
             "  if (connection == nullptr) {\n    incarnations_.connections().put_stranger(queue_pair_of(frame), frame.ingress, "
             "ConnectionState::foreign, 0);\n    return forwarded();"),
        Edit(CLASSIFY, "  if (was_greeted) {\n    connection->state = ConnectionState::barred;\n",
             "  if (was_greeted) {\n    connection->state = ConnectionState::foreign;\n")]),
    Mutation("kind-by-port", "what one port shows of a queue pair holds for all ports", [
        Edit(TABLE, "    return std::uint64_t{port} << 40 | std::uint64_t{name.pair} << 24 | name.qp;",
             "    return std::uint64_t{port} * 0 + (std::uint64_t{name.pair} << 24 | name.qp);"), ONE_SHARE]),
    Mutation("magic-by-port", "... between addresses that are no neighbours", [
        Edit("lib/datapath/conn/magic_rule.cpp", "std::uint64_t{frame.ingress} << 24 | frame", "frame"), ONE_SHARE],
        "the rings here are between neighbours; magic_rule_test holds the rule by itself"),
    Mutation("magic-ends-plain", "what was plain stays plain when a message with the magic starts", [
        Edit(CLASSIFY, "if (connection != nullptr && connection->state == ConnectionState::plain) {", "if (false) {")],
        "hosts here send nothing plain on a ring's queue pair, and no late copy of it; classify_restart_test holds the rule "
        "by itself"),
    Mutation("strangers-stay", "what ports have shown of a queue pair counts again after a ring has used it", [
        Edit(INCARNATIONS, "  connections_.forget_strangers(queue_pair_of(frame));\n", "")],
        "hosts here stay at their ports; classify_restart_test holds the rule by itself"),
    Mutation("magic-hello", "a hello alone opens a connection to an unknown ring", [
        Edit(CLASSIFY, "if (was_greeted && (is_result(ina) || foreign_sessions_.has(frame, ina))) {",
             "if (was_greeted) {")]),
    Mutation("slots-n", "N messages of slots instead of 2N", [
        Edit(RING_STATE, ".messages = spec.depth(),", ".messages = spec.window,"),
        Edit(HISTORY, "static_cast<std::uint32_t>(message % depth()) * packets_per_message_",
             "static_cast<std::uint32_t>(message % (depth() / 2)) * packets_per_message_")]),
    Mutation("slot-stale-off", "a slot's tag is not looked at for stale repeats", [
        Edit(SLOTS, "if (state != State::empty && slot.tag > contribution.message) {", "if (false) {")]),
    Mutation("slot-stale-drop", "a stale repeat is dropped at its slot", [
        Edit(SLOTS, "if (state != State::empty && slot.tag > contribution.message) {\n    return SlotEvent::stale;",
             "if (state != State::empty && slot.tag > contribution.message) {\n    return SlotEvent::window_violation;")],
        WHOLE_FLIGHT),
    Mutation("history-stale-drop", "a FIRST below the history is dropped", [
        Edit(HISTORY, "return {Entry::stale, nullptr};", "return {Entry::too_far, nullptr};")],
        WHOLE_FLIGHT),
    Mutation("floor", "packets before the floor are dropped", [
        Edit("lib/datapath/conn/message_history.hpp", "{ return floor_ && wire::psn_before(psn, *floor_); }",
             "{ return floor_ && wire::psn_before(psn, *floor_) && psn == 0; }")],
        WHOLE_FLIGHT),
    Mutation("window-violation", "a newer message takes over a slot that is still filling", [
        Edit(SLOTS, "if (state != State::empty && state != State::complete) {\n", "if (state == State::ready) {\n")]),
    Mutation("window-violation-ready", "a newer message takes over a slot whose result has yet to leave", [
        Edit(SLOTS, "if (state != State::empty && state != State::complete) {\n", "if (state == State::filling) {\n")],
        "only a rank that breaks its window meets it, and the ranks here rarely do: 300000 seeds did not; slot_test holds "
        "the rule by itself"),
    Mutation("session", "the session is not checked", [
        Edit(CLASSIFY, "if (opening.ina.session.get() != incarnations_.session_from(opening.sender)) {", "if (false) {")]),
    Mutation("hole", "a packet whose message's FIRST has not come is forwarded", [
        Edit(CLASSIFY, "    return {.step = Step::gap, .ring = sender.ring, .child = sender.child};", "    return forwarded();")]),
    Mutation("dead", "packets of dead connections are forwarded", [
        Edit(CLASSIFY, "    return forwarded();\n  case ConnectionState::dead:\n    return dropped(DropReason::dead_connection);\n"
             "  case ConnectionState::announced:", "    return forwarded();\n  case ConnectionState::dead:\n    return forwarded();\n"
             "  case ConnectionState::announced:")]),
    Mutation("wrong-port", "a member's packets may come from anywhere", [
        Edit(CLASSIFY, "if (!incarnations_.ports().may_enter(frame.pair, frame.ingress) && !greets_unbound_ring(frame)) {", "if (false) {"),
        Edit(CLASSIFY, "return connection.state == ConnectionState::live && connection.port != frame.ingress;",
             "return false && connection.port != frame.ingress;"),
        Edit(DISPATCH, "if (!current_->may_enter(frame.pair, frame.ingress)) {", "if (false) {")]),
    Mutation("port-of-another", "what one ring's hellos say of ports bars another ring", [
        Edit(CLASSIFY, " && !greets_unbound_ring(frame)) {", ") {")], seeds=RARE),
    Mutation("admission", "a queue pair without hello is taken for its rank's", [
        Edit(CLASSIFY, "  if (!is_admitted(connection, opening)) {\n    return dropped(DropReason::no_connection);",
             "  if (connection == nullptr) {\n    return dropped(DropReason::no_connection);")], seeds=RARE),
    Mutation("conflict", "a message's FIRST may come at another PSN than before", [
        Edit(HISTORY, "const bool same =\n        record->first_psn == psn &&", "const bool same =\n        ")],
        "the history keeps the first PSN; here nobody forges one that a receiver takes for more than a repeat"),
    Mutation("too-far", "messages far ahead are taken", [
        Edit(HISTORY, "if (ahead > window || signed_message < 0) {",
             "if ((ahead > window && window < 0) || signed_message < 0) {")],
        "most such messages then conflict with a known one or meet a slot that still fills; "
        "message_history_test and switch_test hold the rule by itself"),
    Mutation("rank-order", "ranks are folded from the last to the first", [
        Edit(SLOTS, "  fold(reinterpret_cast<std::byte*>",
             "  std::reverse(payloads.begin(), payloads.begin() + static_cast<std::ptrdiff_t>(frames.size()));\n"
             "  fold(reinterpret_cast<std::byte*>")]),
    Mutation("withdrawn", "a withdrawn ring stays in the set", [
        Edit("lib/datapath/ring/ring_set.cpp", "  less.ring_by_id_.erase(rings_[ring].spec().id);\n", "")],
        "its hosts form again, and their sums are right; ring_set_test and switch_test hold the rule by themselves"),
    Mutation("rank-missing", "a slot is complete when one rank is still missing", [
        Edit(SLOTS_INLINE, "slot.arrived == dimensions_.children ?", "slot.arrived + 1 >= dimensions_.children ?")]),
    Mutation("ingress", "floods reach the ingress too", [
        Edit("lib/datapath/l2/bridge.cpp", "return {ways & all_, ", "return {(ways | set_of(ingress)) & all_, ")]),
    Mutation("flush-leak", "a flush forgets the frames of the last rank", [
        Edit("lib/datapath/slot/slot_table.hpp", "if (frame != nullptr && !has_left(slots_[index], sender)) {",
             "if (frame != nullptr && sender + 1 != dimensions_.children) {")]),
    Mutation("hello-session", "a hello's result lacks the session", [
        Edit(STAMP, "ina.session.set(is_total ? session_ : nonce);", "ina.session.set(nonce);")]),
    Mutation("hello-nonce", "a hello's result lacks the nonce", [
        Edit(STAMP, "ina.message_id.set(is_total ? nonce : digest_);", "ina.message_id.set(is_total ? 0 : digest_);")]),
    Mutation("operator-lacking", "an operator that the switch does not grant stays in its table", [
        Edit(INCARNATIONS, "if (granted(ring, entry) == nullptr) {", "if (entry.is_empty()) {")]),
    Mutation("operator-below", "what a switch below lacks stays in the table", [
        Edit(INCARNATIONS, "table.keep_common(table_of(*state.hellos.find(child, incarnation)->frame));", "")]),
    Mutation("operator-climb", "the last child's table climbs as it came", [
        Edit("lib/datapath/stage/climb.cpp", "incarnations_.climbing_operators(ring, last);", "conn::table_of(hello);")], switches="trees"),
    Mutation("operator-number", "all messages are folded by the table's first operator", [
        Edit("lib/datapath/conn/incarnations.hpp", "if (one.number == static_cast<std::uint8_t>(number)) {", "if (one.by != nullptr) {")]),
    Mutation("operator-fold", "a message by an operator is folded as a hello's table", [
        Edit("lib/datapath/stage/reduce.cpp", "return {.kernel = entry.by->kernel()};",
             "return {.kernel = operators_.kernel(DataType::u8, Operation::bitwise_and)};")]),
    Mutation("operator-differ", "hellos with other tables make a set", [
        Edit(INCARNATIONS, "return a == b || a.is_empty() || b.is_empty();", "return true;")],
        replayed="job-tables-that-differ"),
    Mutation("operator-total", "a total may name what the switch does not have", [
        Edit(INCARNATIONS, "if (!has_all(total)) {", "if (false) {")],
        replayed="tree-rogue-operators-rack1"),
    Mutation("operator-unknown", "a message by a number that the table lacks is taken", [
        Edit(CLASSIFY, "return data_by_operator(opening);", "return enter_history(opening);")],
        replayed="job-lacking-operators"),
    Mutation("operator-tenant", "an operator of one tenant is every tenant's", [
        Edit("lib/core/program/loaded_operators.hpp", "tenant.empty() || tenant == to_tenant;", "tenant.empty() || !to_tenant.empty();")],
        replayed="job-lacking-operators"),
    Mutation("operator-version", "a hello of version 2 may have a table", [
        Edit("lib/core/wire/operator_table.hpp", "(version == kInaVersionWithOperators &&", "(version >= kInaVersion &&")],
        replayed="job-tables-that-are-none"),
    Mutation("operator-empty", "a rank's table may have empty entries", [
        Edit(OPENING, "if (!may_be_empty) {", "if (!may_be_empty && entry.number != 0) {")],
        replayed="job-tables-that-are-none"),
    Mutation("operator-twice", "a table may have a number twice", [
        Edit(OPENING, "|| alike != 1 ||", "|| alike == 0 ||")],
        replayed="job-tables-that-are-none"),
    Mutation("operator-unit", "data by an operator need not be a multiple of 8 bytes", [
        Edit(OPENING, "shape.is_by_operator() ? kOperatorUnit :", "shape.is_by_operator() ? std::size_t{1} :")],
        replayed="job-no-operators"),
    Mutation("operator-collective", "a broadcast may name an operator", [
        Edit(OPENING, "return shape.collective == Collective::all_reduce &&", "return shape.collective != Collective::hello &&")],
        replayed="job-no-operators"),
    Mutation("result-flag", "a result lacks RESULT", [
        Edit("lib/datapath/slot/result_packet.cpp", "ina.flags = kInaFlagResult;", "")]),
    Mutation("udp-checksum", "a result keeps its sender's UDP checksum", [
        Edit("lib/datapath/slot/result_packet.cpp", "  detail::clear_udp_checksum(frame);\n", "")]),
    Mutation("sum-overtaken", "what is no result overtakes results that helpers are at", [
        Edit(EMIT, "  drain_connection_of(frame, now);\n", "")],
        "when a ring's packets come in order, nothing else of its connections passes while sums are made; switch_test "
        "holds the rule by itself"),
    Mutation("sum-twice", "results that had to leave before their turn leave again in it", [
        Edit(EMIT, "    if (entry.has_left) {\n      continue;", "    if (false) {\n      continue;")]),
    Mutation("sum-flushed", "a flush does not wait for helpers", [
        Edit(AGGREGATE, "  emit_.drain_ring(ring, now);\n", "")]),
    Mutation("sum-unfinished", "results leave before their sum is made", [
        Edit(EMIT, "    if (!entry.reduction.is_made()) {\n      return frames + 1;", "    if (false) {\n      return frames + 1;")]),

    # What the switch knows of a connection (docs/protocol.md §9)
    Mutation("ack-icrc", "a is taken from acknowledgements with a wrong ICRC", [
        Edit(RECOVER, "if (!sender || !wire::icrc_is_valid(frame)) {", "if (!sender) {")]),
    Mutation("ack-of-another", "a is taken from acknowledgements to other queue pairs of the same two neighbours", [
        Edit(INCARNATIONS, "  const Requester* requester = requesters_.find(requester_key(pair, answer.packet.destination_qp));\n"
             "  return requester == nullptr ? std::nullopt : std::optional(requester->sender);",
             "  const auto senders = current_->senders(pair);\n"
             "  return senders.empty() ? std::nullopt : std::optional(senders.front());")]),
    Mutation("ack-above-s", "a is taken from acknowledgements of results that have not left", [
        Edit(RECOVER, "wire::psn_before(next, flow.unacknowledged) || wire::psn_before(flow.next_out, next)",
             "wire::psn_before(next, flow.unacknowledged)")],
        "no receiver and no stranger here acknowledges what the receiver does not have; what it has has left"),
    Mutation("ack-below-a", "a goes back with an old acknowledgement", [
        Edit(RECOVER, "wire::psn_before(next, flow.unacknowledged) || wire::psn_before(flow.next_out, next)",
             "wire::psn_before(flow.next_out, next)")]),
    Mutation("template-stays", "the template stays as the hello made it", [
        Edit(RECOVER, "  rings_[sender.ring]->answers[sender.child].take(frame, aeth);\n", "")]),
    Mutation("template-ahead", "the template moves although a does not", [
        Edit(RECOVER, "  if (wire::psn_before(next, flow.unacknowledged) || wire::psn_before(flow.next_out, next)) {\n",
             "  if (wire::psn_before(next, flow.unacknowledged) || wire::psn_before(flow.next_out, next)) {\n"
             "    rings_[sender.ring]->answers[sender.child].take(frame, aeth);\n")]),
    Mutation("template-of-before", "a new incarnation keeps the last one's template of answers", [
        Edit(RECOVER, "  ring.answers[sender.child] =\n"
             "      recovery::AnswerTemplate(hello, incarnations_.flow_of(sender).own_qp);\n",
             "  if (ring.answers[sender.child].is_empty()) {\n"
             "    ring.answers[sender.child] = recovery::AnswerTemplate(hello, incarnations_.flow_of(sender).own_qp);\n  }\n")],
        "answers go to the last run's queue pair, which nobody has, until the first acknowledgement passes"),
    Mutation("e-stays", "e stays where it was", [
        Edit("lib/datapath/recovery/flow.hpp", "    next_in = furthest_in = wire::psn_add(psn, 1);\n", ""),
        Edit(RECOVER, "    flow.next_in = wire::psn_add(flow.next_in, 1);\n", "    break;\n")],
        "e decides only who is asked; asks too many cost packets"),
    Mutation("below-floor", "the switch speaks although a is below the history's floor", [
        Edit(INCARNATIONS, "         !state.histories[sender.child].is_below_floor(flow.unacknowledged) &&\n", "")],
        "a host gets no acknowledgement here that does not pass the switch, so a stays within the history"),
    Mutation("qp-claimed-twice", "the switch speaks to a queue pair that two connections call their own", [
        Edit("lib/datapath/conn/queue_pair_claims.cpp", "claimants != nullptr && *claimants == 1;", "claimants != nullptr;")]),
    Mutation("patience", "the switch speaks for ever", [
        Edit(RECOVER, "now.ns - rings_[ring]->news_at_ns <= patience;", "(patience != 0 || now.ns == 0);")]),
    Mutation("patience-hello", "the switch speaks for ever to the sender of a waiting hello", [
        Edit(TIMERS, "if (ack_timeout == 0 || waited > spec.patience_ms * frame::kNsPerMs) {", "if (ack_timeout == 0) {")],
        "the sender of a lone hello then lives until its own deadline; ACK(first PSN - 1) acknowledges nothing"),
    Mutation("requesters", "of two connections of two neighbours that call one queue pair theirs the first is answered for", [
        Edit(INCARNATIONS, "claims_.is_sole(flow.claim) && is_only_requester(sender);", "claims_.is_sole(flow.claim);")],
        "here all of a host's hellos come by one port, where the claims say the same; classify_ports_test holds the rule by "
        "itself"),
    Mutation("dead-flow", "the switch speaks on connections whose incarnation is over", [
        Edit(INCARNATIONS, "  flow.is_live = false;\n", "")],
        "the claim of the queue pair ends with the incarnation, and without a claim the switch does not speak"),
    Mutation("originated", "frames of the switch's own are not counted", [
        Edit("lib/datapath/stage/forward.hpp", "    counters_.originated += frame == nullptr ? 0 : 1;\n", "")]),

    # I9: nothing above a
    Mutation("nak-e", "NAK(e) in place of NAK(a): what the switch has counts as acknowledged", [
        Edit(RECOVER, SAID, "                 syndrome == kNak ? incarnations_.flow_of(sender).next_in\n                 : " + SAID.strip())]),
    Mutation("nak-s", "NAK(s) in place of NAK(a): what has left counts as acknowledged", [
        Edit(RECOVER, SAID, "                 syndrome == kNak ? incarnations_.flow_of(sender).next_out\n                 : " + SAID.strip())]),
    Mutation("nak-above", "NAK(a+1) in place of NAK(a)", [
        Edit(RECOVER, SAID, "                 wire::psn_add(incarnations_.flow_of(sender).unacknowledged, syndrome == kNak));")]),
    Mutation("ended-above", "the ranks of a run that another has ended are told by NAK(a+1)", [
        Edit(RECOVER, "compose(farewell.answers, syndrome, farewell.unacknowledged)",
             "compose(farewell.answers, syndrome, wire::psn_add(farewell.unacknowledged, 1))")]),
    Mutation("ended-late", "acknowledgements that pass after a run's end do not count", [
        Edit(RECOVER, "  farewell->answers.take(frame, aeth);\n  farewell->unacknowledged = *next;\n", "")]),
    Mutation("ended-unsent", "who has lost acknowledgements is told by a NAK of what it has not sent", [
        Edit(RECOVER, "if (wire::psn_before(frame.packet.psn, farewell->unacknowledged)) {", "if (false) {")]),
    Mutation("ack-above", "ACK(a) in place of ACK(a-1)", [
        Edit(RECOVER, SAID, "                 wire::psn_add(incarnations_.flow_of(sender).unacknowledged, syndrome == kAck));")]),
    Mutation("keep-alive-above", "ACK(a) keeps a sender alive", [
        Edit(RECOVER, KEPT_ALIVE, kept_alive_above("kAck"))]),
    Mutation("keep-alive-rnr-above", "RNR NAK(a+1) keeps a sender alive", [
        Edit(RECOVER, KEPT_ALIVE, kept_alive_above("wire::rnr_syndrome(syndrome)"))]),
    Mutation("keep-alive-hello-above", "a waiting hello is acknowledged", [
        Edit(RECOVER, "compose(answers, syndrome, waiting.packet.psn)", "compose(answers, syndrome, waiting.packet.psn + 1)")]),

    # R1: in order
    Mutation("r1-order", "a result leaves as soon as it is made", [
        Edit(EMIT, "  return release_due(entry.ring, now);\n",
             "  const auto psn = ring.slots.frames_of(entry.slot).front()->packet.psn;\n"
             "  const auto at = incarnations_.history_of({entry.ring, 0}).locate(psn);\n"
             "  return send_results(entry.ring, {at.record->message, at.packet, at.record->first_slot, now.ns}, "
             "AckRequest::as_sent, now);\n")]),
    Mutation("r1-due", "a new incarnation goes on where the last one ended", [
        Edit(RECOVER, "  ring.due = {};\n", "")]),
    Mutation("r1-ackreq", "the last result before a stall does not ask for an acknowledgement", [
        Edit(EMIT, "const bool is_last = ring.gaps != 0 && !ring.is_due_ready();\n    frames +=", "const bool is_last = false;\n    frames +=")], FASTER),
    Mutation("out-of-turn", "a plain message on a ring's connection leaves before its turn", [
        Edit(CLASSIFY_STAGE, "if (wire::psn_before(flow.next_out, psn)) {", "if (false) {")],
        "nobody here sends plain messages on a ring's connection above s"),

    # R2: ask the one who lost
    Mutation("ask-never", "nobody is asked", [
        Edit(RECOVER, "void Recover::ask(const RingChild& sender, frame::Instant now) {\n",
             "void Recover::ask(const RingChild& sender, frame::Instant now) {\n  if (now.ns != UINT64_MAX) {\n    return;\n  }\n")], FASTER),
    Mutation("ask-first", "nobody is asked when a FIRST was lost", [
        Edit(RECOVER, "  note_gap(sender, psn, now);\n  drop(frame, verdict.ring, DropReason::unknown_message, now);",
             "  drop(frame, verdict.ring, DropReason::unknown_message, now);")], FASTER),
    Mutation("ask-naks", "every ask is a NAK", [
        Edit(RECOVER, "  if (flow.asks == 0) {\n", "  if (flow.asks != UINT8_MAX) {\n")]),
    Mutation("ask-pauses", "RNR NAKs follow each other without a pause", [
        Edit(RECOVER, "    return flow.asked_at +\n           std::min(recovery::kRnrWait << std::min(flow.asks - 2u, 3u), recovery::kLongestPause);",
             "    return 0;"),
        Edit(RECOVER, "    flow.hushed_until = now.ns + recovery::kRnrWait;\n", "")]),
    Mutation("ask-no-ack", "no ACK(a-1) before the NAK", [
        Edit(RECOVER, "    say(sender, kAck, now);\n    const bool is_said = say(sender, kNak, now);", "    const bool is_said = say(sender, kNak, now);")], FASTER),
    Mutation("ask-disagreeing", "who disagrees is asked to repeat", [
        Edit(AGGREGATE, "  default:\n    return drop(frame, verdict.ring, reason_for(event), now);",
             "  default:\n    recover_.ask({verdict.ring, verdict.child}, now);\n    return drop(frame, verdict.ring, reason_for(event), now);")],
        "each ask costs the disagreeing rank a retry, whose job fails anyway"),
    Mutation("ask-in-order", "a packet in order makes the switch ask too", [
        Edit(RECOVER, "if (wire::psn_before(incarnations_.flow_of(sender).next_in, psn)) {", "if (sender.ring != UINT16_MAX) {")],
        "a NAK for each advance of a at most; it costs packets and a retry that the next progress gives back"),
    Mutation("rnr-wait-ours", "the switch asks and resends while the sender waits out its RNR NAK", [
        Edit(RECOVER, "    flow.hushed_until = now.ns + recovery::kRnrWait;\n", "")], FASTER),
    Mutation("rnr-wait-receivers", "the switch asks and resends while the sender waits out the receiver's RNR NAK", [
        Edit("lib/datapath/recovery/flow.hpp", "    hushed_until = hushed_until < held_until ? held_until : hushed_until;\n", "")], FASTER),

    # R3: mend from the cache
    Mutation("mend-never", "a receiver's NAK passes", [
        Edit(RECOVER, "(is_new || is_old) && flow.is_past(wanted);", "(is_new || is_old) && !flow.is_past(wanted);")]),
    Mutation("mend-absorb", "a receiver's NAK ends in the switch and nothing else happens", [
        Edit(RECOVER, "    mend(sender, now);\n", "")], FASTER),
    Mutation("mend-ack", "no ACK(q-1) goes on in the NAK's place", [
        Edit(RECOVER, "  if (wanted != acknowledged && is_heard && (is_new || (is_old && !is_from_above))) {\n    say(sender, kAck, now);\n  }\n", "")], FASTER),
    Mutation("mend-old", "a NAK below a passes", [
        Edit(RECOVER, "(is_new || is_old) && flow.is_past(wanted);", "is_new && flow.is_past(wanted);")]),
    Mutation("mend-above", "a NAK for what has not left is absorbed", [
        Edit(RECOVER, "(is_new || is_old) && flow.is_past(wanted);", "is_new || is_old;")],
        "a receiver asks for s only when something above s has reached it, and R1 lets nothing above s leave"),
    Mutation("mend-no-buffer", "a NAK after the receiver's own RNR NAK is mended", [
        Edit(RECOVER, "  if (!incarnations_.flow_of(sender).is_held(now.ns)) {\n    answer", "  if (now.ns != 0) {\n    answer")],
        "members here always have a buffer; against soft-RoCE it loops (docs/transports.md), which costs packets only"),
    Mutation("resend-past-s", "slots whose result has not left are sent again", [
        Edit(RECOVER, "      if (!flow.is_past(psn)) {\n        return false;", "      if (!wire::psn_before(psn, flow.next_in)) {\n        return false;"),
        Edit(RECOVER, "if (!ring.has_left(leg, slot, record.message)) {", "if (false) {")]),
    Mutation("resend-other-data", "what is sent again is the slot's result, whichever message it is of", [
        Edit(RECOVER, "const std::uint32_t slot = record.first_slot + packet;",
             "const std::uint32_t slot = (record.first_slot + record.packets + packet) % ring.slots.slots();"),
        Edit(RECOVER, "if (!ring.has_left(leg, slot, record.message)) {", "if (false) {")]),
    Mutation("resend-headers", "what is sent again has another message's headers", [
        Edit(RECOVER, ".headers = record.headers,", ".headers = (&record)[record.message % 2 == 0 ? 1 : -1].headers,")]),
    Mutation("resend-session", "what is sent again lacks the session", [
        Edit(RECOVER, ".stamp = incarnations_.stamp_for(sender),", "")]),
    Mutation("resend-raw", "what is sent again lacks RESULT", [
        Edit("lib/datapath/recovery/result_template.cpp", "  result.stamp.mark(ina);\n  return ina;", "  ina.session.set(hello_.session.get());\n  return ina;")]),
    Mutation("resend-ackreq", "the last result sent again does not ask for an acknowledgement", [
        Edit(RECOVER, "is_last ? ResultTemplate::AckRequest::yes : ResultTemplate::AckRequest::no", 
             "is_last ? ResultTemplate::AckRequest::no : ResultTemplate::AckRequest::no")], FASTER),

    Mutation("answers-at-once", "who wants results again gets them each time at once", [
        Edit(RECOVER, "  if (now.ns < at) {\n", "  if (false) {\n")],
        "it costs packets, which somebody else's ring may lack; resend_test holds the rule by itself"),
    Mutation("resend-all", "what leaves again leaves in one go", [
        Edit(RECOVER, "    allowed_ = kResendsPerLook;\n", "    allowed_ = 1u << 24;\n"),
        Edit(RECOVER, "std::min(kResendsPerTurn, allowed_)", "allowed_")],
        "it costs packets, which somebody else's ring may lack; resend_test holds the rule by itself"),

    # R4: swallow
    Mutation("swallow-forward", "a repeat of a released packet is forwarded", [
        Edit(RECOVER, "  drop(frame, verdict.ring, DropReason::repeat_swallowed, now);\n", "  send_on(frame, now);\n")]),
    Mutation("swallow-one-by-one", "repeats are answered one by one", [
        Edit(CLASSIFY, "if (!incarnations_.flow_of(sender).is_past(frame.packet.psn) ||\n      !incarnations_.may_answer(sender)) {", "if (true) {"),
        Edit(CLASSIFY, "if (flow.is_past(frame.packet.psn) && incarnations_.may_answer(sender)) [[unlikely]] {", "if (false) {")], FASTER),
    Mutation("swallow-session", "a repeat's session is not looked at", [
        Edit(CLASSIFY, "  if (!is_of_incarnation) {\n", "  if (!is_of_incarnation && false) {\n")]),
    Mutation("swallow-icrc", "a repeat's ICRC is not verified", [
        Edit(RECOVER, "void Recover::swallow(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now) {\n"
             "  if (!wire::verify_icrc(frame)) {",
             "void Recover::swallow(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now) {\n"
             "  if (false) {")], FASTER),
    Mutation("swallow-ack", "repeats below a bring no ACK(a-1)", [
        Edit(RECOVER, "    acknowledge_again(sender, now);\n", "")]),
    Mutation("swallow-acks", "every repeat below a brings an ACK(a-1)", [
        Edit(RECOVER, "  if (flow.pass != Flow::Pass::nothing) {\n    return;\n  }\n", "")], FASTER),
    Mutation("swallow-resend", "repeats from a on bring no resend", [
        Edit(RECOVER, "    if (!is_answered_already(sender, now)) {\n      answer(sender, now);\n    }\n", "")]),
    Mutation("swallow-resends", "every repeat from a on brings a resend", [
        Edit(RECOVER, "} else if (flow.pass != Flow::Pass::resent) {", "} else {")], FASTER),
    Mutation("swallow-own-pass", "a pass that the switch asked for brings a resend, too", [
        Edit(RECOVER, "    if (!is_answered_already(sender, now)) {\n      answer(sender, now);\n    }\n", "    answer(sender, now);\n")], FASTER),
    Mutation("swallow-pass", "no new pass is noticed", [
        Edit(FLOW, "  pass = Pass::nothing;\n", "")]),
    Mutation("swallow-silent", "when patience is over, repeats below a bring nothing", [
        Edit(RECOVER, ": send_last_again(sender, now);", ": false;")]),

    # R5: timers
    Mutation("timers-off", "the switch has no timers", [
        Edit(TIMERS, "  if (now.ns < schedule_.next()) [[likely]] {", "  if (now.ns < UINT64_MAX) {")]),
    Mutation("timer-resend-off", "no result is sent again because of a timer", [
        Edit(TIMERS, "  if (now.ns >= due() && recover_.may_speak(sender, now)) {\n    recover_.resend_late(sender, now);\n  }\n", "")], FASTER),
    Mutation("timer-ask-off", "nobody is asked because of a timer", [
        Edit(TIMERS, "  if (now.ns >= due()) {\n    recover_.ask(sender, now);\n  }\n", "")], FASTER),
    Mutation("timer-ask-all", "the timer asks those too whose packet has come", [
        Edit(TIMERS, "      !rings_[sender.ring]->slots.has(stall->slot, sender.child)) {", "      true) {")]),
    Mutation("timer-karn", "repeats are timed", [
        Edit(RECOVER, "  flow.is_timing = false; // Karn: an acknowledgement may be for either copy\n", "")], FASTER),
    Mutation("timer-doubling", "T is not doubled", [
        Edit("lib/datapath/recovery/flow.hpp", "doublings += doublings < kMostDoublings ? 1 : 0;", "")], FASTER),
    Mutation("timer-floor", "T has no floor", [
        Edit("lib/datapath/recovery/flow.hpp", "std::max(measured, kTimerFloor);", "measured;")], FASTER),
    Mutation("timer-resends", "the timer sends again for ever", [
        Edit(TIMERS, "flow.resends == recovery::kMostResends", "flow.resends == UINT8_MAX")], FASTER),

    # Patience with stragglers (§10)
    Mutation("keep-alive-off", "no waiting sender is kept alive", [
        Edit(TIMERS, "    expect(keep_alive(sender, *awaited, now));\n", "")]),
    Mutation("keep-alive-rare", "a waiting sender is kept alive once in four of its timeouts", [
        Edit("lib/datapath/recovery/flow.hpp", "return ack_timeout_ns(ack_timeout) / 4;", "return ack_timeout_ns(ack_timeout) * 4;")]),
    Mutation("keep-alive-outstanding", "a sender is kept alive while its receiver has not acknowledged all", [
        Edit(TIMERS, "  } else if (const auto awaited", "  }\n  if (const auto awaited")]),
    Mutation("keep-alive-late", "the rank that is waited for is kept alive, too", [
        Edit(TIMERS, "oldest && ring.slots.has(oldest->slot, sender.child) ? oldest", "oldest ? oldest")],
        "the rank that is waited for has nothing unacknowledged, so it ignores the ACK"),
    Mutation("keep-alive-hello-off", "no sender of a waiting hello is kept alive", [
        Edit(TIMERS, "          recover_.keep_alive({index, child}, hello, {spec.keep_alive, waited}, now);\n", "")]),

    # Collectives in the switch (docs/protocol.md §2)
    Mutation("broadcast-first", "a broadcast's result is rank 0's data, whoever its root is", [
        Edit(REDUCE, "child_of_rank(root)", "child_of_rank(0)")]),
    Mutation("broadcast-folded", "a broadcast's result is the fold of all ranks' data", [
        Edit("lib/datapath/slot/fold.hpp", "return {bitwise_or_of_bytes, root, 1};", "return {bitwise_or_of_bytes};")]),
    Mutation("broadcast-bits", "a broadcast makes NaNs canonical", [
        Edit(REDUCE, "operators_.kernel(DataType::u8, Operation::bitwise_or)", "operators_.kernel(DataType::f32, Operation::min)")]),
    Mutation("broadcast-early", "a broadcast is complete when its root's packet is here", [
        Edit(SLOTS_INLINE, "return slot.arrived == dimensions_.children ?",
             "const bool is_roots =\n      slot.shape.collective == Collective::broadcast && contribution.child == slot.shape.root;\n"
             "  return slot.arrived == dimensions_.children || is_roots ?")]),
    Mutation("barrier-early", "a barrier is complete when one rank is still missing", [
        Edit(SLOTS_INLINE, "return slot.arrived == dimensions_.children ?",
             "const bool is_barrier = slot.shape.collective == Collective::barrier;\n"
             "  return slot.arrived + (is_barrier ? 1u : 0u) == dimensions_.children ?")]),
    Mutation("agree-root", "ranks need not agree on the root", [
        Edit(SLOTS, "if (a.root != b.root) {", "if (false) {")]),
    Mutation("agree-operation", "ranks need not agree on the operation", [
        Edit(SLOTS, "if (a.operation != b.operation) {", "if (false) {")]),
    Mutation("agree-type", "ranks need not agree on the type", [
        Edit(SLOTS, "if (a.data_type != b.data_type) {", "if (false) {")]),
    Mutation("agree-collective", "ranks need not agree on the collective", [
        Edit(SLOTS, "if (a.collective != b.collective) {", "if (false) {")]),
    Mutation("root-outside", "a broadcast's root may be no rank", [
        Edit(OPENING, "? opening.shape.root < opening.ina.world.get()", "? true")]),
    Mutation("barrier-data", "a barrier may have data", [
        Edit(OPENING, "return may_have_data || opening.shape.data_bytes == 0 ?",
             "return may_have_data || opening.shape.data_bytes != UINT32_MAX ?")]),
    Mutation("resend-root", "what is sent again lacks the root", [
        Edit("lib/datapath/recovery/result_template.cpp", "  ina.root.set(result.shape.root);\n", "")]),
    Mutation("resend-collective", "what is sent again is an all-reduce's", [
        Edit("lib/datapath/recovery/result_template.cpp", "  ina.collective = static_cast<std::uint8_t>(result.shape.collective);\n",
             "  ina.collective = 0;\n")]),
    Mutation("resend-opcode", "what is sent again is an RDMA WRITE's but for the last packet", [
        Edit("lib/datapath/recovery/result_template.cpp", "static_cast<std::uint8_t>(result.headers.first);",
             "static_cast<std::uint8_t>(wire::Opcode::write_first);")]),

    # Trees of switches (§11)
    Mutation("tree-flags", "a switch below may send what a rank sends", [
        Edit(OPENING, "} else if (!ring.is_rank(sender) && sum == 0) {", "} else if (false) {"),
        Edit(OPENING, "  if (opening.ina.message_id.get() != ring.digest()) {",
             "  if (opening.ina.flags == 0) {\n    return std::nullopt;\n  }\n  if (opening.ina.message_id.get() != ring.digest()) {")],
        switches="trees"),
    Mutation("tree-range", "a hello that climbs need not tell the range that is due, and passes switches that do not know the ring", [
        Edit(OPENING, "  return opening.ina.root.get() == ranks.first ? std::nullopt", "  return opening.ina.root.get() == ranks.first || ranks.first < 256 ? std::nullopt"),
        Edit(CLASSIFY, "  if (is_partial(header_of(frame))) {\n    return foreign_partial", "  if (false && is_partial(header_of(frame))) {\n    return foreign_partial")],
        switches="trees"),
    Mutation("tree-begin-alone", "a switch with a parent begins without it", [
        Edit(INCARNATIONS, "  const bool is_root = current_->rings()[opening.sender.ring].is_root();", "  const bool is_root = true;")],
        switches="trees"),
    Mutation("tree-climb-once", "a set of hellos climbs once", [
        Edit(CLIMB, "if (last->climbed_ns == 0 || now.ns >= last->climbed_ns + interval_of(*last)) {", "if (last->climbed_ns == 0) {")],
        switches="trees"),
    Mutation("tree-climb-oldest", "the oldest set climbs in place of the newest", [
        Edit("lib/datapath/conn/waiting_hellos.cpp", "heard > newest_heard", "heard < newest_heard")],
        switches="trees"),
    Mutation("tree-session", "a switch with a parent takes the parent's session for its own", [PARENT_SESSION_TAKEN],
        "a restarted switch has no session, and the caches above hold what left before; tree_test holds the rule by itself",
        switches="trees"),
    Mutation("tree-session-changes", "the parent's session changes with a later result of the hello", PARENT_SESSION_CHANGES,
             switches="trees"),
    Mutation("tree-sessions", "both", [PARENT_SESSION_TAKEN, *PARENT_SESSION_CHANGES], switches="trees"),
    Mutation("tree-total-order", "a total leaves as soon as it comes", [
        Edit(EMIT, "  while (ring.is_total_due_known()) {\n",
             "  if (now.ns != 0) {\n    const auto& record = *verdict.record;\n"
             "    return send_total(verdict.ring, {record.message, verdict.packet, record.first_slot, now.ns}, AckRequest::as_sent, now);\n"
             "  }\n  while (ring.is_total_due_known()) {\n")],
        switches="trees"),
    Mutation("tree-sum-again", "what goes up again is the total", [
        Edit(RECOVER, "  const slot::SlotResult result = ring.cached_sum(leg, slot);", "  const slot::SlotResult result = ring.slots.result_of(slot);")],
        switches="trees"),
    Mutation("tree-nak-passes", "a rank hears what the switch above asks", [
        Edit(RECOVER, "  const bool is_from_above = leg_of(sender) == ring::Leg::outgoing;\n", "  const bool is_from_above = false;\n")],
        switches="trees"),
    Mutation("tree-ask-rnr", "a switch is asked as a rank is", [
        Edit(RECOVER, "  if (is_rank ? ask_rank(sender, now) : ask_switch(sender, now)) {",
             "  if (is_rank || now.ns != 0 ? ask_rank(sender, now) : ask_switch(sender, now)) {")],
        switches="trees"),
    Mutation("tree-silence", "the switch speaks to a ring's ranks while a link of its tree is down", [
        Edit(RECOVER, "  return (current_->rings()[ring].ports_of_switches() & ports_down_) != 0;", "  return ring == UINT16_MAX;")],
        switches="trees"),
    Mutation("tree-keep-alive-up", "a rank is kept alive while a sum that went up is not acknowledged", [
        Edit(TIMERS, "  } else if (const auto awaited = awaited_by(sender)) {",
             "  }\n  const bool is_done = !flow.is_outstanding() || ring.leg_of(sender.child) == ring::Leg::outgoing;\n"
             "  if (const auto awaited = is_done ? awaited_by(sender) : std::nullopt) {")],
        switches="trees"),
    Mutation("tree-resend-up", "partial sums go up again when they are not acknowledged in time", [
        Edit(TIMERS, "  if (current_->rings()[sender.ring].leg_of(sender.child) == ring::Leg::outgoing) {\n    return kNever;",
             "  if (now.ns == 0) {\n    return kNever;")],
        switches="trees"),
    Mutation("tree-pace", "a switch is answered as often as it asks", [
        Edit(FLOW, "  return progress_at + doubled_pause(kSwitchPause, answers - 1u);", "  return 0;")],
        switches="trees"),
    Mutation("tree-pace-no-buffer", "a switch that says RNR NAK before it asks is answered each time", [
        Edit(FLOW, "had_no_buffer && answers <= kTries;", "had_no_buffer;")],
        switches="trees"),

    # Calls in the host library
    Mutation("gather-root", "all of an all-gather's broadcasts have rank 0 as root", [
        Edit(WINDOW, "work.root + piece.segment * work.root_step", "work.root")]),
    Mutation("gather-order", "an all-gather sends its ranks' shares from the last to the first", [
        Edit(WINDOW, "  return {work, segment, offset,",
             "  return {work, static_cast<std::uint16_t>(entry.work.segments - 1 - segment), offset,")]),
    Mutation("gather-place", "an all-gather stores each share in the next one's place", [
        Edit(REDUCER, "progress.slice.store(piece.segment, piece.offset,",
             "progress.slice.store(static_cast<std::uint16_t>((piece.segment + 1) % progress.slice.segments), piece.offset,")]),
    Mutation("gather-source", "an all-gather sends from where the results go", [
        Edit(SLICE, "= is_ours(segment) ? in +", "= segments == 1 ? in +")]),
    Mutation("scatter-share", "a reduce-scatter keeps the predecessor's share", [
        Edit(SLICE, "{place.rank * share, (place.rank + std::size_t{1}) * share}",
             "{(place.rank + place.world - 1u) % place.world * share, ((place.rank + place.world - 1u) % place.world + 1) * share}")]),
    Mutation("reduce-keeps", "every rank keeps a reduce's result", [
        Edit(SLICE, "if (row.receives == op::Who::root && place.rank != call.root)", "if (row.receives == op::Who::nobody)")]),
    Mutation("list-room", "messages of several tensors share one buffer", [
        Edit(REDUCER, "gathered_[message.number % gathered_.size()]", "gathered_[message.number % 1]")]),
    Mutation("list-place", "parts of a list are stored as if it began with this message", [
        Edit(REDUCER, "slice.list->gather(slice.list_begin + offset, gathered);", "slice.list->gather(slice.list_begin, gathered);")]),
    Mutation("queue-empty", "calls without messages are not passed over", [
        Edit(WINDOW, "  while (entry(work).end <= number) {", "  if (entry(work).end <= number) {")]),
    Mutation("queue-acknowledged", "a call is finished when its messages are acknowledged", [
        Edit(WINDOW, "while (!entries_.empty() && entries_.front().end <= settled) {",
             "while (!entries_.empty() && entries_.front().end <= std::max(settled, completed_)) {")]),
    Mutation("queue-arrived", "a call is finished when its results are here", [
        Edit(WINDOW, "while (!entries_.empty() && entries_.front().end <= settled) {",
             "while (!entries_.empty() && entries_.front().end <= std::max(settled, arrived_)) {")]),
    Mutation("queue-window", "the window counts each call's messages by themselves", [
        Edit(WINDOW, "next_ >= arrived_ + config_.window ||",
             "(next_ >= arrived_ + config_.window && (entries_.empty() || next_ != entries_.back().first)) ||")]),
    Mutation("header-room", "a header's place is used again before its message is acknowledged", [
        Edit(WINDOW, "      next_ >= completed_ + headers_.size()) {", "      next_ >= completed_ + 2 * headers_.size()) {")]),
]


def stale_edits(mutations: list[Mutation]) -> list[str]:
    """Edits whose text is not exactly once in its file."""
    mistakes = []
    for mutation in mutations:
        for edit in mutation.edits:
            count = (ROOT / edit.file).read_text().count(edit.old)
            if count != 1:
                mistakes.append(f"{mutation.name}: {edit.file} has {count} times, and should have once: {edit.old}")
    return mistakes


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, text=True, errors="replace", capture_output=True, **options)


def copy_tree(target: Path) -> None:
    """What is there already, and the same, keeps its time."""
    for name in COPIED:
        for source in [ROOT / name, *(ROOT / name).rglob("*")]:
            copy = target / source.relative_to(ROOT)
            if source.is_file() and not (copy.exists() and filecmp.cmp(source, copy, shallow=False)):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)


class Workshop:
    """A copy of the tree, and its build directory with programs, by default the simulation. What is there already is used again."""

    def __init__(self, directory: Path, *programs: str):
        self.tree = directory / "tree"
        self.build = directory / "build"
        copy_tree(self.tree)
        environment = os.environ | {"CCACHE_BASEDIR": str(directory), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1"}
        self.environment = environment
        if not (self.build / "build.ninja").exists():
            self.must(["meson", "setup", str(self.build), str(self.tree), "-Dwerror=false", "-Dbuildtype=release"])
        self.compile(*programs)

    def must(self, command: list[str]) -> None:
        done = run(command, env=self.environment)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def compile(self, *programs: str) -> None:
        self.must(["ninja", "-C", str(self.build), *(programs or (SIMULATION,))])

    def edit(self, edits: list[Edit]) -> dict[Path, str]:
        """Applies all edits; returns the originals."""
        originals: dict[Path, str] = {}
        for edit in edits:
            path = self.tree / edit.file
            text = path.read_text()
            originals.setdefault(path, text)
            if text.count(edit.old) != 1:
                raise RuntimeError(f"{edit.file} has {text.count(edit.old)} times, and should have once: {edit.old}")
            path.write_text(text.replace(edit.old, edit.new))
        return originals

    def simulate(self, seeds: int, switches: str = "") -> subprocess.CompletedProcess:
        of_trees = ["--switches", switches] if switches else []
        return run(["timeout", "300", str(self.build / SIMULATION), "--seeds", f"1:{seeds}", *of_trees])

    def replay(self, case: str) -> subprocess.CompletedProcess:
        return run([sys.executable, str(self.tree / "tests/replay/run.py"), case], env=self.environment | {"WEIR_BUILD": str(self.build)})


@dataclass
class Finding:
    mutation: Mutation
    invariant: str  # empty: survived
    seed: int
    seconds: float
    text: str

    @property
    def row(self) -> str:
        caught = f"{self.invariant} | {self.seed or '–'} | {self.seconds:.1f}" if self.invariant else "**survives** | – | –"
        return f"| `{self.mutation.name}` | {self.mutation.about} | {caught} | {self.text or self.mutation.why_harmless} |"

    @property
    def is_unexplained(self) -> bool:
        return not self.invariant and not self.mutation.why_harmless


def shorten(text: str) -> str:
    return re.sub(r" at \d+\.\d+ us$", "", text).replace("|", "/")[:110]


def examine(workshop: Workshop, mutation: Mutation, seeds: int) -> Finding:
    originals = workshop.edit(mutation.edits)
    output = ""
    try:
        workshop.compile(REPLAY if mutation.replayed else SIMULATION)
        started = time.monotonic()
        tried = workshop.replay(mutation.replayed) if mutation.replayed else workshop.simulate(max(seeds, mutation.seeds), mutation.switches)
        output = tried.stdout
        seconds = time.monotonic() - started
    finally:
        for path, text in originals.items():
            path.write_text(text)
    if difference := DIFFERENCE.search(output) if mutation.replayed else None:
        return Finding(mutation, f"`{mutation.replayed}`", 0, seconds, shorten(re.sub(r"\S+/| [0-9a-f]{64}$|:$", "", difference[1])))
    failure = FAILURE.search(output)
    if failure is None:
        return Finding(mutation, "", 0, seconds, "")
    return Finding(mutation, failure[2], int(failure[1]), seconds, shorten(failure[3]))


def unsound_replays(workshop: Workshop, cases: set[str]) -> list[str]:
    """What those say that fail without any mutation."""
    if cases:
        workshop.compile(REPLAY)
    tried = [workshop.replay(case) for case in sorted(cases)]
    return [replayed.stdout for replayed in tried if replayed.returncode != 0]


def write_page(findings: list[Finding], seeds: int) -> None:
    survivors = [finding for finding in findings if not finding.invariant]
    lines = [
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->",
        "# Does the simulation notice?",
        "",
        "`tests/fabric/mutations.py` writes this part: it breaks the switch in one place at a time and runs the seeds of",
        f"`fabric_sim` from 1 on, {seeds} at most ({RARE} for what shows rarely), until an invariant of `protocol.md` §8 fails;",
        "for `tree-...` the seeds of `--switches trees`. What no host of the simulation does is noticed by a case of `tests/replay`.",
        "The seed is also the number of seeds that it took; seconds are of the run alone. `docs/lab/simulation.md` says what is",
        "simulated.",
        "",
        "| mutation | what is broken | caught by | seed | s | what the simulation said |",
        "|---|---|---|---:|---:|---|",
        *(finding.row for finding in findings),
        "",
        f"{len(findings) - len(survivors)} of {len(findings)} are caught. A survivor with a reason breaks none of the",
        "invariants; one without is a hole in the simulation.",
        "",
    ]
    of_rules = PAGE.read_text().partition(OF_RULES)
    PAGE.write_text("\n".join([*lines, "".join(of_rules[1:])]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutation", metavar="NAME", action="append", help="only this one; no page is written")
    parser.add_argument("--seeds", type=int, default=100_000, help="at most, for each mutation")
    parser.add_argument("--list", action="store_true", help="names the mutations")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if not options.mutation or mutation.name in options.mutation]
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name:20} {mutation.about}")
        return 0
    if mistakes := stale_edits(chosen):
        print("\n".join(mistakes))
        return 1
    findings = []
    with tempfile.TemporaryDirectory(prefix="weir-mutations-") as directory:
        workshop = Workshop(Path(directory))
        sound = workshop.simulate(min(options.seeds, 5000))
        if sound.returncode != 0:
            print(f"the simulation fails without any mutation:\n{sound.stdout[-3000:]}")
            return 1
        if unsound := unsound_replays(workshop, {mutation.replayed for mutation in chosen} - {""}):
            print(f"a replay fails without any mutation:\n{unsound[0][-3000:]}")
            return 1
        for mutation in chosen:
            finding = examine(workshop, mutation, options.seeds)
            findings.append(finding)
            print(finding.row, flush=True)
    if not options.mutation:
        write_page(findings, options.seeds)
    survivors = sum(finding.is_unexplained for finding in findings)
    print(f"mutations: {len(findings) - survivors} passed, {survivors} failed, 0 skipped")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
