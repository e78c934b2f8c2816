// SPDX-License-Identifier: BSD-3-Clause
#include "region_lab.hpp"

#include "frame_stock.hpp"
#include "measurement.hpp"
#include "region_peers.hpp"
#include "ring_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace weir::bench {
namespace {

constexpr std::uint32_t kDepth = 8192;     // frames in a port's rings
constexpr std::size_t kMbufs = 32768;      // in the pool
constexpr std::uint64_t kRoundNs = 10'000; // by the switch's clock
constexpr unsigned kMostIdle = 10'000;     // rounds, in which every timer runs out

SharedTables& with_regions(SharedTables& tables, rte_mempool* pool) {
  tables.shared.pool = pool;
  tables.shared.regions = regions_address();
  return tables;
}

} // namespace

region::Address regions_address() {
  return {test::ip("10.200.0.254"), test::mac("02:57:45:00:00:01")};
}

/// Of a stack, what is given back is taken next.
FarEnds::FarEnds(const Workload& workload, FramesFrom from)
    : from_(from), pool_(make_pool("bench_region", kMbufs, longest_of(workload.data()),
                                   from == FramesFrom::cache ? "stack" : nullptr)),
      ports_(workload.ports(), kDepth) {}

/// Each line of its bytes.
void FarEnds::evict(const rte_mbuf& mbuf) {
#ifdef __SSE2__
  const auto* const bytes = rte_pktmbuf_mtod(&mbuf, const std::uint8_t*);
  for (std::size_t at = 0; at < mbuf.data_len; at += RTE_CACHE_LINE_SIZE) {
    _mm_clflush(bytes + at);
  }
#endif
}

void FarEnds::take_back(std::span<rte_mbuf*> mbufs) {
  for (const rte_mbuf* const mbuf : mbufs) {
    evict_if_far(*mbuf);
  }
  rte_pktmbuf_free_bulk(mbufs.data(), static_cast<unsigned>(mbufs.size()));
}

rte_mbuf* FarEnds::new_mbuf() {
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_.get());
  if (mbuf == nullptr) {
    throw std::runtime_error("the pool is too small for what is under way");
  }
  return mbuf;
}

LcoreWork& LcoreWork::operator+=(const LcoreWork& other) {
  seconds += other.seconds;
  frames += other.frames;
  most_up += other.most_up;
  most_down += other.most_down;
  return *this;
}

RegionLab::RegionLab(const Workload& workload, FramesFrom from, std::uint32_t queue_room)
    : workload_(workload), ends_(workload, from), tables_(workload, queue_room),
      lcore_(0, lcore::Idle::spin, with_regions(tables_, ends_.pool()).shared) {
  for (std::uint16_t port = 0; port < ends_.ports().size(); ++port) {
    lcore_.add_rx_queue({port, ends_.ports().device(port), 0});
    lcore_.add_tx_port(port, {.device = ends_.ports().device(port)});
  }
  lcore_.make_worker(all_rings(workload), tables_.worker_settings());
}

void RegionLab::open(RingRanks& ranks) {
  Peers* const all = &ranks;
  ranks.add(workload_.hellos());
  run({&all, 1});
  ranks.enter_sessions(
      [&](std::uint16_t ring) { return lcore_.worker()->incarnations().session_of(ring); });
  ranks.add(workload_.before());
  run({&all, 1});
}

void RegionLab::open(RegionPeers& members) {
  Peers* const all = &members;
  region::RegionTable& table = lcore_.worker()->regions();
  auto made = table.make(members.spec(), members.birth());
  const region::Region& region = *made;
  lcore_.worker()->adopt_region(std::move(made), stage::FairQueue::kNoTenant, now_);
  members.say_hello();
  run({&all, 1}, [&] { return region.state() == region::State::open && members.is_done(); });
}

LcoreWork RegionLab::run(std::span<Peers* const> peers) {
  return run(peers, [peers] {
    return std::ranges::all_of(peers, [](const Peers* some) { return some->is_done(); });
  });
}

LcoreWork RegionLab::run(std::span<Peers* const> peers, const std::function<bool()>& is_done) {
  const std::vector<frame::PortCounters> before = counters();
  LcoreWork done;
  for (unsigned idle = 0; !is_done();) {
    for (Peers* const some : peers) {
      some->speak(ends_);
    }
    unsigned work = 0;
    now_.ns += kRoundNs;
    done.seconds += cpu_seconds_of([&] { work = lcore_.round(now_); });
    idle = deliver(peers) || work != 0 ? 0 : idle + 1;
    if (idle > kMostIdle) {
      fail();
    }
  }
  std::vector<frame::PortCounters> after = counters();
  for (std::size_t port = 0; port < after.size(); ++port) {
    after[port] -= before[port];
    std::uint64_t down = 0;
    for (const frame::ClassCounters& sent : after[port].tx) {
      done.frames += sent.packets;
      down += sent.bytes;
    }
    done.frames += after[port].rx_packets;
    done.most_up = std::max<std::uint64_t>(done.most_up, after[port].rx_bytes);
    done.most_down = std::max(done.most_down, down);
  }
  return done;
}

/// What the switch has sent. Returns whether there was anything.
bool RegionLab::deliver(std::span<Peers* const> peers) {
  bool has_some = false;
  for (std::uint16_t port = 0; port < ends_.ports().size(); ++port) {
    std::array<rte_mbuf*, 64> mbufs;
    while (const unsigned count = ends_.ports().take(port, mbufs.data(), mbufs.size())) {
      has_some = true;
      for (rte_mbuf* const mbuf : std::span(mbufs).first(count)) {
        const std::span bytes(rte_pktmbuf_mtod(mbuf, const std::uint8_t*), mbuf->data_len);
        if (std::ranges::none_of(peers,
                                 [&](Peers* some) { return some->hear(bytes, port, ends_); })) {
          throw std::runtime_error("the switch has sent a frame that nobody waits for");
        }
      }
      ends_.take_back(std::span(mbufs).first(count));
    }
  }
  return has_some;
}

std::vector<frame::PortCounters> RegionLab::counters() const {
  std::vector<frame::PortCounters> counters;
  for (std::uint16_t port = 0; port < workload_.ports(); ++port) {
    counters.push_back(lcore_.port_counters(port));
  }
  return counters;
}

void RegionLab::fail() const {
  std::string drops;
  const auto& dropped = lcore_.counters().dropped;
  for (std::size_t reason = 0; reason < dropped.size(); ++reason) {
    if (dropped[reason] != 0) {
      drops += fmt::format(" {} {}", name_of(static_cast<DropReason>(reason)), dropped[reason]);
    }
  }
  throw std::runtime_error("nothing moves any more; the switch has dropped:" + drops);
}

} // namespace weir::bench
