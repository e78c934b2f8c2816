// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/go_back_switch.hpp"

namespace weir::netsim {

void GoBackSwitch::take_contribution(std::uint32_t child, std::uint32_t packet, Time now) {
  switch (slots_.look(packet, child)) {
  case SlotTable::Finding::newer:    // a stale repeat, which goes on
  case SlotTable::Finding::complete: // from the cache, only on this connection
    ports_.send_down(place_.successor_of(child), packet, FoldPorts::Press::normal);
    return;
  case SlotTable::Finding::present:
    return;
  case SlotTable::Finding::absent:
    break;
  }
  if (!knows_first_of(packet, child) || !slots_.store(packet, child)) {
    return;
  }
  if (place_.level == FoldPlace::Level::root) {
    take_total(packet, now);
  } else {
    ports_.send_up(packet);
  }
}

/// False when the FIRST of the packet's message was lost: the packet cannot be placed and is
/// dropped.
bool GoBackSwitch::knows_first_of(std::uint32_t packet, std::uint32_t child) const {
  const std::uint32_t first = messages_.first_of(messages_.message_of(packet));
  return first == packet || slots_.look(first, child) != SlotTable::Finding::absent;
}

void GoBackSwitch::take_total(std::uint32_t packet, Time /*now*/) {
  for (std::uint32_t child = 0; child < place_.count(); ++child) {
    ports_.send_down(child, packet, FoldPorts::Press::normal);
  }
}

} // namespace weir::netsim
