// SPDX-License-Identifier: BSD-3-Clause
#include "control/af_xdp.hpp"

#include "control/memory.hpp"
#include "ethdev/drivers.hpp"
#include "stage/forward.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <unistd.h>

namespace weir::control {
namespace {

constexpr std::uint64_t kDriverRing = 2048; // ETH_AF_XDP_DFLT_NUM_DESCS

std::uint32_t frame_bytes(const rte_mempool& pool, std::uint32_t element_bytes) {
  return rte_mempool_calc_obj_size(element_bytes, pool.flags, nullptr);
}

/// The longest MTU with which a frame of a pool that is otherwise the same fits into a page.
/// rte_mempool makes some sizes larger, to spread frames over memory channels.
std::uint32_t longest_mtu(const rte_mempool& pool, std::uint32_t page) {
  const std::uint32_t besides =
      pool.elt_size - rte_pktmbuf_data_room_size(const_cast<rte_mempool*>(&pool));
  std::uint32_t data_room = page;
  while (frame_bytes(pool, besides + data_room) > page) {
    data_room -= kDataRoomAlignment;
  }
  return data_room - RTE_PKTMBUF_HEADROOM - kDriverRoom - stage::max_frame_bytes(0);
}

} // namespace

bool keeps_buffers(const config::PortConfig& port) {
  return ethdev::driver_of(port.device).buffers == ethdev::Buffers::kept_by_kernel;
}

/// What is sent is in a ring as long as that for receiving, and then in the driver's own.
std::uint64_t frames_in_af_xdp(const config::PortConfig& port) {
  return port.rx_queues * (2 * kDriverRing + port.rx_descriptors);
}

std::string why_af_xdp_cannot_use(const rte_mempool& pool) {
  const auto page = static_cast<std::uint32_t>(getpagesize());
  if (const std::uint32_t bytes = frame_bytes(pool, pool.elt_size); bytes > page) {
    return fmt::format("found buffers of {} bytes, for the longest MTU of all ports; allowed with "
                       "net_af_xdp: {}, a page, which is enough for MTU {}",
                       bytes, page, longest_mtu(pool, page));
  }
  if (pool.nb_mem_chunks != 1) {
    return fmt::format("found the frames in {} pieces of memory; allowed with net_af_xdp: one, "
                       "which larger hugepages or --iova-mode=va give",
                       pool.nb_mem_chunks);
  }
  return {};
}

} // namespace weir::control
