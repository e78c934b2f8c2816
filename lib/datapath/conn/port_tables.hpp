// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/bucket_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weir::conn {

/// A table for each port. What comes by a port takes that port's places alone, so a port that
/// floods displaces only its own entries. Ports beyond the number that it was made for share places
/// with others, so keys must tell ports apart.
template <typename Entry>
class PortTables {
 public:
  /// Places are laid out for so many ports at least, for those that are opened later.
  static constexpr std::uint16_t kLeastPorts = 8;

  /// `entries` of all ports together.
  PortTables(std::uint32_t entries, std::uint16_t ports, const HashKey& hash_key)
      : tables_(std::bit_ceil(std::max(ports, kLeastPorts)),
                BucketTable<Entry>(share_of(entries, ports), hash_key)) {}

  BucketTable<Entry>& of(std::uint16_t port) { return tables_[port & (tables_.size() - 1)]; }

  const BucketTable<Entry>& of(std::uint16_t port) const {
    return tables_[port & (tables_.size() - 1)];
  }

  std::uint32_t size() const {
    return std::accumulate(
        tables_.begin(), tables_.end(), std::uint32_t{0},
        [](std::uint32_t size, const BucketTable<Entry>& table) { return size + table.size(); });
  }

  std::size_t places() const { return tables_.size() * tables_.front().places(); }

  template <typename Visitor>
  void for_each(const PlaceRange& range, Visitor&& visit) const {
    const std::size_t of_one = tables_.front().places();
    const std::size_t end = std::min(range.first + range.count, places());
    for (std::size_t place = range.first; place < end;) {
      const std::size_t within = place % of_one;
      const std::size_t count = std::min(end - place, of_one - within);
      tables_[place / of_one].for_each({within, count}, visit);
      place += count;
    }
  }

 private:
  static std::uint32_t share_of(std::uint32_t entries, std::uint16_t ports) {
    const std::uint32_t shares = std::bit_ceil(std::max(ports, kLeastPorts));
    return (entries + shares - 1) / shares;
  }

  std::vector<BucketTable<Entry>> tables_;
};

} // namespace weir::conn
