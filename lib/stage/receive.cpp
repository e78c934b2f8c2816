// SPDX-License-Identifier: BSD-3-Clause
#include "stage/receive.hpp"

#include "frame/frame.hpp"
#include "wire/parse.hpp"

namespace weir::stage {
namespace {

/// An ACK, NAK, CNP or READ response between two neighbours of a ring, in either direction. That
/// READ responses are among them is the price of their sharing PSNs with ACKs.
bool is_answer_of_neighbours(const frame::Frame& frame) {
  return frame.pair != 0 && frame.packet.parsed == wire::Parsed::transport &&
         frame.packet.opcode.position == wire::Position::none;
}

} // namespace

Receive::Receive(const ring::RingDirectory& directory, const conn::MagicRule::Settings& magic_rule,
                 l2::Bridge& bridge, Forwarder& forwarder, WorkerSink& workers,
                 frame::FrameCounters& counters)
    : directory_(directory), magic_rule_(magic_rule), bridge_(bridge), forwarder_(forwarder),
      workers_(workers), counters_(counters) {}

void Receive::look_at(frame::Frame& frame, frame::Instant now) {
  ++counters_.received;
  bridge_.learn(frame.bytes(), frame.ingress, now.ms);
  frame.packet = wire::parse(frame.bytes());
  frame.pair = frame.packet.parsed == wire::Parsed::other
                   ? std::uint16_t{0}
                   : directory_.pair_of(frame.packet.source, frame.packet.destination);
  if (is_answer_of_neighbours(frame)) {
    frame.traffic = frame::TrafficClass::ring;
  }
}

void Receive::pass_on(frame::Frame& frame, frame::Instant now) {
  if (frame.pair == 0) {
    return forward_foreign(frame, now);
  }
  if (!directory_.may_enter(frame.pair, frame.ingress)) {
    return forwarder_.drop(frame, DropReason::wrong_port, now);
  }
  workers_.to_worker(frame, directory_.group_of_pair(frame.pair), now);
}

void Receive::forward_foreign(frame::Frame& frame, frame::Instant now) {
  if (frame.packet.parsed != wire::Parsed::other) {
    if (const auto reason = magic_rule_.why_not_forwarded(frame, now.ms)) {
      return forwarder_.drop(frame, *reason, now);
    }
  }
  forwarder_.send(frame, frame::Departure::forwarded, now);
}

} // namespace weir::stage
