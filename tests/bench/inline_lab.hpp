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

/// The switch of a workload with all roles on one lcore. The measuring thread drives it round by
/// round.
class InlineLab {
 public:
  /// `depth` is the largest number of frames in one port's receive ring; `queue_room` is
  /// stage::Worker::Settings::queue_room.
  InlineLab(const Workload& workload, std::uint32_t depth, std::uint32_t queue_room = 0);

  RingPorts& ports() { return ports_; }

  lcore::Lcore& lcore() { return *lcore_; }

  /// Runs rounds until `frames` have left by the ports. Throws when a frame had another outcome.
  void run_until_sent(std::uint64_t frames);

  /// Runs rounds until the whole stock has left. A frame arrives whenever one has left, so
  /// `backlog` of them are always in the switch or before it. Throws when a frame had another
  /// outcome.
  void run_stock(const FrameStock& stock, std::size_t backlog);

  /// All of the stock arrives at once, and runs until it has left. Returns the seconds until the
  /// ring's frames had.
  double seconds_of_ring(const FrameStock& stock, std::uint16_t ring);

  /// Lets the switch learn the frames' senders, so that nothing is flooded to find them.
  void introduce_senders_of(const std::vector<Arrival>& frames);

  /// Sends the hellos and the messages before the data, so that all later frames are the data of
  /// running jobs.
  void open_connections();

  /// Not the switch: receives a burst, learns each frame's source, looks its destination up, and
  /// sends the burst back by the same port.
  void bridge_until_sent(std::uint64_t frames);

  /// The session of each ring, after its hellos.
  std::uint32_t session_of(std::uint16_t ring) const {
    return lcore_->worker()->incarnations().session_of(ring);
  }

  /// Starts a new switch over the same ports.
  void restart();

 private:
  enum class Sessions : std::uint8_t { as_told, entered };

  void send(const std::vector<Arrival>& arrivals, Sessions sessions);
  std::string what_was_dropped() const;
  [[noreturn]] void fail(std::uint64_t sent, std::uint64_t frames) const;

  const Workload& workload_;
  RingPorts ports_;
  SharedTables tables_;
  lcore::Clock clock_;
  std::unique_ptr<lcore::Lcore> lcore_;
};

/// The largest number of frames that come in by one port.
std::uint32_t most_on_a_port(const std::vector<Arrival>& arrivals);

/// DPDK's macswap over the same ports: receives a burst, exchanges the MAC addresses, and sends it
/// back by the same port, until `frames` have left.
void macswap_until_sent(RingPorts& ports, std::uint64_t frames);

/// The same, but it reads every byte of every frame: the least work of a switch that verifies
/// ICRCs.
void read_until_sent(RingPorts& ports, std::uint64_t frames);

} // namespace weir::bench
