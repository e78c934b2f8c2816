// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace weir::l2 {

/// Which port each station was last heard on (IEEE 802.1D §7.9): learning, aging and station moves.
///
/// Every lcore reads and writes it without locks. A cell is one 64-bit word of address and port, so
/// a reader sees a station whole or not at all; two lcores that learn one station at once may leave
/// it in two cells of a bucket, of which readers take the first and the other ages.
class MacTable {
 public:
  /// Room for `entries` stations (rounded up to a power of two); forgotten after `aging`
  /// milliseconds of silence.
  MacTable(std::uint32_t entries, std::uint64_t aging);

  static std::size_t bytes_for(std::uint32_t entries);

  /// `now` in milliseconds. A full bucket gives up its longest silent station.
  void learn(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now);
  std::optional<std::uint16_t> port_of(const wire::MacAddress& station, std::uint64_t now) const;

  template <typename Visitor>
  void for_each(std::uint64_t now, Visitor&& visit) const;

 private:
  static constexpr std::size_t kWays = 8;

  struct Cell {
    std::atomic<std::uint64_t> station{0}; // address << 16 | port + 1; 0: empty
    std::atomic<std::uint64_t> heard{0};   // milliseconds
  };

  using Bucket = std::array<Cell, kWays>;

  Bucket& bucket_of(std::uint64_t address) const;
  bool is_fresh(const Cell& cell, std::uint64_t now) const;
  Cell& cell_to_reuse(Bucket& bucket, std::uint64_t now) const;

  std::size_t buckets_;
  std::unique_ptr<Bucket[]> table_;
  std::uint64_t aging_;
};

/// The 48 bits of an address as a number.
std::uint64_t to_number(const wire::MacAddress& mac);
wire::MacAddress from_number(std::uint64_t number);

template <typename Visitor>
void MacTable::for_each(std::uint64_t now, Visitor&& visit) const {
  for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
    for (const Cell& cell : table_[bucket]) {
      const std::uint64_t word = cell.station.load(std::memory_order_relaxed);
      if (word != 0 && is_fresh(cell, now)) {
        visit(from_number(word >> 16), static_cast<std::uint16_t>((word & 0xffff) - 1),
              now - cell.heard.load(std::memory_order_relaxed));
      }
    }
  }
}

} // namespace weir::l2
