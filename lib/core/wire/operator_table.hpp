// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"
#include "wire/headers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

/// An operator in a hello's table (docs/protocol.md §12). All zero: one that a switch does not
/// have.
struct OperatorEntry {
  std::uint8_t number; // kFirstOperator or more: as messages name it
  std::array<std::uint8_t, 7> reserved;
  std::array<std::uint8_t, 32> digest;

  bool operator==(const OperatorEntry&) const = default;

  bool is_empty() const { return *this == OperatorEntry{}; }
};

static_assert(sizeof(OperatorEntry) == 40);

/// Whether a hello of this version may have so many bytes behind its header.
constexpr bool may_be_table(std::uint8_t version, std::size_t bytes) {
  return bytes == 0 || (version == kInaVersionWithOperators && bytes % sizeof(OperatorEntry) == 0 &&
                        bytes <= kMostOperators * sizeof(OperatorEntry));
}

/// Those behind the header of a hello.
class OperatorTable {
 public:
  OperatorTable() = default;

  explicit OperatorTable(std::span<const std::uint8_t> bytes)
      : count_(std::min(bytes.size() / sizeof(OperatorEntry), kMostOperators)) {
    const auto* const first = reinterpret_cast<const OperatorEntry*>(bytes.data());
    std::copy_n(first, count_, entries_.begin());
  }

  std::span<const OperatorEntry> entries() const { return {entries_.data(), count_}; }

  std::span<OperatorEntry> entries() { return {entries_.data(), count_}; }

  std::span<const std::uint8_t> bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(entries_.data()), count_ * sizeof(OperatorEntry)};
  }

  /// By the next number, from kFirstOperator on.
  void add(const std::array<std::uint8_t, 32>& digest) {
    const auto number = static_cast<std::uint8_t>(kFirstOperator + count_);
    entries_[count_++] = {.number = number, .reserved = {}, .digest = digest};
  }

  /// Entries of this one that `other` has too; the others are empty.
  void keep_common(const OperatorTable& other) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (i >= other.count_ || other.entries_[i] != entries_[i]) {
        entries_[i] = {};
      }
    }
  }

  bool operator==(const OperatorTable&) const = default;

 private:
  std::array<OperatorEntry, kMostOperators> entries_{};
  std::size_t count_ = 0;
};

} // namespace weir::wire
