// SPDX-License-Identifier: BSD-3-Clause
#include "frame/counters.hpp"

#include <algorithm>
#include <functional>

namespace weir::frame {

FrameCounters& FrameCounters::operator+=(const FrameCounters& other) {
  const auto add = [](auto& sums, const auto& terms) {
    std::transform(sums.begin(), sums.end(), terms.begin(), sums.begin(), std::plus<>());
  };
  received += other.received;
  originated += other.originated;
  forwarded += other.forwarded;
  consumed += other.consumed;
  copies += other.copies;
  copies_dropped += other.copies_dropped;
  add(dropped, other.dropped);
  add(foreign, other.foreign);
  return *this;
}

ClassCounters& ClassCounters::operator+=(const ClassCounters& other) {
  packets += other.packets;
  bytes += other.bytes;
  dropped += other.dropped;
  return *this;
}

ClassCounters& ClassCounters::operator-=(const ClassCounters& other) {
  packets -= other.packets;
  bytes -= other.bytes;
  dropped -= other.dropped;
  return *this;
}

PortCounters& PortCounters::operator+=(const PortCounters& other) {
  rx_packets += other.rx_packets;
  rx_bytes += other.rx_bytes;
  for (std::size_t traffic = 0; traffic < tx.size(); ++traffic) {
    tx[traffic] += other.tx[traffic];
  }
  return *this;
}

PortCounters& PortCounters::operator-=(const PortCounters& other) {
  rx_packets -= other.rx_packets;
  rx_bytes -= other.rx_bytes;
  for (std::size_t traffic = 0; traffic < tx.size(); ++traffic) {
    tx[traffic] -= other.tx[traffic];
  }
  return *this;
}

} // namespace weir::frame
