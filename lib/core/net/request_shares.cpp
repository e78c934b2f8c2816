// SPDX-License-Identifier: BSD-3-Clause
#include "net/request_shares.hpp"

#include <algorithm>

namespace weir::net {
namespace {

constexpr std::chrono::seconds kForgottenAfter{10};

} // namespace

bool RequestShares::lets_pass(const std::string& name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Part& part = part_of(name, now);
  if (part.left < 1) {
    return false;
  }
  part.left -= 1;
  return true;
}

RequestShares::Part& RequestShares::part_of(const std::string& name, Clock::time_point now) {
  std::erase_if(parts_,
                [&](const auto& entry) { return now - entry.second.last > kForgottenAfter; });
  const auto [place, is_new] = parts_.try_emplace(name);
  Part& part = place->second;
  const double most = size_of_part();
  const double rested = is_new ? 1 : std::chrono::duration<double>(now - part.last).count();
  part.left = std::min(most, part.left + std::max(rested, 0.0) * most);
  part.last = now;
  return part;
}

double RequestShares::size_of_part() const {
  return std::max(smallest_part_, per_second_ / static_cast<double>(parts_.size()));
}

} // namespace weir::net
