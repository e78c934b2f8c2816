// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/lcore.hpp"
#include "ring_ports.hpp"
#include "shared_tables.hpp"
#include "workload.hpp"

#include <rte_mbuf.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace weir::bench {

/// Under which the switch is the peer of all regions' members.
region::Address regions_address();

/// Where a frame's bytes are when the switch takes it, and those that it overwrites with a frame of
/// its own.
enum class FramesFrom : std::uint8_t { cache, memory };

/// Whether this machine can be told to keep something out of its caches.
#ifdef __SSE2__
inline constexpr bool kCanEvict = true;
#else
inline constexpr bool kCanEvict = false;
#endif

/// The other ends of the switch's cables. Nothing is measured there.
class FarEnds {
 public:
  FarEnds(const Workload& workload, FramesFrom from);

  /// A frame comes to the switch by the port. `write` gets room for it, and returns its bytes.
  template <typename Write>
  void send(std::uint16_t port, Write&& write) {
    rte_mbuf* const mbuf = new_mbuf();
    const std::span room(rte_pktmbuf_mtod(mbuf, std::uint8_t*), rte_pktmbuf_tailroom(mbuf));
    rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(write(room)));
    evict_if_far(*mbuf);
    ports_.put(port, mbuf);
  }

  /// What has been read of the frames that the switch has sent.
  void take_back(std::span<rte_mbuf*> mbufs);

  RingPorts& ports() { return ports_; }

  rte_mempool* pool() { return pool_.get(); }

 private:
  rte_mbuf* new_mbuf();
  static void evict(const rte_mbuf& mbuf);

  void evict_if_far(const rte_mbuf& mbuf) const {
    if (from_ == FramesFrom::memory) {
      evict(mbuf);
    }
  }

  FramesFrom from_;
  Pool pool_; // the switch's too: outlives the ports
  RingPorts ports_;
};

/// Hosts behind the ports.
class Peers {
 public:
  virtual ~Peers() = default;

  /// Sends what there is to send before the switch's next round.
  virtual void speak(FarEnds& ends) = 0;

  /// Takes a frame that the switch has sent by this port. False: it is for others.
  virtual bool hear(std::span<const std::uint8_t> frame, std::uint16_t port, FarEnds& ends) = 0;

  virtual bool is_done() const = 0;
};

class RegionPeers;
class RingRanks;

/// What an lcore has done.
struct LcoreWork {
  double seconds = 0;        // of computing, in its rounds
  std::uint64_t frames = 0;  // that came and that left
  std::uint64_t most_up = 0; // bytes that the port with the most has received; sent, below
  std::uint64_t most_down = 0;

  LcoreWork& operator+=(const LcoreWork& other);
};

/// The switch of a workload, with regions beside its rings, on one lcore. The measuring thread
/// drives it, and between its rounds the hosts, whose time does not count. Its clock goes on by
/// rounds: so no timer runs out because hosts are slow.
class RegionLab {
 public:
  /// `queue_room` is stage::Worker::Settings::queue_room.
  RegionLab(const Workload& workload, FramesFrom from, std::uint32_t queue_room = 0);

  /// The workload's ranks say hello, and send what comes before its data.
  void open(RingRanks& ranks);

  /// Makes the region, and lets its members say hello.
  void open(RegionPeers& members);

  /// Until `is_done`. Throws std::runtime_error when nothing moves any more.
  LcoreWork run(std::span<Peers* const> peers, const std::function<bool()>& is_done);

  /// Until the hosts are done.
  LcoreWork run(std::span<Peers* const> peers);

 private:
  bool deliver(std::span<Peers* const> peers);
  std::vector<frame::PortCounters> counters() const;
  [[noreturn]] void fail() const;

  const Workload& workload_;
  FarEnds ends_;
  SharedTables tables_;
  frame::Instant now_;
  lcore::Lcore lcore_;
};

} // namespace weir::bench
