// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_watch.hpp"

#include <chrono>
#include <utility>

namespace weir::rpc {
namespace {

constexpr std::chrono::seconds kBeat{1};

} // namespace

SwitchWatch::SwitchWatch(FabricRings& rings, v1::WatchSwitchRequest request, Places::Place place)
    : RepeatedAnswer(kBeat), rings_(rings), request_(std::move(request)), place_(std::move(place)) {
  begin();
}

void SwitchWatch::fill(v1::SwitchSeen& message) {
  rings_.look(request_, labels_, message);
  labels_ = FabricRings::Labels::left_out;
}

void SwitchWatch::give_back(v1::SwitchSeen& message) {
  message.Clear();
}

} // namespace weir::rpc
