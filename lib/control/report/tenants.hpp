// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "report/report.hpp"

namespace weir::report {

/// What each tenant may have, what it has, and what its rings' frames wait for.
Report show_tenants(control::Switch& weir);

} // namespace weir::report
