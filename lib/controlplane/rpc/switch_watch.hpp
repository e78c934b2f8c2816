// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/fabric_rings.hpp"
#include "rpc/places.hpp"
#include "rpc/repeated_answer.hpp"

#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Tells a manager once a second what the switch has.
class SwitchWatch final : public RepeatedAnswer<v1::SwitchSeen> {
 public:
  /// `rings` outlive it.
  SwitchWatch(FabricRings& rings, v1::WatchSwitchRequest request, Places::Place place);

 private:
  void fill(v1::SwitchSeen& message) override;
  void give_back(v1::SwitchSeen& message) override;

  FabricRings& rings_;
  const v1::WatchSwitchRequest request_;
  const Places::Place place_;
  FabricRings::Labels labels_ = FabricRings::Labels::told; // once
};

} // namespace weir::rpc
