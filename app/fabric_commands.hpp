// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/client.hpp"

#include <string>
#include <vector>

namespace weir::app {

/// `weirctl fabric …`: what is asked or ordered of a fabric's manager. `server` is "unix:/PATH" or
/// "HOST:PORT". Returns what is to be printed. Throws UsageError, and rpc::CallError.
std::string fabric_command(const std::string& server, const rpc::ClientTls& tls,
                           const std::vector<std::string>& words);

} // namespace weir::app
