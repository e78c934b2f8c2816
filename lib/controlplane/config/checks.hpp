// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What the rows of the table of keys demand beyond type and range.

#include "config/config.hpp"
#include "config/keys.hpp"
#include "yaml/reader.hpp"

#include <string_view>
#include <vector>

namespace weir::config {

// Of a text alone.

bool is_port_name(std::string_view name);

/// It stands in tables and in labels of metrics.
bool is_switch_name(std::string_view name);

/// A common name as certificates have it, of which nobody has to wonder what is in it.
bool is_certificate_name(std::string_view name);

/// "ADDRESS:PORT", an IPv6 address in brackets.
bool can_be_listened_at(std::string_view text);

bool is_absolute_path(std::string_view path);

// Of a key beside others. The node is the key's; the structure has been read from the map around.

/// No option that sets CPUs; and EAL itself takes any text for the number of -m.
void check_eal_options(const std::vector<yaml::Reader>& options);
void check_device(const yaml::Reader& node, const PortConfig& port);
void check_steering(const yaml::Reader& node, const PortConfig& port);

/// Who listens on a network needs certificates.
void check_addresses(const std::vector<yaml::Reader>& addresses, const ControlConfig& control);
/// Who has certificates, or names in them, listens on a network.
void check_tls(const yaml::Reader& node, const ControlConfig& control);
void check_use_of_operators(const yaml::Reader& node, const ControlConfig& control);
/// No operator is a tenant.
void check_names_of_operators(const std::vector<yaml::Reader>& names, const Config& config);

/// The rooms are needed.
void check_rooms(const yaml::Reader& node, const RegionsConfig& regions);

/// No tied station has their MAC address.
void check_regions(const yaml::Reader& node, const Config& config);

/// No ring's member has their address: its packets would be an impostor's. Called once all is read.
void check_members_of_rings(const yaml::Reader& regions, const Config& config);

void check_spare(const yaml::Reader& node, const Config& config);
/// Rings that are made at run time must be remembered somewhere (docs/protocol.md §2a).
void check_state_directory(const yaml::Reader& node, const Config& config);

/// A ring whose ranks the switch itself keeps silent must not be taken for a dead one.
void check_lease(const yaml::Reader& node, const ring::RingSpec& ring);
void check_history(const yaml::Reader& node, const ring::RingSpec& ring);

/// Reads an address of the control service into where it belongs.
void add_address(const yaml::Reader& node, const Text& form, ControlConfig& control);

} // namespace weir::config
