// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Sparse gradients from a seed, and the two structures into which Flare folds them (SC'21 §7):
/// what they hold, what they spill, and how often they access memory.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace weir::figures {

struct Pair {
  std::uint32_t index = 0;
  float value = 0;
};

/// Random numbers that are the same with every standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1).
  double share();
  /// In [0, count).
  std::uint32_t below(std::uint32_t count);

 private:
  std::mt19937_64 engine_;
};

/// `count` different indices below `span`, in no order.
std::vector<Pair> scattered(Draws& draws, std::uint32_t span, std::uint32_t count);

/// Indices 0 … count-1 with probabilities proportional to 1 / (index + 1)^exponent.
class ZipfLaw {
 public:
  ZipfLaw(std::uint32_t count, double exponent);

  std::uint32_t draw(Draws& draws) const;
  /// The mean number of different indices in `draws` independent draws.
  double expected_union(std::uint32_t draws) const;

 private:
  std::vector<double> up_to_; // share of the indices up to each
};

/// A table of fixed size. A pair is spilled when its place has another index.
class HashFold {
 public:
  explicit HashFold(std::uint32_t slots);

  void add(std::span<const Pair> pairs);

  std::uint64_t accesses() const { return accesses_; }

  std::uint64_t spilled() const { return spilled_; }

  /// Pairs in the table.
  std::uint32_t held() const;

  std::uint64_t bytes() const { return slots_.size() * sizeof(Pair); }

 private:
  struct Slot {
    std::uint32_t index = kFree;
    float value = 0;
  };

  static constexpr std::uint32_t kFree = UINT32_MAX;

  std::vector<Slot> slots_;
  std::uint64_t accesses_ = 0;
  std::uint64_t spilled_ = 0;
};

/// A place for every index of the block. A scan reads it out.
class ArrayFold {
 public:
  explicit ArrayFold(std::uint32_t span) : values_(span) {}

  void add(std::span<const Pair> pairs);
  /// The values other than 0, found by a scan.
  std::uint32_t drain();

  std::uint64_t accesses() const { return accesses_; }

  std::uint64_t bytes() const { return values_.size() * sizeof(float); }

 private:
  std::vector<float> values_;
  std::uint64_t accesses_ = 0;
};

} // namespace weir::figures
