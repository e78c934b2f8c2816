// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::netsim {

/// Marks on a circle of days. Each word of 64 days also has a mark, so that a search skips 4096
/// empty days at a time.
class DayMarks {
 public:
  explicit DayMarks(std::size_t days)
      : days_(days), words_((days + 63) / 64), occupied_((words_.size() + 63) / 64) {}

  void set(std::size_t day) {
    words_[day / 64] |= bit(day);
    occupied_[day / 4096] |= bit(day / 64);
  }

  void clear(std::size_t day) {
    words_[day / 64] &= ~bit(day);
    if (words_[day / 64] == 0) {
      occupied_[day / 4096] &= ~bit(day / 64);
    }
  }

  /// Days from `day` to the first marked one, past the end of the circle if needed; 0: `day` is
  /// marked. The number of all days: none is marked.
  std::size_t distance_to_next(std::size_t day) const {
    const std::uint64_t rest = words_[day / 64] >> (day % 64);
    if (rest != 0) {
      return static_cast<std::size_t>(std::countr_zero(rest));
    }
    std::size_t word = occupied_from(day / 64 + 1);
    if (word != words_.size()) {
      return first_of(word) - day;
    }
    word = occupied_from(0); // in the word of `day` only earlier days are left
    return word == words_.size() ? days_ : first_of(word) + days_ - day;
  }

 private:
  static std::uint64_t bit(std::size_t at) { return std::uint64_t{1} << (at % 64); }

  std::size_t first_of(std::size_t word) const {
    return word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word]));
  }

  /// The first word at or after `word` that has marks. words_.size(): none.
  std::size_t occupied_from(std::size_t word) const {
    for (std::size_t at = word; at < words_.size(); at = (at / 64 + 1) * 64) {
      const std::uint64_t rest = occupied_[at / 64] >> (at % 64);
      if (rest != 0) {
        return at + static_cast<std::size_t>(std::countr_zero(rest));
      }
    }
    return words_.size();
  }

  std::size_t days_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> occupied_; // by word
};

} // namespace weir::netsim
