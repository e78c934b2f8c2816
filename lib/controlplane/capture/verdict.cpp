// SPDX-License-Identifier: BSD-3-Clause
#include "capture/verdict.hpp"

#include "l2/port_set.hpp"
#include "ring/sender_name.hpp"
#include "stage/graph.hpp"
#include "wire/headers.hpp"
#include "wire/parse.hpp"
#include "wire/syndrome.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weir::capture {

using frame::CapturedFrame;
using frame::TraceEvent;
using frame::TraceRecord;

namespace {

std::string ports_of(l2::PortSet ports, const Names& names) {
  std::string text;
  l2::for_each_port(
      ports, [&](std::uint16_t port) { text += (text.empty() ? "" : ", ") + names.ports[port]; });
  return text;
}

std::string sender_of(const TraceRecord& record, const Names& names) {
  const ring::RingSpec& ring = names.rings[record.ring];
  return fmt::format("{} of ring {}", ring::phrase_for(ring, record.child), ring.id);
}

/// What leaves on the sender's connection: for the switch above, or for a child.
std::string_view kind_of_sum(const TraceRecord& record, const Names& names) {
  const ring::RingSpec& ring = names.rings[record.ring];
  return ring.parent && record.child + 1u == ring.children.size() ? "partial sum" : "result";
}

/// docs/protocol.md §4: slot (m mod 2N)·L + k.
std::uint64_t slot_of(const TraceRecord& record, const ring::RingSpec& ring) {
  return record.message % ring.depth() * ring.packets_per_message() + record.packet;
}

std::string packet_of(const TraceRecord& record, const Names& names) {
  const ring::RingSpec& ring = names.rings[record.ring];
  return fmt::format("slot {} of ring {}: {}, message {}, packet {}", slot_of(record, ring),
                     ring.id, ring::phrase_for(ring, record.child), record.message, record.packet);
}

std::string drop_of(const TraceRecord& record) {
  return fmt::format("dropped: {} in {} ({})", name_of(record.drop),
                     stage::row_of(stage::stage_of(record)).name, text_of(record.drop));
}

/// "ACK", "NAK" or "RNR NAK".
std::string_view answer_of(std::span<const std::uint8_t> bytes) {
  const std::size_t aeth_at = wire::parse(bytes).bth_offset + sizeof(wire::Bth);
  switch (wire::kind_of(bytes[aeth_at])) {
  case wire::SyndromeKind::acknowledge:
    return "ACK";
  case wire::SyndromeKind::rnr:
    return "RNR NAK";
  default:
    return "NAK";
  }
}

} // namespace

std::string arrival_verdict(const CapturedFrame& captured, const Names& names) {
  const TraceRecord& record = captured.record;
  switch (record.event) {
  case TraceEvent::forwarded:
    return "forwarded to " + ports_of(record.egress, names);
  case TraceEvent::waits:
    return fmt::format("hello of {} waits for the others", sender_of(record, names));
  case TraceEvent::climbs:
    return fmt::format("hello of {} is the last; one for all goes to the switch above",
                       sender_of(record, names));
  case TraceEvent::begins:
    return ring::is_parent(names.rings[record.ring], record.child)
               ? fmt::format("{} has begun; so does this one", sender_of(record, names))
               : fmt::format("hello of {} is the last; the ring begins", sender_of(record, names));
  case TraceEvent::held:
    return "held in " + packet_of(record, names);
  case TraceEvent::completed:
    return fmt::format("completes {}; all are folded", packet_of(record, names));
  case TraceEvent::total:
    return "total of " + packet_of(record, names);
  case TraceEvent::repeated:
    return fmt::format("repeat, answered by the {} of {}", kind_of_sum(record, names),
                       packet_of(record, names));
  case TraceEvent::dropped:
    return drop_of(record);
  default:
    return std::string(name_of(record.event));
  }
}

std::string departure_verdict(const CapturedFrame& captured, std::span<const std::uint8_t> bytes,
                              const Names& names) {
  const TraceRecord& record = captured.record;
  switch (record.event) {
  case TraceEvent::forwarded:
    return record.ingress == frame::kNoPort ? "sent by the switch itself"
                                            : "forwarded from " + names.ports[record.ingress];
  case TraceEvent::climbs:
    return "hello for all children, to the switch above";
  case TraceEvent::partial_sum:
    return fmt::format("partial sum of {}, to the switch above", packet_of(record, names));
  case TraceEvent::result:
    return "result sent of " + packet_of(record, names);
  case TraceEvent::cached_result:
    return fmt::format("{} sent for a repeat, of {}", kind_of_sum(record, names),
                       packet_of(record, names));
  case TraceEvent::resent:
    return fmt::format("{} sent again of {}", kind_of_sum(record, names), packet_of(record, names));
  case TraceEvent::acknowledged:
  case TraceEvent::asked:
    return fmt::format("{} sent by the switch to {}", answer_of(bytes), sender_of(record, names));
  case TraceEvent::told:
    return fmt::format("{} sent by the switch to {}, whose run is over", answer_of(bytes),
                       sender_of(record, names));
  default:
    return std::string(name_of(record.event));
  }
}

std::string inside_verdict(const CapturedFrame& captured, const Names& names) {
  const TraceRecord& record = captured.record;
  return record.egress == 0
             ? drop_of(record)
             : fmt::format("{}, on its way to {}", drop_of(record), ports_of(record.egress, names));
}

} // namespace weir::capture
