// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/tenant_backend.hpp"

#include "rpc/caller.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace weir::rpc {
namespace {

/// "reset ring 7": an order to one ring.
bool is_order_to_a_ring(const command::Words& words) {
  constexpr std::array<std::string_view, 3> verbs{"drain", "reset", "withdraw"};
  return words.size() >= 3 && words[1] == "ring" && std::ranges::count(verbs, words[0]) != 0;
}

} // namespace

command::Answer TenantBackend::execute(const command::Words& words) {
  if (is_order_to_a_ring(words)) {
    if (const auto id = text::parsed<std::uint32_t>(words[2])) {
      expect_own(*id);
    }
    return all_.execute(words);
  }
  if (words.front() != "show" && words.front() != "help") {
    throw NotAllowed(
        fmt::format("'{}': found tenant {}; allowed: an operator. A tenant may ask "
                    "questions, add rings of its own, and reset, drain and withdraw these",
                    fmt::join(words, " "), tenant_));
  }
  return all_.execute(words);
}

ring::RingSpec TenantBackend::own(const ring::RingSpec& ring) const {
  if (!ring.tenant.empty() && ring.tenant != tenant_) {
    throw NotAllowed(
        fmt::format("ring.tenant: found {}; allowed: {}, or none", ring.tenant, tenant_));
  }
  ring::RingSpec own = ring;
  own.tenant = tenant_;
  return own;
}

void TenantBackend::add_ring(const ring::RingSpec& ring) {
  all_.add_ring(own(ring));
}

ring::RingBirth TenantBackend::hold_ring(ring::RingSpec& ring) {
  ring = own(ring);
  return all_.hold_ring(ring);
}

void TenantBackend::drain_ring(std::uint32_t id, std::chrono::seconds quiet) {
  expect_own(id);
  all_.drain_ring(id, quiet);
}

void TenantBackend::remove_ring(std::uint32_t id) {
  expect_own(id);
  all_.remove_ring(id);
}

/// A ring that is not there is left to the switch to refuse.
void TenantBackend::expect_own(std::uint32_t id) {
  const std::vector<ListedRing> rings = all_.rings();
  const auto found = std::ranges::find(rings, id, [](const auto& ring) { return ring.spec.id; });
  if (found != rings.end() && found->spec.tenant != tenant_) {
    throw NotAllowed(
        fmt::format("ring: found {}, which is not of tenant {}; allowed: its own", id, tenant_));
  }
}

} // namespace weir::rpc
