// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"
#include "host/transport/verbs_nic.hpp"

#include <cstdint>
#include <memory>

namespace weir::host {

/// As Nic::open_transport.
std::unique_ptr<Transport> open_verbs(const TransportPlan& plan, std::shared_ptr<VerbsNic> nic,
                                      std::uint8_t gid_index);

} // namespace weir::host
