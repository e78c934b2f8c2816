// SPDX-License-Identifier: BSD-3-Clause
#include "worker/bandwidth.hpp"

#include "worker/call_buffers.hpp"

#include <algorithm>

namespace weir::app {
namespace {

constexpr double kGiga = 1e9;
constexpr double kShortestSeconds = 1e-9; // of the clock

/// Bytes on a link, for each byte of the call.
double bus_share(host::CallKind kind, std::uint16_t world) {
  const double others = static_cast<double>(world - 1) / world;
  switch (kind) {
  case host::CallKind::all_reduce:
    return 2 * others;
  case host::CallKind::all_gather:
  case host::CallKind::reduce_scatter:
    return others;
  default:
    return 1;
  }
}

} // namespace

Bandwidth bandwidth_of(const host::Call& call, std::uint16_t world, double seconds) {
  const double algorithm =
      static_cast<double>(bytes_of(call, world)) / std::max(seconds, kShortestSeconds) / kGiga;
  return {algorithm, algorithm * bus_share(call.kind, world)};
}

} // namespace weir::app
