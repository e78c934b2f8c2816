// SPDX-License-Identifier: BSD-3-Clause
#include "worker/group_lines.hpp"

#include "host/collective/ring_blocks.hpp"

#include <fmt/format.h>

namespace weir::app {

std::string greeting_of(const host::Group& group, std::string_view schedule) {
  std::string text =
      fmt::format("weir-worker: rank={} world={} epoch={} algorithm={}", group.rank(),
                  group.world(), group.epoch(), name_of(group.algorithm()));
  if (!schedule.empty()) {
    text += fmt::format(" schedule={}", schedule);
  }
  if (const std::string reason = group.fallback_reason(); !reason.empty()) {
    text += fmt::format(" reason=\"{}\"", reason);
  }
  return text + "\n";
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
