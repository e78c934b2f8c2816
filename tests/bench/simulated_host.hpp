// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "exchange.hpp"
#include "host_traits.hpp"
#include "network/simulated_network.hpp"
#include "network/timed_device.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace weir::bench {

using network::SimulatedNetwork;
using network::Time;

/// Rank r is at port r.
wire::MacAddress mac_of(std::uint16_t rank);
wire::IpAddress ip_of(std::uint16_t rank);

/// The queue pair to its successor, which gets the acknowledgements.
std::uint32_t outgoing_qp_of(std::uint16_t rank);

/// The exponent x whose 4.096 us x 2^x is nearest to the hosts' ACK timeout (IBTA §9.7.6.1.3).
std::uint8_t ack_timeout_exponent();

/// A queue pair has used all its retries without progress: the job must start again.
class QueuePairFailed : public std::runtime_error {
 public:
  explicit QueuePairFailed(std::uint16_t rank);
};

/// One rank: the software endpoint with a queue pair to its successor and one from its predecessor,
/// and an exchange that says what goes over them.
class SimulatedHost : public network::Station, private network::Plug {
 public:
  SimulatedHost(SimulatedNetwork& network, Exchange& exchange, std::uint16_t rank,
                std::uint16_t world, const HostTraits& traits);

  void receive(std::span<std::uint8_t> frame) override;
  void expire() override;
  /// Does all that is possible now. Throws QueuePairFailed, as the two functions above do.
  void pump();

  /// Packets sent again until now.
  std::uint64_t repeated() const { return outgoing_.statistics().packets_retransmitted; }

 private:
  endpoint::QueuePairConfig config(std::uint16_t peer) const;
  endpoint::QueuePairConfig outgoing_config(std::uint16_t world) const;
  endpoint::QueuePairConfig incoming_config(std::uint16_t world) const;
  bool take_messages();
  bool take_acknowledgements();
  bool post_messages();

  Time now() const override { return network_.now(); }

  void send(std::span<const std::uint8_t> frame) override { network_.send(rank_, frame); }

  Time takes_frame_at() const override {
    return traits_.choice == Choice::by_link ? network_.link_free_from(rank_) : 0;
  }

  void wake_at(Time time) override { network_.wake(rank_, time); }

  SimulatedNetwork& network_;
  Exchange& exchange_;
  std::uint16_t rank_;
  HostTraits traits_;
  network::TimedDevice device_;
  endpoint::QueuePair& outgoing_;
  endpoint::QueuePair& incoming_;
  std::vector<std::uint8_t> inbox_;
  std::uint64_t posted_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t taken_ = 0;
};

} // namespace weir::bench
