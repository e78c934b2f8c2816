// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Where records lie in the store, and a leader's term as messages have it.

#include "jobs/loop.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::jobs {

inline constexpr std::uint32_t kSchema = 1;
inline constexpr const char* kFabricKey = "fabric";
inline constexpr const char* kAllocationPrefix = "allocation/";
inline constexpr std::size_t kMostRecordBytes = 1 << 20; // a store takes one and a half (etcd)

inline std::string job_key(std::uint64_t id) {
  return fmt::format("job/{}", id);
}

inline std::string allocation_key(std::uint64_t id) {
  return fmt::format("{}{}", kAllocationPrefix, id);
}

inline void write(const LeaderTerm& term, v1::FabricTerm& message) {
  message.set_epoch(term.epoch);
  message.set_number(term.number);
}

} // namespace weir::jobs
