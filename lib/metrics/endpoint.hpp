// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace weir::metrics {

/// what() has the address and the cause.
class EndpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Answers GET /metrics at an address while it lives, in threads of its own. Whoever can connect
/// may read; nobody can change anything.
class Endpoint {
 public:
  /// `listen` is "ADDRESS:PORT", IPv6 in brackets. Throws EndpointError when it cannot listen
  /// there, or when this build has no metrics.
  Endpoint(control::Switch& weir, const std::string& listen);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::metrics
