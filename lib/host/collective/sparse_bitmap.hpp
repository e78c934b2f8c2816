// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// Bitmaps with one bit for each block of a tensor, as the ranks OR them. Bit i is bit i mod 64 of
/// word i / 64. Lists of places ascend. A list may have a place several times where we say so.

inline constexpr unsigned kWordShift = 6; // a word is of 2^6 blocks
inline constexpr unsigned kBlocksPerWord = 1U << kWordShift;

/// Words that hold so many bits.
constexpr std::uint64_t words_of(std::uint64_t bits) {
  return bits / kBlocksPerWord + (bits % kBlocksPerWord == 0 ? 0 : 1);
}

/// Looks up ascending places in a list that has them all.
class PlaceFinder {
 public:
  explicit PlaceFinder(std::span<const std::int64_t> list) : list_(list) {}

  /// Its position in the list. Throws Error if it is not there: what the ranks agreed on is wrong.
  std::size_t find(std::int64_t place) {
    while (at_ != list_.size() && list_[at_] < place) {
      ++at_;
    }
    if (at_ == list_.size() || list_[at_] != place) {
      refuse(place);
    }
    return at_;
  }

 private:
  [[noreturn]] static void refuse(std::int64_t place);

  std::span<const std::int64_t> list_;
  std::size_t at_ = 0;
};

/// The bitmap of the places >> shift; they may repeat.
std::vector<std::uint64_t> mark(std::span<const std::int64_t> places, unsigned shift,
                                std::uint64_t bits);

/// Of the same bitmap only the words whose places are given. Throws Error
/// if another word has a bit.
std::vector<std::uint64_t> mark_words(std::span<const std::int64_t> places, unsigned shift,
                                      std::span<const std::int64_t> words);

/// The places of the bits that are set.
std::vector<std::int64_t> marked(std::span<const std::uint64_t> words);

/// The same for some words of a bitmap, and their places in it.
std::vector<std::int64_t> marked_in(std::span<const std::uint64_t> words,
                                    std::span<const std::int64_t> places_of_words);

} // namespace weir::host
