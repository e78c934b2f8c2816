// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_path.hpp"

#include <cstring>

namespace weir::stage {

using conn::MessageHistory;

namespace {

using Located = MessageHistory::Located;

constexpr Located kNowhere{MessageHistory::Place::unknown, nullptr, 0};

/// Whether two messages' headers say the same but for the message's number.
bool differ_in_number_alone(const wire::InaHeader& ina, wire::InaHeader other) {
  other.message_id = ina.message_id;
  return std::memcmp(&ina, &other, sizeof ina) == 0;
}

bool tells_length(const frame::Frame& frame, std::uint64_t message_bytes) {
  const wire::Packet& packet = frame.packet;
  return packet.opcode.has_reth == 0 ||
         wire::view_as<wire::Reth>(frame.data + packet.bth_offset + sizeof(wire::Bth))
                 .dma_length.get() == message_bytes;
}

} // namespace

RingPath::RingPath(Lanes& lanes, RingStates& rings, const Queue& queue, const Forward& forward,
                   l2::Bridge& bridge, Aggregate& aggregate, frame::FrameCounters& counters)
    : lanes_(lanes), rings_(rings), queue_(queue), forward_(forward), bridge_(bridge),
      aggregate_(aggregate), counters_(counters) {}

bool RingPath::take(frame::Frame& frame, Lane& lane, frame::Instant now) {
  if (!queue_.is_open() || !is_still_for(lane, frame) || !lane.holds()) [[unlikely]] {
    return false;
  }
  const std::uint32_t psn = lane.headers.psn_of(frame.bytes());
  if (lane.live.flow->is_past(psn)) [[unlikely]] {
    return false;
  }
  frame.packet.psn = psn;
  const Located located = frame.packet.opcode.starts_message() ? start_of_message(frame, lane)
                                                               : inside_message(frame, lane);
  if (located.place != MessageHistory::Place::inside) [[unlikely]] {
    return false;
  }
  ++taken_;
  ++counters_.received;
  learn_station(frame, lane, now);
  lane.live.connection->count_packet(now.ms());
  pass(frame, lane);
  verify(frame, lane);
  aggregate_.accept(frame, verdict_of(lane, located.record, located.packet), now);
  return true;
}

/// For a packet of the lane that was taken: its frame may be gone by now. False when it says
/// nothing of the next one, or did not bring the ring and its connection up to this instant, since
/// it was damaged, refused or a repeat. Whatever the lane has learnt meanwhile: all its frames of
/// the burst have the headers that this one has.
bool RingPath::prepare_for_followers(const Lane& lane, frame::Instant now) {
  const wire::Packet& packet = lane.headers.packet();
  if (packet.opcode.position != wire::Position::middle || !lane.has_icrc) {
    return false;
  }
  conn::Verdict& verdict = followers_.verdict;
  verdict = verdict_of(lane, lane.live.history->last_found(), 0);
  followers_.contribution = contribution_of(packet, verdict, now);
  followers_.ring = &*rings_[verdict.ring];
  return followers_.ring->news_at_ns == now.ns && lane.live.flow->is_up_to_date(now.ns);
}

/// What take_follower() leaves to be done once for all.
void RingPath::count(unsigned followers, const Lane& lane) {
  taken_ += followers;
  counters_.received += followers;
  lane.live.connection->packets += followers;
}

bool RingPath::verify(frame::Frame& frame, Lane& lane) {
  return lane.has_icrc && frame.icrc == wire::IcrcState::unverified ? lane.icrc.verify(frame)
                                                                    : wire::verify_icrc(frame);
}

/// A message that has not come before, if it is as the one that was learnt. It changes the history,
/// so nothing of the packet is used before its ICRC is verified.
Located RingPath::start_of_message(frame::Frame& frame, Lane& lane) {
  const auto& ina = wire::view_as<wire::InaHeader>(frame.payload());
  const auto shape = wire::MessageShape::of(lane.ina);
  if (!verify(frame, lane) || !differ_in_number_alone(ina, lane.ina) ||
      ina.session.get() != *lane.live.session || !tells_length(frame, shape.message_bytes())) {
    return kNowhere;
  }
  const auto entered =
      lane.live.history->enter(ina.message_id.get(), frame.packet.psn, lane.packets, shape);
  return entered.entry == MessageHistory::Entry::entered
             ? Located{MessageHistory::Place::inside, entered.record, 0}
             : kNowhere;
}

Located RingPath::inside_message(const frame::Frame& frame, Lane& lane) {
  const Located located = lane.live.history->locate(frame.packet.psn);
  return located.place == MessageHistory::Place::inside &&
                 conn::fits_message(frame.packet, located.record->shape, located.record->packets,
                                    located.packet, lane.mtu)
             ? located
             : kNowhere;
}

void RingPath::learn_station(const frame::Frame& frame, Lane& lane, frame::Instant now) {
  const conn::Connection& connection = *lane.live.connection;
  const bool is_pinned = rings_[connection.ring]->pins[connection.child].has_value();
  if (!is_pinned || now.ms() - lane.heard >= kLearnEveryMs) {
    lane.heard = now.ms();
    bridge_.learn(frame.bytes(), frame.ingress, now.ms());
  }
}

} // namespace weir::stage
