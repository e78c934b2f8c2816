// SPDX-License-Identifier: BSD-3-Clause
#include "stage/receive.hpp"

#include "stage/graph_watch.hpp"
#include "wire/parse.hpp"

namespace weir::stage {
namespace {

/// An ACK, NAK, CNP or READ response between two ring neighbours, in either direction. READ
/// responses are included because they share PSNs with ACKs.
bool is_answer_of_neighbours(const frame::Frame& frame) {
  return frame.pair != 0 && frame.packet.parsed == wire::Parsed::transport &&
         frame.packet.opcode.position == wire::Position::none;
}

} // namespace

Receive::Receive(const ring::CurrentRings& current, l2::Bridge& bridge,
                 frame::FrameCounters& counters)
    : current_(current), bridge_(bridge), counters_(counters) {}

void Receive::accept(frame::Frame& frame, frame::Instant now) {
  ++counters_.received;
  bridge_.learn(frame.bytes(), frame.ingress, now.ms());
  wire::parse(frame.bytes(), frame.packet);
  frame.pair = frame.packet.parsed == wire::Parsed::other
                   ? std::uint16_t{0}
                   : current_->pair_of(frame.packet.source, frame.packet.destination);
  if (is_answer_of_neighbours(frame)) {
    frame.traffic = frame::TrafficClass::ring;
  }
  passes<StageId::receive, StageId::dispatch>();
}

} // namespace weir::stage
