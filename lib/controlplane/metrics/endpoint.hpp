// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace weir::metrics {

/// It cannot listen at its address. what() has it.
class EndpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// False for a build without prometheus-cpp.
bool has_endpoint();

/// Answers GET and HEAD of /metrics at an address while it lives, in a thread of its own. Whoever
/// can connect may read; nobody can change anything.
class Endpoint {
 public:
  /// `listen` is "ADDRESS:PORT", IPv6 in brackets. The switch forwards already. Throws
  /// EndpointError.
  Endpoint(control::Switch& weir, const std::string& listen);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::metrics
