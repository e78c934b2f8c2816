// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame_places.hpp"

#include <cstddef>
#include <memory>

namespace weir::bench {

/// What a parameter server has of its ranks: whole partitions of the tensor, one buffer each. The
/// memory is four times the last-level cache.
class ServerBuffers {
 public:
  static constexpr unsigned kRanks = 8;
  static constexpr std::size_t kPartition = 4'096'000; // bytes, BytePS's default
  static constexpr std::size_t kInCache = 16'384; // bytes: eight of them fit a second-level cache

  ServerBuffers();

  /// Adds the buffers of ranks 1 to 7 to that of rank 0, `bytes` each. Those at `first` follow one
  /// another. The least that a server can do: it need not copy the first.
  void add_all(std::size_t first, std::size_t bytes, unsigned threads);

  /// Where the partitions begin that were added longest ago.
  std::size_t next_partitions();

 private:
  std::unique_ptr<std::byte, Unmap> memory_;
  std::size_t at_ = 0;
};

} // namespace weir::bench
