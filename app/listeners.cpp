// SPDX-License-Identifier: BSD-3-Clause
#include "listeners.hpp"

#include "rpc/switch_backend.hpp"

#include <rte_eal.h>

#include <cstdlib>
#include <memory>
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

events::EventKind kind_of(gate::Incident incident) {
  switch (incident) {
  case gate::Incident::connection_killed:
    return events::EventKind::gate_killed;
  case gate::Incident::acceptor_ended:
    return events::EventKind::gate_ended;
  case gate::Incident::refused:
    break;
  }
  return events::EventKind::gate;
}

/// The log leaves lines out when there are many; the counter has them all.
void note(gate::Incident incident, control::GateLog& log) {
  if (incident != gate::Incident::refused) {
    log.note(incident == gate::Incident::connection_killed ? control::GateProcess::connection
                                                           : control::GateProcess::acceptor);
  }
}

ControlListener::Open opening(control::Switch& weir, config::ControlConfig where,
                              events::EventLog& log) {
  if (where.is_default && rpc::has_endpoint()) {
    where.local = {socket_folder() + "/control.sock"};
  }
  if (where.local.empty() && where.remote.empty()) {
    return nullptr;
  }
  return [backend = std::make_shared<rpc::SwitchBackend>(weir), where = std::move(where), &weir,
          &log] {
    return std::make_unique<rpc::Endpoint>(
        *backend, where, [&weir, &log](gate::Incident incident, const std::string& sentence) {
          note(incident, weir.gate_log());
          log.write({kind_of(incident), sentence, {}});
        });
  };
}

} // namespace

ControlListener control_listener(control::Switch& weir, config::ControlConfig where,
                                 events::EventLog& log) {
  return {"a control service", opening(weir, std::move(where), log), log};
}

MetricsListener metrics_listener(control::Switch& weir, const std::string& listen,
                                 events::EventLog& log) {
  MetricsListener::Open open;
  if (!listen.empty()) {
    open = [&weir, listen] { return std::make_unique<metrics::Endpoint>(weir, listen); };
  }
  return {"metrics", std::move(open), log};
}

} // namespace weir::app
