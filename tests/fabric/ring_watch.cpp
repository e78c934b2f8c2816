// SPDX-License-Identifier: BSD-3-Clause
#include "ring_watch.hpp"

#include "frame/frame.hpp"
#include "violation.hpp"
#include "wire/headers.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::fabric {

RingWatch::RingWatch(const Scenario& scenario, std::uint16_t ring, std::uint16_t node,
                     Coverage& coverage)
    : ring_(ring), part_(scenario.rings[ring].tree.parts[node]),
      is_copied_(scenario.rogue_acts != 0 ||
                 (scenario.has_several_switches() && scenario.rings[ring].reuse != 0)),
      depth_(scenario.rings[ring].spec.depth()), coverage_(coverage),
      connections_(scenario.rings[ring].hosts.size()) {}

void RingWatch::begin(std::uint32_t generation) {
  generation_ = generation;
  is_undisturbed_ = true;
}

void RingWatch::expect(std::uint16_t rank, std::uint32_t first_psn) {
  connections_[rank] = {first_psn, {}};
}

bool RingWatch::is_current(const Origin& origin) const {
  return origin.generation == generation_;
}

RingWatch::Reading RingWatch::read(const Packet& packet) {
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  Reading reading;
  reading.starts_message = frame.packet.opcode.starts_message();
  reading.qp = frame.packet.destination_qp;
  reading.psn = frame.packet.psn;
  if (const wire::InaHeader* header = wire::find_ina_header(frame)) {
    reading.id = header->message_id.get();
  }
  return reading;
}

RingWatch::Counts RingWatch::counts(const stage::InlineSwitch& engine) const {
  if (!engine.has_ring(ring_)) {
    return {};
  }
  const frame::RingCounters& counters = engine.worker_of(ring_).counters_of(ring_);
  return {counters.contributions, counters.slots_completed, counters.hellos,
          counters.cached_results,
          counters.dropped[static_cast<std::size_t>(DropReason::repeat_held)]};
}

void RingWatch::before(const Packet& packet, const stage::InlineSwitch& engine) {
  if (!is_current(packet.origin)) {
    return;
  }
  before_ = counts(engine);
  const conn::Incarnations& incarnations = engine.worker_of(ring_).incarnations();
  const auto world = static_cast<std::uint16_t>(connections_.size());
  const auto sender = part_.sender_for(packet.origin.rank, world);
  newest_ = incarnations.has(ring_) ? incarnations.status_of(ring_, *sender).newest_message : 0;
  reading_ = read(packet);
}

void RingWatch::after(const Packet& packet, const stage::InlineSwitch& engine) {
  if (!is_current(packet.origin)) {
    return;
  }
  const Counts now = counts(engine);
  tell_slot_rows(now);
  Connection& connection = connections_[packet.origin.rank];
  if (reading_.starts_message) {
    tell_first(connection, reading_, now);
  } else {
    tell_other(now);
  }
}

void RingWatch::tell_slot_rows(const Counts& now) const {
  if (now.completed > before_.completed) {
    coverage_.hit(now.hellos > before_.hellos ? Row::hello_barrier : Row::slot_completed);
  } else if (now.contributions > before_.contributions) {
    coverage_.hit(Row::slot_stored);
  }
  if (now.cached > before_.cached) {
    coverage_.hit(Row::slot_cached);
  }
}

void RingWatch::tell_first(Connection& connection, const Reading& reading, const Counts& now) {
  if (!reading.id) {
    return;
  }
  const std::uint32_t id = *reading.id;
  const bool reached_slot = now.contributions > before_.contributions ||
                            now.cached > before_.cached || now.repeats_held > before_.repeats_held;
  if (!reached_slot) {
    return;
  }
  const auto at = std::lower_bound(
      connection.messages.begin(), connection.messages.end(), id,
      [](const Message& message, std::uint32_t wanted) { return message.id < wanted; });
  if (at != connection.messages.end() && at->id == id) {
    return coverage_.hit(Row::history_repeat);
  }
  coverage_.hit(id < newest_ ? Row::history_hole : Row::history_new);
  connection.messages.insert(at, {id, reading.psn});
}

void RingWatch::tell_other(const Counts& now) const {
  if (now.contributions > before_.contributions || now.cached > before_.cached ||
      now.repeats_held > before_.repeats_held) {
    coverage_.hit(Row::history_inside);
  }
}

void RingWatch::leaves(const Origin& origin, std::uint32_t psn) {
  if (!is_current(origin) || !is_undisturbed_ || is_copied_) {
    return;
  }
  coverage_.hit(Happening::orders_checked);
  Connection& connection = connections_[origin.rank];
  if (wire::psn_before(connection.next_out, psn)) {
    throw Violation("I7", fmt::format("ring {}: rank {}'s PSN {:#x} left before {:#x}", ring_,
                                      origin.rank, psn, connection.next_out));
  }
  if (psn == connection.next_out) {
    connection.next_out = wire::psn_add(psn, 1);
  }
}

} // namespace weir::fabric
