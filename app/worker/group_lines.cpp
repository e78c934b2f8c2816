// SPDX-License-Identifier: BSD-3-Clause
#include "worker/group_lines.hpp"

#include "host/collective/ring_blocks.hpp"
#include "text/json.hpp"

#include <fmt/format.h>

namespace weir::app {

std::string greeting_of(const host::Group& group, std::string_view schedule) {
  std::string text =
      fmt::format("weir-worker: rank={} world={} epoch={} algorithm={}", group.rank(),
                  group.world(), group.epoch(), name_of(group.algorithm()));
  if (!schedule.empty()) {
    text += fmt::format(" schedule={}", schedule);
  }
  return text + reasons_of(group.fallback_reason(), group.missing_rings()) + "\n";
}

std::string reasons_of(std::string_view fallback, std::string_view missing_rings) {
  std::string text;
  if (!fallback.empty()) {
    text += fmt::format(" reason=\"{}\"", fallback);
  }
  if (!missing_rings.empty()) {
    text += fmt::format(" missing_rings=\"{}\"", missing_rings);
  }
  return text;
}

std::string rings_json(std::span<const std::uint32_t> rings, std::string_view missing_rings) {
  return fmt::format("\"rings\": [{}], \"missing_rings\": {}", fmt::join(rings, ", "),
                     text::json_string(missing_rings));
}

std::string retransmissions_of(const host::Group& group) {
  const auto packets = group.statistics().retransmitted_packets;
  return packets ? std::to_string(*packets) : "unknown";
}

std::string_view schedule_of(const host::Group& group, const host::Call& call) {
  return group.algorithm() == host::Algorithm::ring ? name_of(host::ring_schedule(call.type))
                                                    : std::string_view();
}

} // namespace weir::app
