// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/node_memory.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace weir::host {
namespace {

constexpr std::size_t kLine = 64; // of a cache: what one rank writes shares none with another's

constexpr std::size_t in_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

[[noreturn]] void fail(const NodeGeometry& geometry, const char* what, int error) {
  throw Error(
      ErrorCode::transport_failure, std::nullopt,
      fmt::format("shared memory of {} ranks, {} bytes (window, message_bytes, rings): {}: {}",
                  geometry.ranks, geometry.bytes(), what, std::strerror(error)));
}

} // namespace

/// Whether a rank sleeps, and whether it has gone on.
struct alignas(kLine) NodeMemory::Presence {
  std::atomic<std::uint64_t> announced = 0;
  std::atomic<std::uint32_t> is_asleep = 0;
};

/// A rank's counters of a channel.
struct alignas(kLine) NodeMemory::Board {
  Counters counters;
};

std::size_t NodeGeometry::area_bytes() const {
  return in_lines(portion_bytes);
}

/// A line for each rank's label, then the areas.
std::size_t NodeGeometry::slot_bytes() const {
  return ranks * kLine + (ranks + std::size_t{1}) * area_bytes();
}

std::size_t NodeGeometry::bytes() const {
  return kLine * ranks * (1 + channels) + channels * slots * slot_bytes();
}

NodeDescriptors make_node_descriptors(const NodeGeometry& geometry) {
  NodeDescriptors made;
  made.memory = Socket([] { return memfd_create("weir-node", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  const int memory = made.memory.get();
  const auto bytes = static_cast<off_t>(geometry.bytes());
  if (!made.memory || ftruncate(memory, bytes) != 0) {
    fail(geometry, "cannot be made", errno);
  }
  if (const int error = posix_fallocate(memory, 0, bytes); error != 0) {
    fail(geometry, "there is not so much", error);
  }
  if (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail(geometry, "its size cannot be fixed", errno);
  }
  for (std::uint16_t place = 0; place < geometry.ranks; ++place) {
    made.bells.emplace_back([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (!made.bells.back()) {
      fail(geometry, "no descriptor for a bell", errno);
    }
  }
  return made;
}

/// A child made by fork does not have it: there nobody looks.
NodeMemory::NodeMemory(const NodeGeometry& geometry, std::uint16_t place,
                       NodeDescriptors descriptors)
    : geometry_(geometry), place_(place), bells_(std::move(descriptors.bells)) {
  static_assert(sizeof(Presence) == kLine && sizeof(Board) == kLine);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  assert(place < geometry.ranks && bells_.size() == geometry.ranks);
  void* const found = mmap(nullptr, geometry.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                           descriptors.memory.get(), 0);
  if (found == MAP_FAILED) {
    fail(geometry, "cannot be mapped", errno);
  }
  begin_ = static_cast<std::uint8_t*>(found);
  madvise(begin_, geometry.bytes(), MADV_DONTFORK);
}

NodeMemory::~NodeMemory() {
  if (birthplace_.is_here()) {
    munmap(begin_, geometry_.bytes());
  }
}

/// The kernel gives zeros, which is what a new counter is.
NodeMemory::Presence& NodeMemory::presence(std::uint16_t place) {
  return *std::launder(reinterpret_cast<Presence*>(begin_ + place * kLine));
}

NodeMemory::Counters& NodeMemory::counters(std::size_t channel, std::uint16_t place) {
  const std::size_t board = geometry_.ranks * (1 + channel) + place;
  return std::launder(reinterpret_cast<Board*>(begin_ + board * kLine))->counters;
}

std::uint8_t* NodeMemory::slot(std::size_t channel, std::uint64_t portion) {
  const std::size_t slot = channel * geometry_.slots + portion % geometry_.slots;
  return begin_ + kLine * geometry_.ranks * (1 + geometry_.channels) +
         slot * geometry_.slot_bytes();
}

std::uint64_t& NodeMemory::label(std::size_t channel, std::uint64_t portion, std::uint16_t place) {
  return *std::launder(reinterpret_cast<std::uint64_t*>(slot(channel, portion) + place * kLine));
}

std::uint8_t* NodeMemory::input(std::size_t channel, std::uint64_t portion, std::uint16_t place) {
  return slot(channel, portion) + geometry_.ranks * kLine + place * geometry_.area_bytes();
}

std::uint8_t* NodeMemory::sum(std::size_t channel, std::uint64_t portion) {
  return input(channel, portion, geometry_.ranks);
}

/// A rank that falls asleep writes first and then looks; this writes first and then looks. So in
/// the one order of all these accesses (they are sequentially consistent) one of them sees the
/// other.
void NodeMemory::announce() {
  std::atomic<std::uint64_t>& announced = presence(place_).announced;
  announced.store(announced.load(std::memory_order_relaxed) + 1);
  for (std::uint16_t place = 0; place < geometry_.ranks; ++place) {
    std::atomic<std::uint32_t>& is_asleep = presence(place).is_asleep;
    if (is_asleep.load() != 0 && is_asleep.exchange(0) != 0) {
      eventfd_write(bells_[place].get(), 1);
    }
  }
}

/// Changes with every announcement of another rank.
std::uint64_t NodeMemory::news() {
  std::uint64_t news = 0;
  for (std::uint16_t place = 0; place < geometry_.ranks; ++place) {
    news += place == place_ ? 0 : presence(place).announced.load();
  }
  return news;
}

bool NodeMemory::has_news() {
  const std::uint64_t before = std::exchange(heard_, news());
  return std::exchange(has_moved_, false) || heard_ != before;
}

bool NodeMemory::may_sleep() {
  is_asleep_ = true;
  presence(place_).is_asleep.store(1);
  if (!has_moved_ && news() == heard_) {
    return true;
  }
  end_sleep();
  return false;
}

void NodeMemory::end_sleep() {
  if (std::exchange(is_asleep_, false)) {
    presence(place_).is_asleep.store(0);
    eventfd_t rings = 0;
    eventfd_read(bell(), &rings);
  }
}

} // namespace weir::host
