// SPDX-License-Identifier: BSD-3-Clause
#include "stage/receive.hpp"

#include "stage/graph_watch.hpp"
#include "wire/loop_probe.hpp"

namespace weir::stage {

using Outcome = wire::HeaderPrediction::Outcome;

namespace {

/// An ACK, NAK, CNP or READ response. READ responses are included because they share PSNs with
/// ACKs.
bool is_answer(const frame::Frame& frame) {
  return frame.packet.parsed == wire::Parsed::transport &&
         frame.packet.opcode.position == wire::Position::none;
}

} // namespace

Receive::Receive(const ring::CurrentRings& current, l2::Bridge& bridge,
                 frame::FrameCounters& counters)
    : current_(current), bridge_(bridge), counters_(counters), expected_(l2::kMaxPorts) {}

void Receive::accept(frame::Frame& frame, frame::Instant now) {
  ++counters_.received;
  parse(frame);
  if (frame.pair != 0) {
    bridge_.learn_neighbour(frame.bytes(), frame.ingress, now.ms());
    if (is_answer(frame)) { // in either direction
      frame.traffic = frame::TrafficClass::ring;
    }
  } else if (wire::find_loop_probe(frame.bytes()) == nullptr) [[likely]] { // no station sends one
    bridge_.learn(frame.bytes(), frame.ingress, now.ms());
  }
  passes<StageId::receive, StageId::dispatch>();
}

void Receive::parse(frame::Frame& frame) {
  Expected& expected = expected_[frame.ingress];
  const Outcome outcome = expected.headers.parse(frame.bytes(), frame.packet);
  Pair& pair = expected.pairs[static_cast<std::size_t>(frame.packet.opcode.position)];
  if (outcome == Outcome::as_learnt && pair.rings == current_.number()) [[likely]] {
    frame.pair = pair.number;
    return;
  }
  frame.pair = pair_of(frame);
  if (outcome != Outcome::parsed) {
    pair = {current_.number(), frame.pair};
  }
}

std::uint16_t Receive::pair_of(const wire::ParsedBytes& frame) const {
  return frame.packet.parsed == wire::Parsed::other
             ? std::uint16_t{0}
             : current_->pair_of(frame.source(), frame.destination());
}

} // namespace weir::stage
