// SPDX-License-Identifier: BSD-3-Clause
#include "sparse.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <unordered_set>

namespace weir::figures {
namespace {

/// Spreads indices over a table of 2^bits slots (Fibonacci hashing, Knuth vol. 3 §6.4).
std::uint32_t place_of(std::uint32_t index, std::size_t slots) {
  constexpr std::uint32_t kGoldenRatio = 0x9e3779b9;
  return (index * kGoldenRatio) >> (32 - std::countr_zero(slots));
}

} // namespace

double Draws::share() {
  constexpr int kMantissa = 53;
  return std::ldexp(static_cast<double>(engine_() >> (64 - kMantissa)), -kMantissa);
}

std::uint32_t Draws::below(std::uint32_t count) {
  return static_cast<std::uint32_t>(share() * count);
}

std::vector<Pair> scattered(Draws& draws, std::uint32_t span, std::uint32_t count) {
  if (count > span) {
    throw std::invalid_argument("more indices are wanted than there are");
  }
  std::unordered_set<std::uint32_t> taken;
  std::vector<Pair> pairs;
  while (pairs.size() < count) {
    const std::uint32_t index = draws.below(span);
    if (taken.insert(index).second) {
      pairs.push_back({index, 1});
    }
  }
  return pairs;
}

ZipfLaw::ZipfLaw(std::uint32_t count, double exponent) {
  double sum = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    sum += std::pow(index + 1, -exponent);
    up_to_.push_back(sum);
  }
  for (double& share : up_to_) {
    share /= sum;
  }
}

std::uint32_t ZipfLaw::draw(Draws& draws) const {
  const auto found = std::ranges::upper_bound(up_to_, draws.share());
  return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(
      found - up_to_.begin(), static_cast<std::ptrdiff_t>(up_to_.size()) - 1));
}

double ZipfLaw::expected_union(std::uint32_t draws) const {
  double expected = 0;
  double before = 0;
  for (const double share : up_to_) {
    expected += 1 - std::pow(1 - (share - before), draws);
    before = share;
  }
  return expected;
}

HashFold::HashFold(std::uint32_t slots) : slots_(slots) {
  if (!std::has_single_bit(slots)) {
    throw std::invalid_argument("a hash table's slots must be a power of two");
  }
}

void HashFold::add(std::span<const Pair> pairs) {
  for (const Pair& pair : pairs) {
    Slot& slot = slots_[place_of(pair.index, slots_.size())];
    accesses_ += 4; // index and value of the packet; the slot's index; its value or a spill's place
    if (slot.index == kFree) {
      slot.index = pair.index;
    }
    if (slot.index == pair.index) {
      slot.value += pair.value;
      accesses_ += 1; // the sum
    } else {
      ++spilled_;
      accesses_ += 1; // the spilled pair
    }
  }
}

std::uint32_t HashFold::held() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.index != kFree; }));
}

void ArrayFold::add(std::span<const Pair> pairs) {
  for (const Pair& pair : pairs) {
    values_.at(pair.index) += pair.value;
    accesses_ += 4; // index and value of the packet; the place, read and written
  }
}

std::uint32_t ArrayFold::drain() {
  accesses_ += values_.size();
  return static_cast<std::uint32_t>(
      std::ranges::count_if(values_, [](float value) { return value != 0; }));
}

} // namespace weir::figures
