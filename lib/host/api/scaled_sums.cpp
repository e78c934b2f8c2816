// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/scaled_sums.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace weir::host {

unsigned ScaledSums::add(const ScaledSum& sum) {
  const std::scoped_lock lock(mutex_);
  for (unsigned number = kFirst; number <= kLast; ++number) {
    if (sums_.try_emplace(number, sum).second) {
      return number;
    }
  }
  throw std::invalid_argument(
      fmt::format("{} scaled sums are in use; allowed: no more in a group", sums_.size()));
}

void ScaledSums::remove(unsigned number) {
  const std::scoped_lock lock(mutex_);
  if (sums_.erase(number) == 0) {
    throw std::invalid_argument(
        fmt::format("operation: found {}; allowed: a scaled sum of this group", number));
  }
}

std::optional<ScaledSums::ScaledSum> ScaledSums::find(unsigned number) const {
  if (number < kFirst) {
    return std::nullopt; // most calls; without the lock
  }
  const std::scoped_lock lock(mutex_);
  const auto found = sums_.find(number);
  return found == sums_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace weir::host
