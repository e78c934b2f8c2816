// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/places.hpp"

#include <algorithm>
#include <cassert>

namespace weir::rpc {
namespace {

/// So many parts at least, even if fewer names are known: others may come with the next reload.
constexpr std::size_t kFewestParts = 4;

} // namespace

std::optional<Places::Place> Places::take(const std::string& name,
                                          std::optional<std::size_t> names) {
  const std::lock_guard lock(mutex_);
  const std::size_t most = std::max(most_, names.value_or(0)); // one for each name
  if (all_taken_ >= most || taken_[name] >= most_of_one(names)) {
    return std::nullopt;
  }
  return give(name, 1);
}

bool Places::has_room(const std::string& name, std::optional<std::size_t> names) {
  const std::lock_guard lock(mutex_);
  const auto known = taken_.find(name);
  if (known == taken_.end()) {
    return true;
  }
  const std::size_t part = most_of_one(names);
  std::size_t of_all = 0; // of each name its part at most
  for (const auto& [other, taken] : taken_) {
    of_all += std::min(taken, part);
  }
  return known->second < part && of_all < most_;
}

Places::Place Places::take_some(const std::string& name, std::size_t amount) {
  const std::lock_guard lock(mutex_);
  return give(name, amount);
}

/// For a caller that has the lock.
Places::Place Places::give(const std::string& name, std::size_t amount) {
  all_taken_ += amount;
  taken_[name] += amount;
  return {*this, name, amount};
}

std::size_t Places::most_of_one(std::optional<std::size_t> names) const {
  if (names == 1U) {
    return most_;
  }
  return std::max<std::size_t>(1, most_ / std::max(kFewestParts, names.value_or(0)));
}

void Places::leave(const std::string& name, std::size_t amount) {
  const std::lock_guard lock(mutex_);
  std::size_t& taken = taken_[name];
  assert(taken >= amount && all_taken_ >= amount);
  all_taken_ -= amount;
  taken -= amount;
  if (taken == 0) {
    taken_.erase(name);
  }
}

} // namespace weir::rpc
