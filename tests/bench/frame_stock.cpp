// SPDX-License-Identifier: BSD-3-Clause
#include "frame_stock.hpp"

#include "frame/frame.hpp"
#include "lcore/mbuf_frame.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <rte_errno.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace weir::bench {

FrameStock::FrameStock(const std::vector<Arrival>& arrivals, rte_mempool* pool)
    : arrivals_(arrivals), frames_(arrivals.size()) {
  for (rte_mbuf*& frame : frames_) {
    frame = rte_pktmbuf_alloc(pool);
    if (frame == nullptr) {
      throw std::runtime_error("the pool is too small for the workload");
    }
  }
  std::shuffle(frames_.begin(), frames_.end(), std::mt19937(1));
  for (const Arrival& arrival : arrivals_) {
    bytes_ += arrival.bytes.size();
  }
  refill();
}

FrameStock::~FrameStock() {
  rte_pktmbuf_free_bulk(frames_.data(), static_cast<unsigned>(frames_.size()));
}

void FrameStock::refill() {
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    rte_mbuf* frame = frames_[i];
    const test::Bytes& bytes = arrivals_[i].bytes;
    rte_pktmbuf_reset(frame);
    std::memcpy(rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
  }
}

void FrameStock::enter_sessions(const std::function<std::uint32_t(std::uint16_t)>& session_of) {
  for (rte_mbuf* mbuf : frames_) {
    enter_session({rte_pktmbuf_mtod(mbuf, std::uint8_t*), mbuf->data_len}, session_of);
  }
}

void enter_session(std::span<std::uint8_t> bytes,
                   const std::function<std::uint32_t(std::uint16_t)>& session_of) {
  frame::Frame frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  frame.packet = wire::parse(frame.bytes());
  if (wire::find_ina_header(frame) == nullptr) {
    return;
  }
  auto& ina = wire::view_as<wire::InaHeader>(frame.payload());
  ina.session.set(session_of(static_cast<std::uint16_t>(ina.ring_id.get())));
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

void FrameStock::arrive_at(RingPorts& ports) const {
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    ports.put(arrivals_[i].port, frames_[i]);
  }
}

Pool make_pool(const char* name, std::size_t frames, std::size_t longest, const char* ops) {
  const std::size_t room = RTE_ALIGN_CEIL(longest + RTE_PKTMBUF_HEADROOM, RTE_CACHE_LINE_SIZE);
  Pool pool(rte_pktmbuf_pool_create_by_ops(name, static_cast<unsigned>(frames + 8192), 256,
                                           lcore::kFrameBytesInMbuf,
                                           static_cast<std::uint16_t>(room), SOCKET_ID_ANY, ops));
  if (!pool) {
    throw std::runtime_error(std::string("no memory for the pool ") + name + ": " +
                             rte_strerror(rte_errno));
  }
  return pool;
}

std::size_t longest_of(const std::vector<Arrival>& arrivals) {
  std::size_t longest = 0;
  for (const Arrival& arrival : arrivals) {
    longest = std::max(longest, arrival.bytes.size());
  }
  return longest;
}

} // namespace weir::bench
