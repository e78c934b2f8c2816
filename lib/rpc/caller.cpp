// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/caller.hpp"

#include "rpc/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <grpc/grpc_security_constants.h>

namespace weir::rpc {

Peer peer_of(const grpc::CallbackServerContext& context) {
  Peer peer{.address = context.peer(), .common_names = {}};
  if (const auto known = context.auth_context(); known != nullptr) {
    for (const grpc::string_ref& pem :
         known->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      peer.common_names = common_names_in({pem.begin(), pem.end()});
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
    return {CallerKind::remote_operator, name};
  }
  if (std::ranges::count(config.tenants, name, &config::TenantConfig::name) != 0) {
    return {CallerKind::tenant, name};
  }
  throw NotAllowed(fmt::format("certificate: found the common name '{}'; allowed: a name under "
                               "control.operators or under tenants",
                               name));
}

std::optional<std::size_t> names_of(CallerKind kind, const config::Config& config) {
  switch (kind) {
  case CallerKind::local_operator:
    return 1;
  case CallerKind::tenant:
    return config.tenants.size();
  case CallerKind::remote_operator:
    break;
  }
  const auto& operators = config.control.operators;
  return operators ? std::optional(operators->size()) : std::nullopt;
}

} // namespace weir::rpc
