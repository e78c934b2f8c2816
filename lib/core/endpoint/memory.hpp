// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::endpoint {

/// What peers may do with a region.
enum class Access : std::uint8_t { write = 1, read = 2, read_and_write = write | read };

/// The memory that peers may write or read, by rkey. All queue pairs of a device share one table,
/// so they form one protection domain (IBTA §10.2.3).
class MemoryTable {
 public:
  /// Peers see `bytes` at address `base`. The owner keeps the memory alive until remove(). False
  /// when the key is in use or base + size exceeds 2^64.
  bool add(std::uint32_t remote_key, std::uint64_t base, std::span<std::uint8_t> bytes,
           Access access = Access::write);

  /// The same with the memory's own address as base, as ibverbs does.
  bool add(std::uint32_t remote_key, std::span<std::uint8_t> bytes, Access access = Access::write);

  bool remove(std::uint32_t remote_key);

  /// The memory at [address, address + length). nullopt unless one region holds all of it and
  /// allows all of `wanted`.
  std::optional<std::span<std::uint8_t>> resolve(std::uint32_t remote_key, std::uint64_t address,
                                                 std::uint64_t length, Access wanted) const;

 private:
  struct Region {
    std::uint32_t remote_key;
    std::uint64_t base;
    std::span<std::uint8_t> bytes;
    Access access;

    bool allows(Access wanted) const;
  };

  std::vector<Region>::const_iterator find(std::uint32_t remote_key) const;

  std::vector<Region> regions_; // by ascending key
};

} // namespace weir::endpoint
