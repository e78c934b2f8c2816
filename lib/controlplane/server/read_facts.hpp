// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "server/facts.hpp"
#include "server/pause.hpp"
#include "server/tree.hpp"

namespace weir::server {

/// Looks at what concerns this configuration. Changes nothing, and opens no device.
Facts read_facts(const Tree& tree, const config::Config& config,
                 const PauseOf& pause_of = pause_of_interface);

} // namespace weir::server
