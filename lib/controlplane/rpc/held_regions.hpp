// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/held_calls.hpp"
#include "rpc/places.hpp"

#include <cstdint>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// The regions that are there as long as their owners' calls HoldRegion. Any thread may use it.
class HeldRegions {
 public:
  /// `backend` outlives it.
  explicit HeldRegions(Backend& backend)
      : backend_(backend), calls_([this](std::uint32_t id) { backend_.remove_orphan_region(id); }) {
  }

  using Stream = grpc::ServerWriteReactor<v1::HeldRegion>;

  /// `maker` makes a region, as its caller may. The region's stream deletes itself when the call is
  /// done, and then gives the place back. Throws WrongMessage, and what Backend::hold_region
  /// throws.
  Stream* hold(const v1::HoldRegionRequest& request, Backend& maker, Places::Place place);

  /// Ends the calls whose regions have ended, and ends the regions that could not be ended with
  /// their calls. Call it now and then.
  void look_after();

  /// Ends all calls. The next ones are refused.
  void end() { calls_.end(); }

 private:
  void end_calls();

  Backend& backend_;
  HeldCalls<v1::HeldRegion, std::uint32_t> calls_; // of the region's id
};

} // namespace weir::rpc
