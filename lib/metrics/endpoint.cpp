// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/endpoint.hpp"

#include "metrics/collector.hpp"

#include <fmt/format.h>

#include <prometheus/exposer.h>
#include <vector>

namespace weir::metrics {
namespace {

/// A client that says nothing holds one thread for so long.
constexpr const char* kRequestTimeoutMs = "5000";
constexpr const char* kThreads = "2";

} // namespace

struct Endpoint::Parts {
  Parts(control::Switch& weir, const std::string& listen)
      : collector(std::make_shared<Collector>(weir)),
        exposer(std::vector<std::string>{"listening_ports", listen, "num_threads", kThreads,
                                         "request_timeout_ms", kRequestTimeoutMs}) {
    exposer.RegisterCollectable(collector);
  }

  std::shared_ptr<Collector> collector; // outlives the threads that ask it
  prometheus::Exposer exposer;
};

bool has_endpoint() {
  return true;
}

Endpoint::Endpoint(control::Switch& weir, const std::string& listen) {
  try {
    parts_ = std::make_unique<Parts>(weir, listen);
  } catch (const std::exception&) { // its text has no cause
    throw EndpointError(fmt::format("metrics.listen: cannot listen at {} (is the port taken, or "
                                    "the address no address of this machine?)",
                                    listen));
  }
}

Endpoint::~Endpoint() = default;

} // namespace weir::metrics
