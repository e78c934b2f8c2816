// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Converts the configuration to the stages' settings, for the switch and for weir-replay.

#include "config/config.hpp"
#include "conn/classifier.hpp"
#include "stage/forward.hpp"

#include <cstdint>
#include <vector>

namespace weir::control {

constexpr std::uint64_t milliseconds(std::uint32_t seconds) {
  return std::uint64_t{seconds} * 1000;
}

/// The longest frame that each port sends, by port.
inline std::vector<std::uint32_t> frame_limits(const config::Config& config) {
  std::vector<std::uint32_t> limits;
  for (const config::PortConfig& port : config.ports) {
    limits.push_back(stage::max_frame_bytes(port.mtu));
  }
  return limits;
}

/// The EtherType of each port's outer tags, by port.
inline std::vector<wire::EtherType> outer_tags(const config::Config& config) {
  std::vector<wire::EtherType> tags;
  for (const config::PortConfig& port : config.ports) {
    tags.push_back(port.outer_tag);
  }
  return tags;
}

inline conn::Classifier::Settings classifier_settings(const config::Config& config,
                                                      const conn::SessionSource& sessions,
                                                      const conn::HashKey& hash_key) {
  return {.sessions = sessions,
          .plain_entries = config.connections.plain_entries,
          .ports = static_cast<std::uint16_t>(config.ports.size()),
          .spare_children = config.spare.members,
          .spare_rings = config.spare.rings,
          .aging = milliseconds(config.connections.aging_s),
          .hash_key = hash_key};
}

} // namespace weir::control
