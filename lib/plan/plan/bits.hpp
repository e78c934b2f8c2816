// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::plan {

/// A fixed number of bits, 64 in a word, so that sets of thousands of nodes are compared fast.
class Bits {
 public:
  explicit Bits(std::size_t count = 0) : words_((count + 63) / 64) {}

  void set(std::size_t at) { words_[at / 64] |= std::uint64_t{1} << at % 64; }

  void clear(std::size_t at) { words_[at / 64] &= ~(std::uint64_t{1} << at % 64); }

  bool has(std::size_t at) const { return (words_[at / 64] >> at % 64 & 1) != 0; }

  bool meets(const Bits& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) {
        return true;
      }
    }
    return false;
  }

  /// Whether all of these bits are in `other`.
  bool within(const Bits& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) {
        return false;
      }
    }
    return true;
  }

  /// The first of begin … end-1 that is set here and not in `other`. `end`: none.
  std::size_t first_without(const Bits& other, std::size_t begin, std::size_t end) const {
    for (std::size_t at = begin; at < end; at = (at / 64 + 1) * 64) {
      const std::uint64_t rest = (words_[at / 64] & ~other.words_[at / 64]) >> at % 64;
      if (rest != 0) {
        return std::min(end, at + static_cast<std::size_t>(std::countr_zero(rest)));
      }
    }
    return end;
  }

 private:
  std::vector<std::uint64_t> words_;
};

} // namespace weir::plan
