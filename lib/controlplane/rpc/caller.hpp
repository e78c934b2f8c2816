// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/principal.hpp"
#include "gate/peer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rpc {

using control::NotAllowed;

/// What the service has is divided among these first, so that none takes what another one needs.
enum class CallerKind : std::uint8_t { local_operator, remote_operator, tenant, manager };
inline constexpr std::size_t kCallerKinds = 4;

/// An operator, who may do all, a tenant, or a manager of the fabric.
struct Caller {
  CallerKind kind = CallerKind::local_operator;
  std::string name; // his certificate's, or his tenant's; empty by a Unix socket

  bool is_operator() const {
    return kind == CallerKind::local_operator || kind == CallerKind::remote_operator;
  }

  /// As whom it asks and orders.
  control::Principal principal() const { return {is_operator() ? "" : name}; }

  /// Throws NotAllowed for a manager: its calls are others.
  void check_may_call() const;
  /// Throws NotAllowed for a tenant.
  void check_may_manage() const;
};

/// Who calls by a Unix socket is an operator: the switch's door has asked the kernel for his user.
/// Over the network the certificate's common name decides (docs/control.md). Throws NotAllowed for
/// a name that the configuration does not have.
Caller caller_of(const gate::Peer& peer, const config::Config& config);

/// How many names the callers of a kind may have; none: as many as the clients' authority signs.
std::optional<std::size_t> names_of(CallerKind kind, const config::Config& config);

} // namespace weir::rpc
