// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/caller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <grpc/grpc_security_constants.h>

namespace weir::rpc {

Peer peer_of(const grpc::CallbackServerContext& context) {
  Peer peer{.address = context.peer(), .common_names = {}};
  if (const auto known = context.auth_context(); known != nullptr) {
    for (const grpc::string_ref& name : known->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
      peer.common_names.emplace_back(name.begin(), name.end());
    }
  }
  return peer;
}

Caller caller_of(const Peer& peer, const config::Config& config) {
  if (peer.address.starts_with("unix:")) {
    return {};
  }
  if (peer.common_names.size() != 1) {
    throw NotAllowed(
        fmt::format("certificate: found {} common names; allowed: one", peer.common_names.size()));
  }
  const std::string& name = peer.common_names.front();
  const auto& operators = config.control.operators;
  const bool all_are_operators = !operators && config.tenants.empty();
  if (all_are_operators || (operators && std::ranges::count(*operators, name) != 0)) {
    return {};
  }
  if (std::ranges::count(config.tenants, name, &config::TenantConfig::name) != 0) {
    return {name};
  }
  throw NotAllowed(fmt::format("certificate: found the common name '{}'; allowed: a name under "
                               "control.operators or under tenants",
                               name));
}

} // namespace weir::rpc
