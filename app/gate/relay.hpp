// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/tls_files.hpp"

namespace weir::gate {

/// Serves a client's connection with TLS, forwards each of its calls to the switch and the answers
/// back, and ends the process when either side has gone. It knows no message.
[[noreturn]] void relay(int client, int to_switch, const rpc::PemTexts& texts);

} // namespace weir::gate
