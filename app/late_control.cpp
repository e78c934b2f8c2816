// SPDX-License-Identifier: BSD-3-Clause
#include "late_control.hpp"

#include "rpc/switch_backend.hpp"

#include <rte_eal.h>

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

LateControl::Open opening(control::Switch& weir, config::ControlConfig where,
                          events::EventLog& log) {
  if (where.is_default && rpc::has_endpoint()) {
    where.local = {socket_folder() + "/control.sock"};
  }
  if (where.local.empty() && where.remote.empty()) {
    return nullptr;
  }
  return [backend = std::make_shared<rpc::SwitchBackend>(weir), where = std::move(where), &log] {
    return std::make_unique<rpc::Endpoint>(*backend, where, [&log](const std::string& sentence) {
      log.write({events::EventKind::gate, sentence, {}});
    });
  };
}

} // namespace

LateControl::LateControl(control::Switch& weir, config::ControlConfig where, events::EventLog& log)
    : LateEndpoint("a control service", opening(weir, std::move(where), log), log) {}

} // namespace weir::app
