// SPDX-License-Identifier: BSD-3-Clause
#include "parameter_server.hpp"

#include "openmp_sum.hpp"

#include <algorithm>
#include <utility>

namespace weir::bench {
namespace {

constexpr std::size_t kAllPartitions = ServerBuffers::kRanks * ServerBuffers::kPartition;

std::size_t sets_of_partitions() {
  return 4 * last_level_cache_bytes() / kAllPartitions + 1;
}

} // namespace

ServerBuffers::ServerBuffers() : memory_(map_huge(sets_of_partitions() * kAllPartitions)) {
  std::fill_n(reinterpret_cast<float*>(memory_.get()), memory_.get_deleter().bytes / sizeof(float),
              0.01F);
}

void ServerBuffers::add_all(std::size_t first, std::size_t bytes, unsigned threads) {
  auto* sum = reinterpret_cast<float*>(memory_.get() + first);
  const std::size_t elements = bytes / sizeof(float);
  for (unsigned rank = 1; rank < kRanks; ++rank) {
    add_contribution(sum, sum + rank * elements, elements, threads);
  }
}

std::size_t ServerBuffers::next_partitions() {
  const std::size_t next = at_ + kAllPartitions;
  return std::exchange(at_, next + kAllPartitions > memory_.get_deleter().bytes ? 0 : next);
}

} // namespace weir::bench
