// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/endpoint.hpp"

#include "metrics/collector.hpp"
#include "net/http_responder.hpp"

namespace weir::metrics {
namespace {

constexpr const char* kPath = "/metrics";
constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

} // namespace

struct Endpoint::Parts {
  Parts(control::Switch& weir, const std::string& listen)
      : collector(weir), responder(net::ListeningSocket::at_address(listen),
                                   {kPath, kContentType, [this] { return collector.text(); }}) {}

  Collector collector;
  net::HttpResponder responder; // its thread asks the collector
};

bool has_endpoint() {
  return true;
}

Endpoint::Endpoint(control::Switch& weir, const std::string& listen) {
  try {
    parts_ = std::make_unique<Parts>(weir, listen);
  } catch (const net::ListenError& error) {
    throw EndpointError(std::string("metrics.listen: ") + error.what());
  }
}

Endpoint::~Endpoint() = default;

} // namespace weir::metrics
