// SPDX-License-Identifier: BSD-3-Clause
#include "control/memory.hpp"

#include "control/af_xdp.hpp"
#include "frame/frame.hpp"
#include "lcore/lcore.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/tx_port.hpp"
#include "stage/forward.hpp"
#include "stage/ring_state.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <numeric>

namespace weir::control {
namespace {

constexpr std::uint32_t kPerLcore = 512 + 4 * 32; // mempool cache and bursts under way
constexpr std::uint32_t kSpare = 1024;            // for the drivers' own use

std::uint16_t data_room_for(const config::Config& config) {
  std::uint32_t longest = 0;
  for (const config::PortConfig& port : config.ports) {
    longest = std::max(longest, stage::max_frame_bytes(port.mtu));
  }
  const std::uint32_t room =
      RTE_ALIGN_CEIL(longest + RTE_PKTMBUF_HEADROOM + kDriverRoom, kDataRoomAlignment);
  return static_cast<std::uint16_t>(std::max<std::uint32_t>(room, RTE_MBUF_DEFAULT_BUF_SIZE));
}

std::uint64_t sum_of(const std::array<std::uint32_t, frame::kTrafficClasses>& by_class) {
  return std::accumulate(by_class.begin(), by_class.end(), std::uint64_t{0});
}

std::uint64_t free_hugepage_bytes() {
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    std::uint64_t kilobytes = 0;
    const std::string name = entry.path().filename();
    if (std::sscanf(name.c_str(), "hugepages-%lukB", &kilobytes) != 1) {
      continue;
    }
    std::ifstream file(entry.path() / "free_hugepages");
    std::uint64_t pages = 0;
    if (file >> pages) {
      bytes += pages * kilobytes * 1024;
    }
  }
  return bytes;
}

/// Children and parents that may be behind the port.
std::uint16_t receivers_at(const ring::Ring& ring, std::uint16_t port) {
  std::uint16_t receivers = 0;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    receivers += ring.port_of(sender).value_or(port) == port ? 1 : 0;
  }
  return receivers;
}

} // namespace

std::uint32_t ring_backlog_of(const config::Config& config, std::uint16_t port) {
  constexpr std::uint64_t most = 65536;
  std::uint64_t frames = lcore::kTxBacklogs[static_cast<std::size_t>(frame::TrafficClass::ring)];
  std::uint64_t wanted = 0;
  for (const ring::RingSpec& spec : config.rings) {
    wanted += std::uint64_t{receivers_at(ring::Ring(spec), port)} * spec.window *
              spec.packets_per_message();
  }
  wanted += config.spare.frames;
  frames = std::clamp(wanted, frames, most);
  return static_cast<std::uint32_t>(std::bit_ceil(frames));
}

std::uint64_t frames_queued_at(const config::PortConfig& port) {
  const std::uint64_t in_queues = std::uint64_t{port.rx_descriptors} * port.rx_queues +
                                  std::uint64_t{port.tx_descriptors} * frame::kTrafficClasses;
  return (keeps_buffers(port) ? frames_in_af_xdp(port) : in_queues) + sum_of(lcore::kTxBacklogs);
}

namespace {

bool somebody_waits(const config::Config& config) {
  const std::size_t regions = config.regions ? config.regions->rooms.regions : 0;
  return config.rings.size() + config.spare.rings + regions > 1 ||
         std::ranges::any_of(config.tenants, [](const config::TenantConfig& tenant) {
           return tenant.packets_per_second.has_value();
         });
}

} // namespace

Placement with_queues(const config::Config& config, Placement placement) {
  const bool is_pipeline = placement.lcores.size() > 1;
  for (Placement::DataLcore& lcore : placement.lcores) {
    std::uint32_t arriving = is_pipeline ? lcore::kHandoffEntries : 0;
    std::uint32_t received = 0;
    if (!lcore.receives.empty()) { // any receiver may get all ports that come
      received += config.spare.ports * std::uint32_t{config::PortConfig{}.rx_descriptors};
    }
    for (const Placement::Queue& queue : lcore.receives) {
      received += config.ports[queue.port].rx_descriptors;
    }
    arriving = std::max(arriving, received);
    lcore.queue_room = lcore.works && somebody_waits(config) ? 2 * arriving : 0;
  }
  return placement;
}

