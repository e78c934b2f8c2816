// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "bare_switch.hpp"
#include "lcore/handoff.hpp"
#include "ring_ports.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::bench {

/// The bare switch over two lcores: what none can leave out that adds up one ring's frames on two
/// lcores. Each has half of the ports: it receives and sends there. A frame goes to the lcore that
/// adds up its slot, a result to the lcore of its port. Neither parses, looks up or remembers
/// anything.
class BarePair {
 public:
  enum class Division : std::uint8_t {
    receiver_checks, // one lcore adds up all slots; each checks the ICRCs of what it receives
    adder_checks,    // one lcore adds up all slots, and checks their ICRCs
    slots_in_turn,   // each lcore adds up every other slot, and checks its ICRCs
  };

  BarePair(const Workload& workload, RingPorts& ports, Division division);

  /// Sends the workload's frames through both lcores. They are in the receive rings, and described
  /// (BareSwitch::describe). Returns seconds.
  double seconds_of(const FrameStock& stock);

 private:
  struct Contribution {
    rte_mbuf* mbuf = nullptr;
    BareSwitch::Place place;
  };

  struct Departure {
    rte_mbuf* mbuf = nullptr;
    std::uint64_t port = 0;
  };

  /// One lcore's ports and slots, and what it gets from the other.
  struct Side {
    Side(const Workload& workload, unsigned number);

    BareSwitch bare;
    lcore::Handoff<Contribution> contributions;
    lcore::Handoff<Departure> results;
    // For the other, which has no room for them yet.
    std::vector<Contribution> contributions_for_other;
    std::vector<Departure> results_for_other;
    std::uint64_t to_send = 0;
    std::array<unsigned, Workload::kMaxPorts> under_way{}; // frames whose results have not left
  };

  static constexpr unsigned kWindow = 128; // frames of a host under way, as in ScalingLab

  static int run_second(void* pair);
  void run(unsigned number);
  void receive(unsigned number, std::uint16_t port);
  void add_contributions(Side& side);
  void send(unsigned number);
  void send(Side& side, std::uint16_t port, std::span<rte_mbuf*> results);

  unsigned side_of_port(unsigned port) const { return port < ports_.size() / 2u ? 0 : 1; }

  unsigned side_of_slot(std::uint32_t slot) const {
    return division_ == Division::slots_in_turn ? slot % 2 : 0;
  }

  RingPorts& ports_;
  Division division_;
  std::array<Side, 2> sides_;
};

} // namespace weir::bench
