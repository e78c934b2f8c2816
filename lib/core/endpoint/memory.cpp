// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/memory.hpp"

#include <algorithm>
#include <limits>

namespace weir::endpoint {

bool MemoryTable::Region::allows(Access wanted) const {
  const auto wanted_bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(access) & wanted_bits) == wanted_bits;
}

std::vector<MemoryTable::Region>::const_iterator MemoryTable::find(std::uint32_t remote_key) const {
  return std::lower_bound(
      regions_.begin(), regions_.end(), remote_key,
      [](const Region& region, std::uint32_t key) { return region.remote_key < key; });
}

bool MemoryTable::add(std::uint32_t remote_key, std::uint64_t base, std::span<std::uint8_t> bytes,
                      Access access) {
  const auto at = find(remote_key);
  const bool key_is_taken = at != regions_.end() && at->remote_key == remote_key;
  if (key_is_taken || bytes.size() > std::numeric_limits<std::uint64_t>::max() - base) {
    return false;
  }
  regions_.insert(at, Region{remote_key, base, bytes, access});
  return true;
}

bool MemoryTable::add(std::uint32_t remote_key, std::span<std::uint8_t> bytes, Access access) {
  return add(remote_key, reinterpret_cast<std::uintptr_t>(bytes.data()), bytes, access);
}

bool MemoryTable::remove(std::uint32_t remote_key) {
  const auto at = find(remote_key);
  if (at == regions_.end() || at->remote_key != remote_key) {
    return false;
  }
  regions_.erase(at);
  return true;
}

std::optional<std::span<std::uint8_t>> MemoryTable::resolve(std::uint32_t remote_key,
                                                            std::uint64_t address,
                                                            std::uint64_t length,
                                                            Access wanted) const {
  const auto at = find(remote_key);
  if (at == regions_.end() || at->remote_key != remote_key || address < at->base ||
      !at->allows(wanted)) {
    return std::nullopt;
  }
  const std::uint64_t offset = address - at->base;
  const std::uint64_t size = at->bytes.size();
  if (offset > size || length > size - offset) {
    return std::nullopt;
  }
  return at->bytes.subspan(offset, length);
}

} // namespace weir::endpoint
