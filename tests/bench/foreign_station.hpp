// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/simulated_network.hpp"

#include <cstdint>
#include <vector>

namespace weir::bench {

/// A station that has nothing to do with the job, but sends to one of its members: bursts of frames
/// as fast as its link allows, at times that the seed decides. Nobody answers, and nothing slows it
/// down.
class ForeignStation : public network::Station {
 public:
  struct Plan {
    std::uint16_t port = 0;   // its own
    std::uint16_t victim = 0; // rank and port
    std::uint32_t frame_bytes = 0;
    network::Time interval = 0; // mean, from one burst to the next
    std::uint64_t seed = 0;
  };

  static constexpr std::uint32_t kBurst = 64; // frames

  ForeignStation(network::SimulatedNetwork& network, const Plan& plan);

  void receive(std::span<std::uint8_t> /*frame*/) override {}

  void expire() override;

 private:
  network::SimulatedNetwork& network_;
  Plan plan_;
  network::Dice dice_;
  std::vector<std::uint8_t> frame_;
};

} // namespace weir::bench
