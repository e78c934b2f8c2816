// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/bucket_table.hpp"
#include "wire/packet.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace weir::conn {

/// The hosts and sessions of rings on other switches: hosts whose hello another switch has
/// answered, with the session of that answer. All lcores share it without locks. A cell is one
/// word; when two sessions meet in a cell, the later one stays.
class ForeignSessions {
 public:
  explicit ForeignSessions(const HashKey& hash_key) : hash_key_(hash_key) {}

  /// Notes a hello's result on its way to a host.
  void note(const wire::ParsedBytes& packet, const wire::InaHeader& result) {
    const std::uint64_t name = name_of(packet.destination(), result);
    cell_of(name).store(name, std::memory_order_relaxed);
  }

  /// Whether the sender of this message has such a session.
  bool has(const wire::ParsedBytes& packet, const wire::InaHeader& message) {
    const std::uint64_t name = name_of(packet.source(), message);
    return cell_of(name).load(std::memory_order_relaxed) == name;
  }

 private:
  static constexpr std::size_t kCells = 4096;

  std::uint64_t name_of(const wire::IpAddress& host, const wire::InaHeader& ina) const {
    const auto [high, low] = host.words();
    const std::uint64_t session = std::uint64_t{ina.ring_id.get()} << 32 | ina.session.get();
    return keyed_hash(hash_key_, keyed_hash(hash_key_, high, low), session);
  }

  std::atomic<std::uint64_t>& cell_of(std::uint64_t name) { return cells_[name % kCells]; }

  HashKey hash_key_;
  std::array<std::atomic<std::uint64_t>, kCells> cells_{};
};

} // namespace weir::conn
