// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/slice.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace weir::host {

/// The part of a slice that a node reduces at once.
struct Portion {
  const Slice* slice = nullptr;
  std::uint16_t segment = 0;
  std::size_t offset = 0; // in the segment
  std::size_t bytes = 0;
};

/// Slices in their order, cut into portions that are numbered from 0 without a gap. A segment
/// begins with a portion of its own. A barrier has one without bytes, an empty segment none.
class PortionQueue {
 public:
  explicit PortionQueue(std::size_t portion_bytes) : portion_bytes_(portion_bytes) {}

  void add(const Slice& slice);

  /// The first portion of slice `number`, which is not finished; or where it would be.
  std::uint64_t begin_of(std::uint64_t number) const { return slices_[number - finished_].first; }

  /// The same call with other buffers, of a slice that is not finished.
  void replace(std::uint64_t number, const Slice& slice) {
    slices_[number - finished_].slice = slice;
  }

  /// The number behind the last portion.
  std::uint64_t end() const { return end_; }

  /// Of a slice that is not finished.
  Portion portion(std::uint64_t number) const;

  /// All portions before this number are done: slices without others are finished, in their order.
  void finish_before(std::uint64_t number);

  /// Since the beginning.
  std::uint64_t finished() const { return finished_; }

  bool is_empty() const { return slices_.empty(); }

  /// Of the first slice that is not finished, when all portions before the number are done.
  std::size_t bytes_before(std::uint64_t number) const;

 private:
  struct Entry {
    Slice slice;
    std::uint64_t per_segment = 0; // portions
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  Portion portion_of(const Entry& entry, std::uint64_t number) const;

  std::size_t portion_bytes_;
  std::deque<Entry> slices_;
  std::uint64_t end_ = 0;
  std::uint64_t finished_ = 0;
};

} // namespace weir::host
