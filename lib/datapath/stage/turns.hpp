// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weir::stage {

/// Numbers that wait for their turns, first in, first out, none twice. Allocates in resize() only.
class Turns {
 public:
  /// For the numbers below `numbers`; at most 65534.
  explicit Turns(std::size_t numbers) { resize(numbers); }

  /// It never has room for fewer than before.
  void resize(std::size_t numbers) { next_.resize(std::max(numbers, next_.size()), kAbsent); }

  bool is_empty() const { return size_ == 0; }

  std::size_t size() const { return size_; }

  /// At the end, unless it waits already.
  void push(std::uint16_t number) {
    assert(number < next_.size());
    if (next_[number] != kAbsent) {
      return;
    }
    next_[number] = kLast;
    (size_++ == 0 ? first_ : next_[last_]) = number;
    last_ = number;
  }

  /// The one whose turn it is. There must be one.
  std::uint16_t pop() {
    const std::uint16_t number = first_;
    first_ = next_[number];
    next_[number] = kAbsent;
    assert(size_ != 0);
    --size_;
    return number;
  }

  void clear() {
    while (!is_empty()) {
      pop();
    }
  }

 private:
  static constexpr std::uint16_t kAbsent = std::numeric_limits<std::uint16_t>::max();
  static constexpr std::uint16_t kLast = kAbsent - 1;

  std::vector<std::uint16_t> next_; // by number
  std::size_t size_ = 0;
  std::uint16_t first_ = kLast;
  std::uint16_t last_ = kLast;
};

} // namespace weir::stage
