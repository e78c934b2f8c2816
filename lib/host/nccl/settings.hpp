// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/weir.h"

#include <string>

namespace weir::nccl {

/// The value of an environment variable; "" if it is not there. /etc/nccl.conf is in the
/// environment before NCCL loads a plug-in.
std::string variable(const char* name);

/// The device's context, for the process's life, made by the first call. It opens no device yet.
/// Throws Failure if a variable is wrong.
weir_context* context_of(const weir_device& device);

/// For all groups, without rank, world and how they meet. Throws Failure if a variable is wrong.
weir_group_options group_settings();

} // namespace weir::nccl
