// SPDX-License-Identifier: BSD-3-Clause
#include "worker/bandwidth.hpp"

#include "worker/call_buffers.hpp"

#include <algorithm>

namespace weir::app {
namespace {

constexpr double kGiga = 1e9;
constexpr double kShortestSeconds = 1e-9; // of the clock

/// Bytes on a link, for each byte of the call. A rank brings others their shares, or gets theirs;
/// in an all-reduce both. Through a root all bytes go.
double bus_share(const host::Call& call, std::uint16_t world) {
  if (call.has_root() || call.is_sparse()) {
    return 1;
  }
  const double others = static_cast<double>(world - 1) / world;
  return call.shares(world) == 1 ? 2 * others : others;
}

} // namespace

Bandwidth bandwidth_of(const host::Call& call, std::uint16_t world, double seconds) {
  const double algorithm =
      static_cast<double>(bytes_of(call, world)) / std::max(seconds, kShortestSeconds) / kGiga;
  return {algorithm, algorithm * bus_share(call, world)};
}

} // namespace weir::app
