// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/client.hpp"

#include <string>
#include <vector>

namespace weir::app {

/// `weirctl fabric …`: what is asked or ordered of that one of a fabric's managers that leads. Each
/// of `managers` is "unix:/PATH" or "HOST:PORT". Returns what is to be printed. Throws UsageError,
/// and rpc::CallError.
std::string fabric_command(const std::vector<std::string>& managers, const rpc::ClientTls& tls,
                           const std::vector<std::string>& words);

} // namespace weir::app
