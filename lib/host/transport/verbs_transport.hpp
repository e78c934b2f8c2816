// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace weir::host {

struct VerbsOptions {
  std::string device; // such as mlx5_0 or rxe0; its port 1
  std::uint8_t gid_index = 1;
};

/// The transport over a RoCE NIC's queue pairs. Throws Error (transport_failure) with the
/// device and the cause; always, in a build without libibverbs.
std::unique_ptr<Transport> open_verbs(const TransportPlan& plan, const VerbsOptions& options);

} // namespace weir::host
