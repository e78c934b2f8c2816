// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/placement.hpp"
#include "frame_stock.hpp"
#include "lcore/clock.hpp"
#include "lcore/lcore.hpp"
#include "ring_ports.hpp"
#include "shared_tables.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::bench {

/// Which lcore receives a host's frames.
enum class Reception : std::uint8_t {
  by_port, // one lcore all of the port's
  by_ring, // the worker of the frame's ring: the port has a queue for each lcore
           // (docs/operating.md)
};

/// The roles of each data lcore.
struct Team {
  std::string_view name;
  std::vector<std::vector<config::Role>> lcores;
  Reception reception = Reception::by_port;

  std::uint16_t rx_queues() const {
    return reception == Reception::by_port ? 1 : static_cast<std::uint16_t>(lcores.size());
  }
};

/// The switch of a workload over several EAL lcores, each driven by a thread of its own. The same
/// threads simulate the hosts: a port's next frame arrives when the result of the frame kWindow
/// before it has left (docs/protocol.md §7), so nothing overflows, however unequal the lcores are.
/// Every rank has a port of its own.
class ScalingLab {
 public:
  static constexpr std::size_t kWindow = 128; // frames: 8 messages of 16

  ScalingLab(const Workload& workload, const Team& team);

  /// Restarts the switch, opens the connections, and sends every frame of the stock. Returns the
  /// seconds of the last part. Throws std::runtime_error when a frame does not come back.
  double seconds_of(FrameStock& stock);

  /// Of the stock, sent so often that it takes a while.
  double frames_per_second(FrameStock& stock);

 private:
  /// What a host sends to one queue, used by the receiving lcore.
  struct alignas(64) Wire {
    struct Sent {
      std::size_t number; // of the host's frames
      rte_mbuf* frame;
    };

    std::vector<Sent> frames;
    std::size_t arrived = 0; // of these
  };

  struct Host {
    std::size_t frames = 0;
    std::vector<Wire> wires;                          // by queue
    alignas(64) std::atomic<std::size_t> answered{0}; // written by the transmitting lcore
  };

  /// The argument with which an EAL lcore is launched.
  struct Driver {
    ScalingLab* lab = nullptr;
    std::size_t lcore = 0;
  };

  static int drive(void* driver);
  void drive_lcore(std::size_t index);
  void restart();
  std::uint32_t session_of(std::uint16_t ring) const;
  void run(const FrameStock& stock);
  std::uint16_t queue_of(std::uint16_t port, std::uint16_t ring) const;
  void feed(const control::Placement::Queue& queue);
  std::size_t drain(std::uint16_t port);
  std::uint16_t predecessor_of(std::uint16_t port) const;

  const Workload& workload_;
  RingPorts ports_;
  SharedTables tables_;
  control::Placement placement_;
  std::vector<lcore::TxQueues> queues_; // by port
  std::vector<std::unique_ptr<lcore::Lcore>> lcores_;
  std::vector<Host> hosts_; // by port
  std::atomic<std::size_t> left_{0};
  std::atomic<bool> stuck_{false};
};

} // namespace weir::bench
