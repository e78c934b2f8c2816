// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Lists of maps: how they are read, and what comes of entries that come, go or change.

#include "config/config.hpp"
#include "config/difference.hpp"
#include "yaml/reader.hpp"

#include <string>
#include <vector>

namespace weir::config {

void read_ports(const yaml::Reader& node, Config& config);
void read_lcores(const yaml::Reader& node, Config& config);
void read_stations(const yaml::Reader& node, Config& config);
void read_tenants(const yaml::Reader& node, Config& config);
void read_operators(const yaml::Reader& node, Config& config);

void compare_ports(const Config& from, const Config& to, std::vector<Change>& changes);
void compare_lcores(const Config& from, const Config& to, std::vector<Change>& changes);
void compare_stations(const Config& from, const Config& to, std::vector<Change>& changes);
void compare_tenants(const Config& from, const Config& to, std::vector<Change>& changes);
void compare_operators(const Config& from, const Config& to, std::vector<Change>& changes);
void compare_rings(const Config& from, const Config& to, std::vector<Change>& changes);

/// Where the control service listens.
std::string addresses_of(const ControlConfig& control);

} // namespace weir::config
