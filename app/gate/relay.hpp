// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/orders.hpp"
#include "gate/tls_files.hpp"

#include <string>

namespace weir::gate {

struct Client {
  int connection;
  std::string address;
};

/// Serves a client's connection with TLS, forwards each of its calls to the service and the answers
/// back, and ends the process when either side has gone. It knows no message.
[[noreturn]] void relay(const Client& client, int to_service, const Orders& orders,
                        const PemTexts& texts);

} // namespace weir::gate
