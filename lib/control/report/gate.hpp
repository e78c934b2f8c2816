// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "report/report.hpp"

namespace weir::report {

/// The processes of the control service's gate that did not end by themselves.
Report show_gate(control::Switch& weir);

} // namespace weir::report
