// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "option_table.hpp"

#include <string>
#include <vector>

namespace weir::app {

/// The options about a rank's group and its device. A DPDK device goes to `devargs`, every other to
/// `group`. Both must outlive the options.
std::vector<Option> group_option_rows(host::GroupOptions& group, std::string& devargs);

} // namespace weir::app
