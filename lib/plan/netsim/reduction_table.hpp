// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::netsim {

/// A port's reduction table (Klenk et al. §IV-D): few entries, each for any address.
class ReductionTable {
 public:
  struct Entry {
    std::uint32_t address = 0;
    std::uint32_t count = 0;   // contributions in it
    std::uint64_t touched = 0; // time
  };

  explicit ReductionTable(std::size_t capacity) : capacity_(capacity) {
    entries_.reserve(capacity);
  }

  bool is_full() const { return entries_.size() == capacity_; }

  Entry* find(std::uint32_t address) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.address == address; });
    return found == entries_.end() ? nullptr : &*found;
  }

  /// The table must not be full.
  Entry& allocate(std::uint32_t address, std::uint64_t now) {
    assert(!is_full() && find(address) == nullptr);
    return entries_.emplace_back(Entry{address, 0, now});
  }

  void free(Entry& entry) {
    entry = entries_.back();
    entries_.pop_back();
  }

  /// Frees the entry that was touched longest ago. The table must not be empty.
  Entry evict() {
    assert(!entries_.empty());
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(),
                         [](const Entry& a, const Entry& b) { return a.touched < b.touched; });
    const Entry evicted = *oldest;
    free(*oldest);
    return evicted;
  }

 private:
  std::size_t capacity_;
  std::vector<Entry> entries_;
};

} // namespace weir::netsim
