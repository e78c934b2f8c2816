// SPDX-License-Identifier: BSD-3-Clause
#include "gate/peer.hpp"

#include "gate/metadata.hpp"

namespace weir::gate {
namespace {

std::string text_of(const grpc::string_ref& bytes) {
  return {bytes.begin(), bytes.end()};
}

} // namespace

/// The gate has read the certificate. A call without its word has come by a Unix socket.
Peer peer_of(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto by_network = metadata.find(kByNetwork);
  if (by_network == metadata.end()) {
    return {.is_local = true, .address = {}, .common_names = {}};
  }
  Peer peer{.is_local = false, .address = text_of(by_network->second), .common_names = {}};
  const auto [first, last] = metadata.equal_range(kCommonName);
  for (auto entry = first; entry != last; ++entry) {
    peer.common_names.push_back(text_of(entry->second));
  }
  return peer;
}

} // namespace weir::gate
