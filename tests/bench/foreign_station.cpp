// SPDX-License-Identifier: BSD-3-Clause
#include "foreign_station.hpp"

#include "simulated_host.hpp"
#include "wire/headers.hpp"

#include <cstring>

namespace weir::bench {

ForeignStation::ForeignStation(network::SimulatedNetwork& network, const Plan& plan)
    : network_(network), plan_(plan), dice_(plan.seed), frame_(plan.frame_bytes) {
  wire::EthernetHeader header;
  header.destination = mac_of(plan.victim);
  header.source = mac_of(plan.port);
  header.type.set(0x88b5); // IEEE 802, local experimental
  std::memcpy(frame_.data(), &header, sizeof header);
  network.attach(plan.port, *this);
  network.wake(plan.port, dice_.below(plan.interval));
}

void ForeignStation::expire() {
  for (std::uint32_t i = 0; i < kBurst; ++i) {
    network_.send(plan_.port, frame_);
  }
  const network::Time half = plan_.interval / 2;
  network_.wake(plan_.port, network_.now() + half + dice_.below(2 * half));
}

} // namespace weir::bench
