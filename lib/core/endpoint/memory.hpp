// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::endpoint {

/// The memory that peers may write, by rkey. All queue pairs of a device share one table, so they
/// form one protection domain (IBTA §10.2.3).
class MemoryTable {
 public:
  /// Peers see `bytes` at address `base`. The owner keeps the memory alive until remove(). False
  /// when the key is in use or base + size exceeds 2^64.
  bool add(std::uint32_t remote_key, std::uint64_t base, std::span<std::uint8_t> bytes);

  /// The same with the memory's own address as base, as ibverbs does.
  bool add(std::uint32_t remote_key, std::span<std::uint8_t> bytes);

  bool remove(std::uint32_t remote_key);

  /// The memory at [address, address + length). nullopt unless one region holds all of it.
  std::optional<std::span<std::uint8_t>> resolve(std::uint32_t remote_key, std::uint64_t address,
                                                 std::uint64_t length) const;

 private:
  struct Region {
    std::uint32_t remote_key;
    std::uint64_t base;
    std::span<std::uint8_t> bytes;
  };

  std::vector<Region>::const_iterator find(std::uint32_t remote_key) const;

  std::vector<Region> regions_; // by ascending key
};

} // namespace weir::endpoint
