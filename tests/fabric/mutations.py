#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the switch in one place at a time and finds which invariant of the simulation notices it, after how many seeds.

Works on a copy of the tree with a build directory of its own. Ends in "mutations: N passed, N failed, 0 skipped"; a
mutation that survives without a reason is a failure.
"""

from __future__ import annotations

import argparse
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
COPIED = ["include", "lib", "app", "tests", "meson.build", "meson_options.txt", "meson.options"]
FAILURE = re.compile(r"^seed (\d+): (I\d+) violated: (.*?)$", re.MULTILINE)


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
    why_harmless: str = ""  # for a mutation that no invariant can notice


CLASSIFY = "lib/conn/classifier.cpp"
HISTORY = "lib/conn/message_history.cpp"
SLOTS = "lib/slot/slot_table.cpp"
DISPATCH = "lib/stage/dispatch.cpp"
CLASSIFY_STAGE = "lib/stage/classify.cpp"
AGGREGATE = "lib/stage/aggregate.cpp"
EMIT = "lib/stage/emit.cpp"
RING_STATE = "lib/stage/ring_state.cpp"
WHOLE_FLIGHT = ("these senders go back over all that is in flight; its later packets meet the cache, and their ACK covers "
                "the stale ones too")

MUTATIONS = [
    Mutation("bitmap", "a repeat counts as another rank's contribution", [
        Edit(SLOTS, "if (slot.has(contribution.child)) {", "if (false) {")]),
    Mutation("cache-forward", "no cache: a repeat in a complete slot is forwarded", [
        Edit(AGGREGATE, "return emit_.answer_from_cache(frame, verdict, contribution.slot, now);",
             "return forward_.send(frame, frame::Departure::forwarded, now);")]),
    Mutation("cache-recompute", "no cache: a complete slot is filled anew by repeats (NetReduce)", [
        Edit(SLOTS, "    return SlotEvent::repeat_complete;",
             "    reclaim(slot, contribution);\n    return store(slot, contribution, frame);")]),
    Mutation("old-epoch", "hellos of older epochs wait", [
        Edit(CLASSIFY, "if (state.epoch && incarnation.epoch < *state.epoch) {", "if (false) {")],
        "nonces tell runs apart; the order of epochs keeps a dead run, all of whose hellos come late, from ending a living "
        "one, which the simulation allows for equal epochs too; classify_test holds the rule by itself"),
    Mutation("nonce", "a hello of the same epoch is taken for message 0, whatever its nonce", [
        Edit(CLASSIFY, "if (state.incarnation == incarnation_named_by(opening.ina)) {",
             "if (state.incarnation && state.incarnation->epoch == opening.ina.epoch.get()) {")]),
    Mutation("retired", "hellos of an incarnation that is over wait again", [
        Edit(CLASSIFY, "if (state.retired.has(incarnation.nonce)) {", "if (false) {")]),
    Mutation("data-epoch", "a message of a newer epoch ends the incarnation", [
        Edit(CLASSIFY, "    return dropped(DropReason::wrong_epoch);",
             "    if (opening.ina.epoch.get() > state.incarnation->epoch) {\n      end_incarnation(opening.sender.ring);\n    }\n"
             "    return dropped(DropReason::wrong_epoch);")]),
    Mutation("session-again", "a new incarnation keeps the session", [
        Edit(CLASSIFY, "state.session = sessions_.draw(state.session);",
             "state.session = state.session != 0 ? state.session : sessions_.draw(0);")]),
    Mutation("overtaken", "a hello waits on although its sender went on", [
        Edit(CLASSIFY, "  take_out_overtaken(frame, epoch, now);\n", "")],
        "with one switch no sum and no job depends on it (docs/model.md); classify_test holds the rule by itself"),
    Mutation("nonce-of-result", "a host takes any run's hello result", [
        Edit("lib/host/collective/message_window.cpp", "if (state_ == State::greeting && nonce_in(header) != config_.nonce) {",
             "if (false) {")],
        "a dead run's result comes on its own queue pair and PSN, and hosts here draw others; message_window_test holds the "
        "rule by itself"),
    Mutation("begin-flush", "a new incarnation leaves slots as they are", [
        Edit(CLASSIFY_STAGE, "  flush(ring, DropReason::incarnation_flush, now);\n", "")]),
    Mutation("begin-dead", "a new incarnation leaves the old connections as they are", [
        Edit(CLASSIFY, "  connection.state = ConnectionState::dead;\n", "")]),
    Mutation("icrc", "ICRCs are not verified", [
        Edit("lib/wire/icrc.cpp", "return frame.icrc == IcrcState::valid;", "return true;")]),
    Mutation("icrc-first", "ICRCs of FIRST and ONLY are not verified", [
        Edit(CLASSIFY, "if (!wire::verify_icrc(frame)) {", "if (false) {"),
        Edit(AGGREGATE, "if (!wire::verify_icrc(frame)) {",
             "if (!wire::verify_icrc(frame) && !frame.packet.opcode.starts_message()) {")]),
    Mutation("icrc-other", "ICRCs of MIDDLE and LAST are not verified", [
        Edit(AGGREGATE, "if (!wire::verify_icrc(frame)) {",
             "if (!wire::verify_icrc(frame) && frame.packet.opcode.starts_message()) {")]),
    Mutation("history-depth", "the history remembers one message (NetReduce)", [
        Edit("lib/conn/message_history.hpp", "return packet < last_found_->packets ?",
             "return last_found_->message == newest_ && packet < last_found_->packets ?"),
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
             "  if (connection == nullptr) {\n    connections_.add_stranger(frame.pair, frame.packet.destination_qp, "
             "ConnectionState::foreign, 0);\n    return forwarded();"),
        Edit(CLASSIFY, "    connection->state = ConnectionState::barred;\n", "    connection->state = ConnectionState::foreign;\n")]),
    Mutation("magic-hello", "a hello alone opens a connection to an unknown ring", [
        Edit(CLASSIFY, "if (was_greeted && (is_result(ina) || foreign_sessions_.has(frame.packet, ina))) {",
             "if (was_greeted) {")]),
    Mutation("slots-n", "N messages of slots instead of 2N", [
        Edit(RING_STATE, "ring.children(), spec.depth(),", "ring.children(), spec.window,"),
        Edit(HISTORY, "static_cast<std::uint32_t>(message % depth()) * packets_per_message_",
             "static_cast<std::uint32_t>(message % (depth() / 2)) * packets_per_message_")]),
    Mutation("slot-stale-off", "a slot's tag is not looked at for stale repeats", [
        Edit(SLOTS, "if (state != State::empty && slot.tag > contribution.message) {", "if (false) {")]),
    Mutation("slot-stale-drop", "a stale repeat is dropped at its slot", [
        Edit(SLOTS, "    return SlotEvent::stale;", "    return SlotEvent::window_violation;")],
        WHOLE_FLIGHT),
    Mutation("history-stale-drop", "a FIRST below the history is dropped", [
        Edit(HISTORY, "return {Entry::stale, nullptr};", "return {Entry::too_far, nullptr};")],
        WHOLE_FLIGHT),
    Mutation("floor", "packets before the floor are dropped", [
        Edit(HISTORY, "const bool is_stale = floor_ && psn_before(psn, *floor_);", "const bool is_stale = false;")],
        WHOLE_FLIGHT),
    Mutation("window-violation", "a newer message takes over a slot that is still filling", [
        Edit(SLOTS, "if (state == State::filling) {\n      return SlotEvent::window_violation;",
             "if (false) {\n      return SlotEvent::window_violation;")]),
    Mutation("session", "the session is not looked at", [
        Edit(CLASSIFY, "if (opening.ina.session.get() != state.session) {", "if (false) {")]),
    Mutation("hole", "a hole is taken for stale", [
        Edit(CLASSIFY, "return dropped(DropReason::unknown_message);",
             "return {.step = Step::forward_stale, .ring = connection.ring, .child = connection.child};")]),
    Mutation("dead", "packets of dead connections are forwarded", [
        Edit(CLASSIFY, "    return forwarded();\n  case ConnectionState::dead:\n    return dropped(DropReason::dead_connection);\n"
             "  case ConnectionState::announced:", "    return forwarded();\n  case ConnectionState::dead:\n    return forwarded();\n"
             "  case ConnectionState::announced:")]),
    Mutation("wrong-port", "a member's packets may come from anywhere", [
        Edit(CLASSIFY, "if (!ports_.may_enter(frame.pair, frame.ingress) && !greets_unbound_ring(frame)) {", "if (false) {"),
        Edit(CLASSIFY, "return connection.state == ConnectionState::live && connection.port != frame.ingress;",
             "return false && connection.port != frame.ingress;"),
        Edit(DISPATCH, "if (!current_->may_enter(frame.pair, frame.ingress)) {", "if (false) {")]),
    Mutation("port-of-another", "what one ring's hellos say of ports bars another ring", [
        Edit(CLASSIFY, " && !greets_unbound_ring(frame)) {", ") {")]),
    Mutation("admission", "a queue pair without hello is taken for its rank's", [
        Edit(CLASSIFY, "  if (!is_admitted(connection, opening)) {\n    return dropped(DropReason::no_connection);",
             "  if (connection == nullptr) {\n    return dropped(DropReason::no_connection);")]),
    Mutation("conflict", "a message's FIRST may come at another PSN than before", [
        Edit(HISTORY, "const bool same =\n        record->first_psn == psn &&", "const bool same =\n        ")],
        "the history keeps the first PSN; here nobody forges one that a receiver takes for more than a repeat"),
    Mutation("too-far", "messages far ahead are taken", [
        Edit(HISTORY, "if (ahead > window || signed_message < 0) {",
             "if ((ahead > window && window < 0) || signed_message < 0) {")],
        "most such messages then conflict with a known one or meet a slot that still fills; "
        "message_history_test and switch_test hold the rule by itself"),
    Mutation("rank-order", "ranks are folded from the last to the first", [
        Edit(SLOTS, "  fold_to_all(fold,",
             "  std::reverse(payloads.begin(), payloads.begin() + static_cast<std::ptrdiff_t>(frames.size()));\n"
             "  fold_to_all(fold,")]),
    Mutation("withdrawn", "a withdrawn ring stays in the set", [
        Edit("lib/ring/ring_set.cpp", "  less.ring_by_id_.erase(rings_[ring].spec().id);\n", "")],
        "its hosts form again, and their sums are right; ring_set_test and switch_test hold the rule by themselves"),
    Mutation("rank-missing", "a slot is complete when one rank is still missing", [
        Edit(SLOTS, "slot.arrived == dimensions_.children ?", "slot.arrived + 1 >= dimensions_.children ?")]),
    Mutation("ingress", "floods reach the ingress too", [
        Edit("lib/l2/bridge.cpp", "return {all_ & ~one(ingress), DropReason::no_egress};",
             "return {all_, DropReason::no_egress};")]),
    Mutation("flush-leak", "a flush forgets the frames of the last rank", [
        Edit("lib/slot/slot_table.hpp", "if (slots_[index].has(child)) {",
             "if (slots_[index].has(child) && child + 1 != dimensions_.children) {")]),
    Mutation("hello-session", "a hello's result lacks the session", [
        Edit("lib/slot/result_packet.cpp", "ina.session.set(session);", "(void)session;")]),
    Mutation("hello-nonce", "a hello's result lacks the nonce", [
        Edit("lib/slot/result_packet.cpp", "    ina.message_id.set(ina.session.get()); // the nonce tells whose hello this is\n", "")]),
    Mutation("result-flag", "a result lacks RESULT", [
        Edit("lib/slot/result_packet.cpp", "ina.flags = kInaFlagResult;", "")]),
    Mutation("udp-checksum", "a result keeps its sender's UDP checksum", [
        Edit("lib/slot/result_packet.cpp", "  clear_udp_checksum(frame);\n", "")]),
    Mutation("sum-overtaken", "what is no result overtakes results that helpers are at", [
        Edit(EMIT, "  drain_connection_of(frame, now);\n", "")],
        "when a ring's packets come in order, nothing else of its connections passes while sums are made; switch_test "
        "holds the rule by itself"),
    Mutation("sum-twice", "results that had to leave before their turn leave again in it", [
        Edit(EMIT, "    if (entry.has_left) {\n      continue;", "    if (false) {\n      continue;")]),
    Mutation("sum-flushed", "a flush does not wait for helpers", [
        Edit(AGGREGATE, "  emit_.drain_ring(ring, now); // a helper may be using some of its frames\n", "")]),
    Mutation("sum-unfinished", "results leave before their sum is made", [
        Edit(EMIT, "    if (!entry.reduction.is_made()) {\n      return frames + 1;", "    if (false) {\n      return frames + 1;")]),
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
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        elif source.exists():
            shutil.copy2(source, target / name)


class Workshop:
    """A copy of the tree and its build directory."""

    def __init__(self, directory: Path):
        self.tree = directory / "tree"
        self.build = directory / "build"
        self.tree.mkdir(parents=True)
        copy_tree(self.tree)
        environment = os.environ | {"CCACHE_BASEDIR": str(directory), "CCACHE_NOHASHDIR": "1"}
        self.environment = environment
        self.must(["meson", "setup", str(self.build), str(self.tree), "-Dwerror=false", "-Dbuildtype=release"])
        self.compile()

    def must(self, command: list[str]) -> None:
        done = run(command, env=self.environment)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def compile(self) -> None:
        self.must(["ninja", "-C", str(self.build), "tests/fabric/fabric_sim"])

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

    def simulate(self, seeds: int) -> subprocess.CompletedProcess:
        return run(["timeout", "300", str(self.build / "tests/fabric/fabric_sim"), "--seeds", f"1:{seeds}"])


@dataclass
class Finding:
    mutation: Mutation
    invariant: str  # empty: survived
    seed: int
    seconds: float
    text: str

    @property
    def row(self) -> str:
        caught = f"{self.invariant} | {self.seed} | {self.seconds:.1f}" if self.invariant else "**survives** | – | –"
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
        workshop.compile()
        started = time.monotonic()
        output = workshop.simulate(seeds).stdout
        seconds = time.monotonic() - started
    finally:
        for path, text in originals.items():
            path.write_text(text)
    failure = FAILURE.search(output)
    if failure is None:
        return Finding(mutation, "", 0, seconds, "")
    return Finding(mutation, failure[2], int(failure[1]), seconds, shorten(failure[3]))


def write_page(findings: list[Finding], seeds: int) -> None:
    survivors = [finding for finding in findings if not finding.invariant]
    lines = [
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->",
        "# Does the simulation notice?",
        "",
        "`tests/fabric/mutations.py` writes this page: it breaks the switch in one place at a time and runs the seeds of",
        f"`fabric_sim` from 1 on, {seeds} at most, until an invariant of `protocol.md` §8 fails. The seed is also the",
        "number of seeds that it took; seconds are of the run alone. `docs/simulation.md` says what is simulated.",
        "",
        "| mutation | what is broken | caught by | seed | s | what the simulation said |",
        "|---|---|---|---:|---:|---|",
        *(finding.row for finding in findings),
        "",
        f"{len(findings) - len(survivors)} of {len(findings)} are caught. A survivor with a reason breaks none of the",
        "invariants; one without is a hole in the simulation.",
        "",
    ]
    PAGE.write_text("\n".join(lines))


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
