// SPDX-License-Identifier: BSD-3-Clause
#include "host/region/region_ends.hpp"

#include <utility>

namespace weir::host {

std::uint32_t RegionEnds::next_number() {
  const std::lock_guard lock(mutex_);
  return ++last_;
}

void RegionEnds::watch(std::uint32_t number, Told told) {
  const std::lock_guard lock(mutex_);
  if (const auto ended = ended_.find(number); ended != ended_.end()) {
    told(ended->second);
  } else if (all_) {
    told(*all_);
  }
  watched_[number] = std::move(told);
}

void RegionEnds::forget(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  watched_.erase(number);
  ended_.erase(number);
}

void RegionEnds::note(const EndedRegion& ended) {
  const std::lock_guard lock(mutex_);
  end(ended.number, Error(ErrorCode::no_region, std::nullopt, ended.why));
}

void RegionEnds::tell(const EndedRegion& ended) {
  {
    const std::lock_guard lock(mutex_);
    untold_.push_back(ended);
    has_untold_.store(true, std::memory_order_release);
    end(ended.number, Error(ErrorCode::no_region, std::nullopt, ended.why));
  }
  const std::lock_guard lock(driving_);
  if (driver_.wake) {
    driver_.wake();
  }
}

void RegionEnds::end(std::uint32_t number, const Error& error) {
  const Error& first = ended_.emplace(number, error).first->second;
  if (const auto watched = watched_.find(number); watched != watched_.end()) {
    watched->second(first);
  }
}

void RegionEnds::end_all(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (all_) {
    return;
  }
  all_ = error;
  for (const auto& [number, told] : watched_) {
    told(error);
  }
}

void RegionEnds::set_driver(Driver driver) {
  const std::lock_guard lock(driving_);
  driver_ = std::move(driver);
}

void RegionEnds::progress() {
  const std::lock_guard lock(driving_);
  if (driver_.progress) {
    driver_.progress();
  }
}

std::vector<EndedRegion> RegionEnds::take_untold() {
  const std::lock_guard lock(mutex_);
  has_untold_.store(false, std::memory_order_release);
  return std::exchange(untold_, {});
}

} // namespace weir::host
