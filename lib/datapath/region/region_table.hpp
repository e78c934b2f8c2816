// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "region/region.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace weir::region {

/// The switch's own address, under which it is the peer of all members.
struct Address {
  wire::IpAddress ip;
  wire::MacAddress mac;
};

/// The regions of one lcore, by the switch's queue pairs.
class RegionTable {
 public:
  /// `outlet` outlives the table.
  explicit RegionTable(Outlet& outlet) : outlet_(outlet) {}

  /// Takes a region without a defect. None of the birth's queue pairs is taken.
  Region& add(RegionSpec spec, RegionBirth birth);

  /// A packet to the switch's address, which parse() called transport or message.
  void accept(frame::Frame& frame, frame::Instant now);

  bool has_queue_pair(std::uint32_t queue_pair) const {
    return by_queue_pair_.contains(queue_pair);
  }

  /// nullptr: there is none, or it has ended and is forgotten.
  Region* with_id(std::uint32_t id) const;

  /// Acts on the timers that are due, and forgets what is over.
  void poll(frame::Instant now);

  std::uint64_t next_timer() const;

  std::uint64_t held() const;

  const std::vector<std::unique_ptr<Region>>& regions() const { return regions_; }

 private:
  struct Place {
    Region* region = nullptr;
    std::uint16_t member = 0;
  };

  void give_queue_pair(const Region& heard, std::uint16_t member, frame::Instant now);
  void forget(const Region& region);

  Outlet& outlet_;
  std::vector<std::unique_ptr<Region>> regions_; // in the order in which they were made
  std::unordered_map<std::uint32_t, Place> by_queue_pair_;
};

} // namespace weir::region
