// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/membership.hpp"

#include <memory>

namespace weir::host {

/// Meets the other ranks, connects to the neighbours and says hello to the switch. Reduces round
/// the ring if no switch aggregates and the options allow it. Throws Error.
Membership form_group(const GroupOptions& options, std::unique_ptr<Transport> transport);

} // namespace weir::host
