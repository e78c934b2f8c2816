// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/variables/variables.hpp"
#include "weir/weir.h"

#include <string>
#include <string_view>

namespace weir::nccl {

/// The value of an environment variable; "" if it is not there. /etc/nccl.conf is in the
/// environment before NCCL loads a plug-in.
std::string environment(const char* name);

/// The row of one of ours; docs/nccl.md has them all.
consteval const variables::Variable& variable(std::string_view name) {
  return variables::variable_of(variables::kNccl, name);
}

std::string value_of(const variables::Variable& variable);

/// The device's context, for the process's life, made by the first call. It opens no device yet.
/// Throws Failure if a variable is wrong.
weir_context* context_of(const weir_device& device);

/// For all groups, without rank, world and how they meet. Throws Failure if a variable is wrong.
weir_group_options group_settings();

} // namespace weir::nccl
