// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace weir::app {

/// "weir: what", a line on standard error. `what` may have come from anybody: it is made printable.
/// Does not throw when nobody reads it.
void complain(std::string_view program, std::string_view what);

} // namespace weir::app
