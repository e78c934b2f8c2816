// SPDX-License-Identifier: BSD-3-Clause
#include "fabric_commands.hpp"

namespace weir::app {

std::string fabric_command(const std::vector<std::string>&, const rpc::ClientTls&,
                           const std::vector<std::string>&) {
  throw rpc::CallError("this build knows no fabric managers; allowed: one with -Dmanager=enabled");
}

} // namespace weir::app
