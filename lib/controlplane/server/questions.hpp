// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a server is asked before a switch starts there.

#include "config/config.hpp"
#include "server/facts.hpp"
#include "server/finding.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::server {

/// Everything that a verdict may rest on.
struct Case {
  const config::Config& config; // with its lcores
  const Facts& facts;
  std::uint64_t needed_mib = 0; // that EAL has to have
};

/// A row: to add a question is to add one, and its function.
struct Question {
  std::string_view name;                    // as people and programs read it
  std::vector<Finding> (*ask)(const Case&); // none: the configuration has nothing to ask about
};

/// In the order in which a server is set up.
std::span<const Question> questions();

} // namespace weir::server
