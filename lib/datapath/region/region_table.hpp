// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "region/region.hpp"

#include <cstdint>
#include <memory>
#include <utility>
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

  /// A region of this table that is not in it yet: any thread may make it. The spec has no defect.
  std::unique_ptr<Region> make(RegionSpec spec, RegionBirth birth) const;

  /// Takes a region that it has made. None of its queue pairs is taken.
  Region& adopt(std::unique_ptr<Region> region);

  Region& add(RegionSpec spec, RegionBirth birth) {
    return adopt(make(std::move(spec), std::move(birth)));
  }

  /// A packet to the switch's address, which parse() called transport or message. Returns when the
  /// table is to be polled at the latest for what the packet has changed; kNever: for nothing.
  std::uint64_t accept(frame::Frame& frame, frame::Instant now);

  /// Whose member the frame comes from, a packet as for accept(); nullptr: nobody's.
  const Region* region_of(const frame::Frame& frame) const;

  bool has_queue_pair(std::uint32_t queue_pair) const {
    return place_of(queue_pair) != places_.end();
  }

  /// A region that speaks by this port; nullptr: none does.
  const Region* user_of(std::uint16_t port) const;

  /// nullptr: there is none, or it has ended and is forgotten.
  Region* with_id(std::uint32_t id) const;

  /// Acts on the timers that are due, and forgets what is over.
  void poll(frame::Instant now);

  /// Forgets a region that has ended, if it is not forgotten and holds nothing.
  void forget(const Region& region);

  /// What it has forgotten, for the caller to free when he has time.
  std::vector<std::unique_ptr<Region>> take_forgotten();

  std::uint64_t next_timer() const;

  std::uint64_t held() const;

  const std::vector<std::unique_ptr<Region>>& regions() const { return regions_; }

 private:
  struct Place {
    std::uint32_t queue_pair = 0;
    Region* region = nullptr;
    std::uint16_t member = 0;
  };

  std::vector<Place>::const_iterator place_of(std::uint32_t queue_pair) const;
  std::uint16_t free_line() const;
  void give_queue_pair(const Region& heard, std::uint16_t member, frame::Instant now);

  Outlet& outlet_;
  std::vector<std::unique_ptr<Region>> regions_;   // in the order in which they were made
  std::vector<std::unique_ptr<Region>> forgotten_; // has room for all regions: an lcore frees none
  std::vector<Place> places_;                      // by queue pair
};

} // namespace weir::region
