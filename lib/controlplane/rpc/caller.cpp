// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/caller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace weir::rpc {

Caller caller_of(const gate::Peer& peer, const config::Config& config) {
  if (peer.is_local) {
    return {};
  }
  if (peer.common_names.size() != 1) {
    throw NotAllowed(
        fmt::format("certificate: found {} common names; allowed: one", peer.common_names.size()));
  }
  const std::string& name = peer.common_names.front();
  if (std::ranges::count(config.control.managers, name) != 0) {
    return {CallerKind::manager, name};
  }
  const auto& operators = config.control.operators;
  const bool all_are_operators = !operators && config.tenants.empty();
  if (all_are_operators || (operators && std::ranges::count(*operators, name) != 0)) {
    return {CallerKind::remote_operator, name};
  }
  if (std::ranges::count(config.tenants, name, &config::TenantConfig::name) != 0) {
    return {CallerKind::tenant, name};
  }
  throw NotAllowed(fmt::format("certificate: found the common name '{}'; allowed: a name under "
                               "control.operators or under tenants",
                               name));
}

void Caller::check_may_call() const {
  if (kind == CallerKind::manager) {
    throw NotAllowed(fmt::format("certificate: found '{}', a manager of the fabric; allowed: the "
                                 "calls ClaimFabric, ApplyRings, RemoveRings and WatchSwitch",
                                 name));
  }
}

void Caller::check_may_manage() const {
  if (kind == CallerKind::tenant) {
    throw NotAllowed(fmt::format("certificate: found '{}', a tenant's name; allowed: a name under "
                                 "control.managers",
                                 name));
  }
}

std::optional<std::size_t> names_of(CallerKind kind, const config::Config& config) {
  switch (kind) {
  case CallerKind::local_operator:
    return 1;
  case CallerKind::tenant:
    return config.tenants.size();
  case CallerKind::manager:
    return config.control.managers.size();
  case CallerKind::remote_operator:
    break;
  }
  const auto& operators = config.control.operators;
  return operators ? std::optional(operators->size()) : std::nullopt;
}

} // namespace weir::rpc
