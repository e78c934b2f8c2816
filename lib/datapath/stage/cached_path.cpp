// SPDX-License-Identifier: BSD-3-Clause
#include "stage/cached_path.hpp"

#include "stage/pipeline.hpp"

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

CachedPath::CachedPath(Pipeline& pipeline)
    : flow_cache_(pipeline.state.flow_cache), rings_(pipeline.state.rings), queue_(pipeline.queue),
      forward_(pipeline.state.forward), bridge_(pipeline.state.bridge),
      aggregate_(pipeline.aggregate), counters_(pipeline.state.counters) {}

bool CachedPath::take(frame::Frame& frame, FlowCacheEntry& entry, frame::Instant now) {
  if (!queue_.is_open() || !is_still_for(entry, frame) || !entry.holds()) [[unlikely]] {
    return false;
  }
  const std::uint32_t psn = entry.headers.psn_of(frame.bytes());
  if (entry.live.flow->is_past(psn)) [[unlikely]] {
    return false;
  }
  frame.packet.psn = psn;
  const Located located = frame.packet.opcode.starts_message() ? start_of_message(frame, entry)
                                                               : inside_message(frame, entry);
  if (located.place != MessageHistory::Place::inside) [[unlikely]] {
    return false;
  }
  ++taken_;
  ++counters_.received;
  learn_station(frame, entry, now);
  entry.live.connection->count_packet(now.ms());
  pass(frame, entry);
  verify(frame, entry);
  aggregate_.accept(frame, verdict_of(entry, located.record, located.packet), now);
  return true;
}

/// After a packet of the entry was taken; its frame may be gone by now. False when the packet says
/// nothing of the next one: it starts or ends a message, or it was damaged, refused or a repeat, so
/// that ring and connection have no news of this instant. The entry may have learnt other headers
/// meanwhile, but all its frames of this burst have the headers that this packet has.
bool CachedPath::begin_run(const FlowCacheEntry& entry, frame::Instant now) {
  const wire::Packet& packet = entry.headers.packet();
  if (packet.opcode.position != wire::Position::middle || !entry.has_icrc) {
    return false;
  }
  conn::Verdict& verdict = run_.verdict;
  verdict = verdict_of(entry, entry.live.history->last_found(), 0);
  run_.contribution = contribution_of(packet, verdict, now);
  run_.ring = &*rings_[verdict.ring];
  return run_.ring->news_at_ns == now.ns && entry.live.flow->is_up_to_date(now.ns);
}

/// What take_next_of_run() leaves to be done once for all.
void CachedPath::count(unsigned in_run, const FlowCacheEntry& entry) {
  taken_ += in_run;
  counters_.received += in_run;
  entry.live.connection->packets += in_run;
}

bool CachedPath::verify(frame::Frame& frame, FlowCacheEntry& entry) {
  return entry.has_icrc && frame.icrc == wire::IcrcState::unverified ? entry.icrc.verify(frame)
                                                                     : wire::verify_icrc(frame);
}

/// A message that has not come before, if it is as the one that was learnt. It changes the history,
/// so nothing of the packet is used before its ICRC is verified.
Located CachedPath::start_of_message(frame::Frame& frame, FlowCacheEntry& entry) {
  const auto& ina = wire::view_as<wire::InaHeader>(frame.payload());
  const auto shape = wire::MessageShape::of(entry.ina);
  if (!verify(frame, entry) || !differ_in_number_alone(ina, entry.ina) ||
      ina.session.get() != *entry.live.session || !tells_length(frame, shape.message_bytes())) {
    return kNowhere;
  }
  const auto entered =
      entry.live.history->enter(ina.message_id.get(), frame.packet.psn, entry.packets, shape);
  return entered.entry == MessageHistory::Entry::entered
             ? Located{MessageHistory::Place::inside, entered.record, 0}
             : kNowhere;
}

Located CachedPath::inside_message(const frame::Frame& frame, FlowCacheEntry& entry) {
  const Located located = entry.live.history->locate(frame.packet.psn);
  return located.place == MessageHistory::Place::inside &&
                 conn::fits_message(frame.packet, located.record->shape, located.record->packets,
                                    located.packet, entry.mtu)
             ? located
             : kNowhere;
}

void CachedPath::learn_station(const frame::Frame& frame, FlowCacheEntry& entry,
                               frame::Instant now) {
  const conn::Connection& connection = *entry.live.connection;
  const bool is_pinned = rings_[connection.ring]->pins[connection.child].has_value();
  if (!is_pinned || now.ms() - entry.heard >= kLearnEveryMs) {
    entry.heard = now.ms();
    bridge_.learn_neighbour(frame.bytes(), frame.ingress, now.ms());
  }
}

} // namespace weir::stage
