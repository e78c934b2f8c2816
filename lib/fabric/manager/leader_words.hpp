// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a manager that leads writes of itself for others, and what they say of it.

#include "manager/config.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <string>

namespace weir::manager {

/// Its name, and where it listens on a line of its own.
inline std::string leader_value(const Config& config) {
  return fmt::format("{}\n{}", config.name, fmt::join(config.listen, ", "));
}

/// "mgr1", which is for everybody. Empty: nobody leads.
inline std::string leader_name(const store::Leadership& lead) {
  return lead.leader.substr(0, lead.leader.find('\n'));
}

/// "mgr1 at 192.0.2.10:9470 leads", for those who may call it.
inline std::string who_leads(const store::Leadership& lead) {
  const std::size_t end = lead.leader.find('\n');
  return lead.leader.empty()
             ? "none leads that it knows of"
             : fmt::format("{} at {} leads", leader_name(lead),
                           end == std::string::npos ? "" : lead.leader.substr(end + 1));
}

/// The same and what the store complains of, for this manager's log.
inline std::string who_leads_and_why(const store::Leadership& lead) {
  return lead.trouble.empty()
             ? who_leads(lead)
             : fmt::format("{}; the store says: {}", who_leads(lead), lead.trouble);
}

} // namespace weir::manager
