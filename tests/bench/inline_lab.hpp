// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame_stock.hpp"
#include "lcore/clock.hpp"
#include "lcore/lcore.hpp"
#include "shared_tables.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::bench {

/// The switch of a workload with all roles on one lcore, driven round by round by the thread that
/// measures.
class InlineLab {
 public:
  /// `depth` is the most frames that wait in one port's receive ring.
  InlineLab(const Workload& workload, std::uint32_t depth);

  RingPorts& ports() { return ports_; }

  lcore::Lcore& lcore() { return *lcore_; }

  /// Rounds until `frames` have left by the ports. Throws when something else became of them.
  void run_until_sent(std::uint64_t frames);

  /// Sends the hellos through, so that what follows is the rings' data.
  void open_connections();

  /// Of each ring, once its hellos have been through.
  std::uint32_t session_of(std::uint16_t ring) const {
    return lcore_->worker()->classifier().session_of(ring);
  }

  /// A switch that has just been started, over the same ports.
  void restart();

 private:
  std::string what_was_dropped() const;

  const Workload& workload_;
  RingPorts ports_;
  SharedTables tables_;
  lcore::Clock clock_;
  std::unique_ptr<lcore::Lcore> lcore_;
};

/// The most frames that come in by one port.
std::uint32_t most_on_a_port(const std::vector<Arrival>& arrivals);

/// DPDK's macswap over the same ports: receive a burst, exchange the MAC addresses, transmit it by
/// the port it came from. Until `frames` have left.
void macswap_until_sent(RingPorts& ports, std::uint64_t frames);

/// The same, but every byte of every frame is read: what nobody who verifies an ICRC can undercut.
void read_until_sent(RingPorts& ports, std::uint64_t frames);

} // namespace weir::bench
