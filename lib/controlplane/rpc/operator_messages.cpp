// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/operator_messages.hpp"

#include "rpc/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::rpc {

program::Digest digest_of(const std::string& text) {
  if (const auto digest = program::digest_from(text)) {
    return *digest;
  }
  throw WrongMessage(fmt::format("digest: found {}; allowed: 64 hexadecimal digits", text));
}

/// Of an operator for all no tenant is told.
void write(const control::OperatorSeen& seen, v1::Operator& message) {
  message.set_digest(program::to_string(seen.digest));
  message.set_name(seen.name);
  message.set_price(seen.price);
  const bool is_for_all = std::ranges::any_of(seen.owners, [](const program::OperatorOwner& owner) {
    return owner.tenant.empty() && !owner.ring;
  });
  for (const program::OperatorOwner& owner : seen.owners) {
    if (!is_for_all && !owner.tenant.empty()) {
      message.add_tenants(owner.tenant);
    }
  }
  message.mutable_rings()->Assign(seen.rings.begin(), seen.rings.end());
  message.set_packets(seen.packets);
  message.set_flagged(seen.flagged);
  message.set_disagrees(seen.disagrees);
}

} // namespace weir::rpc
