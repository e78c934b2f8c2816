// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/memory.hpp"

#include <algorithm>
#include <limits>

namespace weir::endpoint {

std::vector<MemoryTable::Region>::const_iterator MemoryTable::find(std::uint32_t remote_key) const {
  return std::lower_bound(
      regions_.begin(), regions_.end(), remote_key,
      [](const Region& region, std::uint32_t key) { return region.remote_key < key; });
}

bool MemoryTable::add(std::uint32_t remote_key, std::uint64_t base, std::span<std::uint8_t> bytes) {
  const auto at = find(remote_key);
  const bool key_is_taken = at != regions_.end() && at->remote_key == remote_key;
  if (key_is_taken || bytes.size() > std::numeric_limits<std::uint64_t>::max() - base) {
    return false;
  }
  regions_.insert(at, Region{remote_key, base, bytes});
  return true;
}

bool MemoryTable::add(std::uint32_t remote_key, std::span<std::uint8_t> bytes) {
  return add(remote_key, reinterpret_cast<std::uintptr_t>(bytes.data()), bytes);
}

bool MemoryTable::remove(std::uint32_t remote_key) {
  const auto at = find(remote_key);
  if (at == regions_.end() || at->remote_key != remote_key) {
    return false;
  }
  regions_.erase(at);
  return true;
}

std::optional<std::span<std::uint8_t>>
MemoryTable::resolve(std::uint32_t remote_key, std::uint64_t address, std::uint64_t length) const {
  const auto at = find(remote_key);
  if (at == regions_.end() || at->remote_key != remote_key || address < at->base) {
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
