// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_bitmap.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <numeric>
#include <optional>

namespace weir::host {
namespace {

std::uint64_t bit_of(std::int64_t place) {
  return std::uint64_t{1} << (static_cast<std::uint64_t>(place) % kBlocksPerWord);
}

void add_marked(std::vector<std::int64_t>& places, std::uint64_t word, std::int64_t first) {
  for (; word != 0; word &= word - 1) {
    places.push_back(first + std::countr_zero(word));
  }
}

std::size_t bits_set(std::span<const std::uint64_t> words) {
  return std::accumulate(words.begin(), words.end(), std::size_t{0},
                         [](std::size_t sum, std::uint64_t word) {
                           return sum + static_cast<std::size_t>(std::popcount(word));
                         });
}

} // namespace

void PlaceFinder::refuse(std::int64_t place) {
  throw Error(
      ErrorCode::transport_failure, std::nullopt,
      fmt::format("the union of the ranks' blocks lacks place {}, which this rank has", place));
}

std::vector<std::uint64_t> mark(std::span<const std::int64_t> places, unsigned shift,
                                std::uint64_t bits) {
  std::vector<std::uint64_t> words(words_of(bits));
  for (const std::int64_t place : places) {
    words[static_cast<std::size_t>((place >> shift) / kBlocksPerWord)] |= bit_of(place >> shift);
  }
  return words;
}

std::vector<std::uint64_t> mark_words(std::span<const std::int64_t> places, unsigned shift,
                                      std::span<const std::int64_t> words) {
  std::vector<std::uint64_t> found(words.size());
  PlaceFinder finder(words);
  for (const std::int64_t place : places) {
    found[finder.find((place >> shift) / kBlocksPerWord)] |= bit_of(place >> shift);
  }
  return found;
}

std::vector<std::int64_t> marked(std::span<const std::uint64_t> words) {
  std::vector<std::int64_t> places;
  places.reserve(bits_set(words));
  std::int64_t first = 0;
  for (const std::uint64_t word : words) {
    add_marked(places, word, first);
    first += kBlocksPerWord;
  }
  return places;
}

std::vector<std::int64_t> marked_in(std::span<const std::uint64_t> words,
                                    std::span<const std::int64_t> places_of_words) {
  std::vector<std::int64_t> places;
  assert(words.size() == places_of_words.size());
  places.reserve(bits_set(words));
  for (std::size_t i = 0; i < words.size(); ++i) {
    add_marked(places, words[i], places_of_words[i] * kBlocksPerWord);
  }
  return places;
}

} // namespace weir::host
