// SPDX-License-Identifier: BSD-3-Clause
#include "frame_places.hpp"

#include "frame/frame.hpp"
#include "support/ring_job.hpp"
#include "wire/parse.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/mman.h>

namespace weir::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMbuf = 128; // DPDK's struct
constexpr std::size_t kPrivate = (sizeof(frame::Frame) + 63) / 64 * 64;
constexpr std::size_t kHeadroom = 128;
constexpr std::size_t kDataRoom = 2048;
constexpr std::size_t kPlace = kMbuf + kPrivate + kHeadroom + kDataRoom;

/// 0x3c3c… is an ordinary number in every data type.
constexpr std::uint8_t kOrdinary = 0x3c;

std::size_t bytes_wanted() {
  const std::size_t wanted = 8 * last_level_cache_bytes();
  return (wanted + kHugePage - 1) / kHugePage * kHugePage;
}

/// The second packet of each rank's message, so all payload.
std::vector<std::vector<std::uint8_t>> middle_packets(unsigned ranks) {
  test::RingJob job({.world = static_cast<std::uint16_t>(ranks),
                     .mtu = FramePlaces::kPayload,
                     .max_message_bytes = 4 * FramePlaces::kPayload,
                     .type = DataType::f32});
  const test::Bytes data(3 * FramePlaces::kPayload, kOrdinary);
  std::vector<std::vector<std::uint8_t>> packets;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    packets.push_back(job.message(rank, 1, data)[1].bytes);
  }
  return packets;
}

} // namespace

void Unmap::operator()(std::byte* memory) const {
  munmap(memory, bytes);
}

/// As the kernel says. The C library counts all of a processor's last-level caches on some AMD
/// CPUs, of which a core has one.
std::size_t last_level_cache_bytes() {
  constexpr std::size_t least = std::size_t{32} << 20;
  std::size_t kib = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kib; // 32768K
  return std::max(kib << 10, least);
}

std::unique_ptr<std::byte, Unmap> map_huge(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::runtime_error("no memory for " + std::to_string(bytes >> 20) + " MiB of data");
  }
  madvise(mapped, bytes, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(mapped), Unmap{bytes}};
}

FramePlaces::FramePlaces()
    : memory_(map_huge(bytes_wanted())), by_rank_(middle_packets(kMostRanks)) {
  const std::size_t bytes = memory_.get_deleter().bytes;
  std::vector<std::size_t> order(bytes / kPlace / kMostRanks * kMostRanks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  for (std::size_t i = 0; i < order.size(); ++i) {
    place_frame(memory_.get() + order[i] * kPlace, static_cast<std::uint16_t>(i % kMostRanks));
  }
}

const std::byte* FramePlaces::data_of(const frame::Frame& frame) {
  return reinterpret_cast<const std::byte*>(&frame) + kPrivate + kHeadroom;
}

void FramePlaces::place_frame(std::byte* mbuf, std::uint16_t rank) {
  const std::vector<std::uint8_t>& bytes = by_rank_[rank];
  auto* frame = new (mbuf + kMbuf) frame::Frame;
  frame->data = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(data_of(*frame)));
  frame->length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(frame->data, bytes.data(), bytes.size());
  frame->packet = wire::parse(frame->bytes());
  frames_.push_back(frame);
  payloads_.push_back(reinterpret_cast<const std::byte*>(frame->payload()));
}

} // namespace weir::bench
