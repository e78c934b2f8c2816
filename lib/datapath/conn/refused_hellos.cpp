// SPDX-License-Identifier: BSD-3-Clause
#include "conn/refused_hellos.hpp"

#include "conn/connection_table.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/sum_stamp.hpp"

#include <algorithm>
#include <span>

namespace weir::conn {
namespace {

bool is_of_a_tree(const ring::RingSet& rings, const frame::Frame& frame,
                  const wire::InaHeader& ina) {
  if (const auto ring = rings.ring_with_id(ina.ring_id.get())) {
    return rings.rings()[*ring].is_in_tree();
  }
  return wire::is_partial(ina) && (rings.ports_of_switches() >> frame.ingress & 1) != 0;
}

} // namespace

void RefusedHellos::note_difference(const ring::RingSet& rings, const frame::Frame& frame,
                                    DropReason reason, std::uint64_t now_ns) {
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr || frame.ingress >= kPorts || !is_known_version(ina->version) ||
      !wire::is_hello(frame, *ina) || !is_of_a_tree(rings, frame, *ina) ||
      !wire::icrc_is_valid(frame)) {
    return;
  }
  RefusedHello& place = place_for(frame.ingress, ina->ring_id.get());
  place = {.header = *ina,
           .source = frame.source(),
           .destination = frame.destination(),
           .port = frame.ingress,
           .reason = reason,
           .at_ns = now_ns,
           .count = place.count + 1};
  ++count_;
}

/// That of the ring, or else the one that was used longest ago, without its count.
RefusedHello& RefusedHellos::place_for(std::uint16_t port, std::uint32_t ring) {
  const std::span places(places_.data() + port * kRingsOfPort, kRingsOfPort);
  const auto known = std::ranges::find_if(places, [ring](const RefusedHello& hello) {
    return hello.count != 0 && hello.header.ring_id.get() == ring;
  });
  if (known != places.end()) {
    return *known;
  }
  RefusedHello& oldest = *std::ranges::min_element(places, {}, &RefusedHello::at_ns);
  oldest.count = 0;
  return oldest;
}

std::vector<RefusedHello> RefusedHellos::all() const {
  std::vector<RefusedHello> all;
  std::ranges::copy_if(places_, std::back_inserter(all),
                       [](const RefusedHello& hello) { return hello.count != 0; });
  return all;
}

} // namespace weir::conn
