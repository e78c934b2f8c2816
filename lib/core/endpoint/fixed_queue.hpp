// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weir::endpoint {

/// A queue that allocates once. Entries are numbered from the beginning, first() … end()-1. So a
/// second cursor may walk the queue while entries leave at its front.
template <typename Entry>
class FixedQueue {
 public:
  /// Holds at least `capacity` entries (rounded up to a power of two).
  explicit FixedQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1), entries_(std::make_unique<Entry[]>(mask_ + 1)) {}

  std::uint64_t first() const { return first_; }

  std::uint64_t end() const { return end_; }

  std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }

  std::size_t capacity() const { return mask_ + 1; }

  bool empty() const { return first_ == end_; }

  Entry& operator[](std::uint64_t number) {
    assert(number >= first_ && number < end_);
    return entries_[number & mask_];
  }

  const Entry& operator[](std::uint64_t number) const {
    assert(number >= first_ && number < end_);
    return entries_[number & mask_];
  }

  Entry& front() { return (*this)[first_]; }

  const Entry& front() const {
    assert(!empty());
    return entries_[first_ & mask_];
  }

  void push(const Entry& entry) {
    assert(size() < capacity());
    entries_[end_ & mask_] = entry;
    ++end_;
  }

  void pop() {
    assert(!empty());
    ++first_;
  }

  void clear() { first_ = end_; }

 private:
  std::size_t mask_;
  std::unique_ptr<Entry[]> entries_;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

} // namespace weir::endpoint
