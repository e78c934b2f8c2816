// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/region.hpp"
#include "host/base/group_options.hpp"
#include "host/region/region_ends.hpp"
#include "host/region/region_link.hpp"
#include "host/region/region_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace weir::host {

/// The first defect: what was found and what is allowed. Empty when there is none.
std::string find_defect(const RegionOptions& options, std::size_t bytes);

/// The group whose ranks make a region.
struct RegionMakers {
  const GroupOptions& options; // the group's
  std::shared_ptr<RegionEnds> ends;
  // Calls of the group's: an all-gather of so many bytes, and a broadcast of rank 0's.
  std::function<void(const void* in, std::size_t bytes, void* out)> gather;
  std::function<void(std::span<std::uint8_t> bytes)> broadcast;
  std::function<std::unique_ptr<RegionLink>(std::uint32_t reads)> open_link; // of this rank
};

/// Every rank calls it, with memory of the same size and the same options. Rank 0 has the switch
/// make the region. Returns when all members have said hello. Throws std::invalid_argument for what
/// this rank has got wrong, else Error.
std::shared_ptr<Region> form_region(const RegionMakers& makers, std::span<std::uint8_t> memory,
                                    RegionOptions options);

} // namespace weir::host
