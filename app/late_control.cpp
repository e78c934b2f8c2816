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

std::string socket_folder() {
  const char* folders = std::getenv("RUNTIME_DIRECTORY");
  if (folders == nullptr || *folders == '\0') {
    return rte_eal_get_runtime_dir();
  }
  const std::string_view list(folders);
  return std::string(list.substr(0, list.find(':'))); // systemd.exec(5), RuntimeDirectory=
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
