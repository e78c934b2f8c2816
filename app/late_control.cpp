// SPDX-License-Identifier: BSD-3-Clause
#include "late_control.hpp"

#include <fmt/format.h>
#include <rte_eal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace weir::app {
namespace {

/// WEIR_RUNTIME_DIRECTORY is for a unit whose RUNTIME_DIRECTORY must not reach EAL.
std::string socket_folder() {
  for (const char* name : {"WEIR_RUNTIME_DIRECTORY", "RUNTIME_DIRECTORY"}) {
    if (const char* folders = std::getenv(name); folders != nullptr && *folders != '\0') {
      const std::string_view list(folders);
      return std::string(list.substr(0, list.find(':'))); // systemd.exec(5), RuntimeDirectory=
    }
  }
  return rte_eal_get_runtime_dir();
}

bool has_addresses(const config::ControlConfig& where) {
  return !where.local.empty() || !where.remote.empty();
}

} // namespace

LateControl::LateControl(control::Switch& weir, config::ControlConfig where)
    : backend_(weir), where_(std::move(where)) {
  if (where_.is_default && rpc::has_endpoint()) {
    where_.local = {socket_folder() + "/control.sock"};
  }
  try_to_listen();
}

void LateControl::try_to_listen() {
  const auto now = std::chrono::steady_clock::now();
  if (!has_addresses(where_) || endpoint_ || now < due_) {
    return;
  }
  due_ = now + kPause;
  try {
    endpoint_.emplace(backend_, where_);
  } catch (const rpc::EndpointError& error) {
    if (!std::exchange(has_complained_, true)) {
      fmt::print(stderr,
                 "weir: {}; the switch forwards without a control service, and tries every {} s\n",
                 error.what(), kPause.count());
    }
  }
}

void LateControl::end() {
  where_ = {};
  endpoint_.reset();
}

} // namespace weir::app
