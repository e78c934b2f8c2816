// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The configuration of each switch of a fabric, as `weir --config` reads it
/// (docs/configuration.md).

#include "plan/fabric.hpp"
#include "plan/topology.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plan {

/// What may stand in braces in SwitchFileSettings::device.
inline constexpr std::array<std::string_view, 6> kDeviceWords{"port",  "number", "switch",
                                                              "cable", "role",   "server"};
/// The same for SwitchFileSettings::eal.
inline constexpr std::array<std::string_view, 1> kEalWords{"switch"};

/// The first word in braces in `text`, with them, that is none of `words`; empty: there is none.
std::string_view unknown_word(std::string_view text, std::span<const std::string_view> words);

/// What a topology does not say.
struct SwitchFileSettings {
  std::vector<std::string> addresses; // of each node, by its number
  /// In devices and in EAL's options, {switch} stands for the switch's name. In devices {port}
  /// stands for the port's name, {number} for its number on the switch, {cable} for a number that
  /// both ends of a cable have, {role} for server or client (a host is a client, and of two
  /// switches the one that stands later in the topology), {server} for the name of the switch that
  /// is the server.
  std::string device = "device-of-{port}";
  std::vector<std::string> eal;
  std::uint32_t window = 8;
  std::uint32_t max_message_bytes = 65536;
  std::uint32_t mtu = 1024; // of the rings; ports get what its packets need
};

struct SwitchFile {
  std::string name; // of the switch, in letters, digits, '_', '.' and '-'
  std::string text; // YAML
  bool has_rings = false;
};

/// One file for each switch of the topology. All cables of a switch are ports. The ports over which
/// bridges learn and flood are those of hosts and of a tree between the switches, the first ring's
/// where it has one: on all others `bridge` is no. Errors: PlanError for rings that number the
/// hosts in different orders or that are longer than a ring may be, for a switch with more cables
/// than it can have ports, for a port's name that no switch would take, and for names that differ
/// in other characters alone.
std::vector<SwitchFile> switch_files(const Topology& topology, const FabricPlan& fabric,
                                     const SwitchFileSettings& settings);

} // namespace weir::plan
