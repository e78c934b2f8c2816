// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace weir::gate {

/// Of this process: no capability, none to be gained by a program, no descriptor but `kept`, no
/// place before others when the machine is short of memory or time. Signals to the service's group
/// are for the service, which lets jobs end first: this process ends when the service has.
void give_up_rights(std::vector<int> kept);

/// So much memory for a connection's process; beyond that it ends. Not with a sanitizer, whose own
/// memory is more.
void bound_memory();

} // namespace weir::gate
