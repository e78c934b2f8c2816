// SPDX-License-Identifier: BSD-3-Clause
#include "build_parts.hpp"

#include "config/config_error.hpp"
#include "metrics/endpoint.hpp"
#include "rpc/endpoint.hpp"

#include <fmt/format.h>

namespace weir::app {
namespace {

[[noreturn]] void refuse_key(std::string_view file, std::string_view key, std::string_view library,
                             std::string_view option) {
  throw config::ConfigError(
      fmt::format("{}: {}: found in the configuration, but this weir was built without {}; "
                  "allowed: a build with {}=enabled",
                  file, key, library, option));
}

} // namespace

void check_build(const config::Config& config, std::string_view file) {
  if (!config.metrics.listen.empty() && !metrics::has_endpoint()) {
    refuse_key(file, "metrics", "prometheus-cpp", "-Dmetrics");
  }
  if (!config.control.is_default && !rpc::has_endpoint()) {
    refuse_key(file, "control", "gRPC", "-Dcontrol");
  }
}

} // namespace weir::app
