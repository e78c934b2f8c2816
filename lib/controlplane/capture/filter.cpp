// SPDX-License-Identifier: BSD-3-Clause
#include "capture/filter.hpp"

#include <algorithm>
#include <vector>

namespace weir::capture {

using frame::Frame;
using frame::TraceRecord;

frame::CaptureFilter of_ring(const ring::Ring& ring, std::uint16_t index) {
  std::vector<wire::IpAddress> members;
  for (const ring::Member& member : ring.spec().members) {
    members.push_back(member.ip);
  }
  std::ranges::sort(members);
  return {.takes = [members, index](const Frame& frame, const TraceRecord& record) {
    if (names_a_ring(record.event)) {
      return record.ring == index;
    }
    return frame.packet.parsed != wire::Parsed::other &&
           (std::ranges::binary_search(members, frame.source()) ||
            std::ranges::binary_search(members, frame.destination()));
  }};
}

frame::CaptureFilter of_connection(const ConnectionName& wanted) {
  return {.takes = [wanted](const Frame& frame, const TraceRecord&) {
    const wire::Packet& packet = frame.packet;
    if (packet.parsed == wire::Parsed::other) {
      return false;
    }
    const wire::IpAddress source = frame.source();
    const wire::IpAddress destination = frame.destination();
    if (source == wanted.source && destination == wanted.destination) {
      return packet.destination_qp == wanted.qp;
    }
    const bool is_answer = source == wanted.destination && destination == wanted.source &&
                           packet.parsed == wire::Parsed::transport &&
                           packet.opcode.position == wire::Position::none;
    return is_answer && wanted.own_qp.value_or(packet.destination_qp) == packet.destination_qp;
  }};
}

} // namespace weir::capture
