// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Converts the configuration to the stages' settings, for the switch and for weir-replay.

#include "config/config.hpp"
#include "conn/classifier.hpp"
#include "l2/mac_table.hpp"
#include "l2/port_set.hpp"
#include "stage/forward.hpp"

#include <algorithm>
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

/// The ports with `bridge: no`, by place.
inline l2::PortSet unbridged_ports(const config::Config& config) {
  l2::PortSet ports = 0;
  for (std::uint16_t place = 0; place < config.ports.size(); ++place) {
    ports |= config.ports[place].bridge == config::YesNo::no ? l2::set_of(place) : 0;
  }
  return ports;
}

/// Ties the stations of the configuration to their ports, which are there. `now` in milliseconds.
/// Throws ConfigError when the MAC table has no room for one.
inline void tie_stations(const config::Config& config, l2::MacTable& stations, std::uint64_t now) {
  for (const config::StationConfig& station : config.stations) {
    const auto port = std::ranges::find(config.ports, station.port, &config::PortConfig::name);
    const auto place = static_cast<std::uint16_t>(port - config.ports.begin());
    if (!stations.tie(station.mac, place, now)) {
      throw config::ConfigError(
          "stations: found no room in the MAC table for " + wire::to_string(station.mac) +
          "; allowed: another try, which spreads them otherwise, or a larger l2.entries");
    }
  }
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