std::uint64_t frames_held_by(const ring::Ring& ring) {
  return stage::dimensions_of(ring).held_frames() +
         std::uint64_t{conn::WaitingHellos::kPerChild} * ring.children();
}

MemoryPlan plan_memory(const config::Config& config, const ring::RingSet& rings,
                       const Placement& placement) {
  MemoryPlan plan;
  std::uint64_t held = config.spare.frames;
  for (const std::uint16_t ring : rings.present()) {
    held += frames_held_by(rings.rings()[ring]);
    plan.ring_bytes += stage::dimensions_of(rings.rings()[ring]).bytes();
  }
  plan.ring_frames = held;
  plan.region_frames = config.regions ? config.regions->rooms.frames : 0;
  held += plan.region_frames;
  std::uint64_t queued = kSpare;
  for (const config::PortConfig& port : config.ports) {
    queued += frames_queued_at(port);
  }
  queued += config.spare.ports * frames_queued_at({});
  const bool is_pipeline = placement.lcores.size() > 1;
  const std::uint64_t per_handoff =
      std::uint64_t{lcore::kHandoffEntries} * (config.regions ? 2 : 1) +
      sum_of(lcore::kTxHandoffEntries);
  queued += placement.lcores.size() * (kPerLcore + (is_pipeline ? per_handoff : 0));
  for (const Placement::DataLcore& lcore : placement.lcores) {
    queued += lcore.queue_room;
  }
  const std::uint64_t mbufs = held + queued;
  if (mbufs > std::numeric_limits<std::uint32_t>::max()) {
    throw config::ConfigError(fmt::format(
        "rings: found windows and message lengths that hold {} frames; allowed: 4294967295",
        mbufs));
  }
  plan.mbufs = static_cast<std::uint32_t>(mbufs);
  plan.data_room = data_room_for(config);
  plan.mbuf_bytes = rte_mempool_calc_obj_size(
      static_cast<std::uint32_t>(sizeof(rte_mbuf) + lcore::kFrameBytesInMbuf + plan.data_room), 0,
      nullptr);
  plan.pool_bytes = mbufs * (plan.mbuf_bytes + sizeof(void*));
  plan.explanation = fmt::format(
      "{} mbufs of {} bytes ({} for frames that rings can hold, 2N x L x (H-1) each; "
      "{}{} for queues): "
      "{:.0f} MiB; slots and cached results: {:.0f} MiB",
      mbufs, plan.mbuf_bytes, plan.ring_frames,
      config.regions ? fmt::format("{} for those of regions; ", plan.region_frames) : "", queued,
      static_cast<double>(plan.pool_bytes) / kMiB, static_cast<double>(plan.ring_bytes) / kMiB);
  return plan;
}

std::uint64_t needed_mib(const config::Config& config) {
  constexpr std::uint64_t mib = 1 << 20;
  const ring::RingSet rings(config.rings);
  const Placement placement = with_queues(config, place(config, rings));
  return (plan_memory(config, rings, placement).total() + mib - 1) / mib;
}

std::size_t available_memory() {
  std::size_t bytes = 0;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0) {
      bytes += stats.heap_freesz_bytes;
    }
  }
  return bytes + (rte_eal_has_hugepages() != 0 ? free_hugepage_bytes() : 0);
}

void* EalMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  const auto aligned_to = static_cast<unsigned>(std::max<std::size_t>(alignment, 64));
  if (void* memory = rte_malloc_socket("weir", bytes, aligned_to, node_); memory != nullptr) {
    return memory;
  }
  void* memory = rte_malloc("weir", bytes, aligned_to);
  if (memory == nullptr) {
    throw NoPiece();
  }
  has_given_from_elsewhere_ = true;
  return memory;
}

void EalMemory::do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/) {
  rte_free(memory);
}

} // namespace weir::control
