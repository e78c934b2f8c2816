// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/held_regions.hpp"

#include "rpc/region_messages.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace weir::rpc {

HeldRegions::Stream* HeldRegions::hold(const v1::HoldRegionRequest& request, Backend& maker,
                                       Places::Place place) {
  const control::MadeRegion made =
      maker.hold_region(region_of(request.region(), *backend_.config()));
  return calls_.open(made.spec.id, std::move(place),
                     [&](v1::HeldRegion& message) { write(made, *backend_.config(), message); });
}

void HeldRegions::look_after() {
  calls_.take_back_orphans();
  end_calls();
}

/// Asks without the calls' lock, because the switch may take its time.
void HeldRegions::end_calls() {
  std::map<std::uint32_t, std::string> reasons;
  for (const std::uint32_t id : calls_.held()) {
    if (std::optional<std::string> reason = backend_.end_of_region(id)) {
      reasons.emplace(id, std::move(*reason));
    }
  }
  calls_.end_those([&](std::uint32_t id) -> std::optional<grpc::Status> {
    const auto reason = reasons.find(id);
    if (reason == reasons.end()) {
      return std::nullopt;
    }
    return grpc::Status(grpc::StatusCode::ABORTED,
                        fmt::format("region {} has ended: {}", id, reason->second));
  });
}

} // namespace weir::rpc
