// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/switch_rings/module.h"

namespace weir::host {

/// The module libweir_switch.so, which is loaded by the first call and stays. $WEIR_SWITCH_MODULE
/// is its file; without it, it is looked for where `meson install` puts it, beside the library, and
/// in the library's build tree.
/// Throws std::runtime_error, which names the package.
const weir_switch_module& switch_module();

} // namespace weir::host
