// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace weir::config {

/// The value of `name` in DPDK devargs, "driver0,name=value,…". Empty when the name is not there.
std::string_view argument_of(std::string_view devargs, std::string_view name);

} // namespace weir::config
