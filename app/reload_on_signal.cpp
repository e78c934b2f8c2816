// SPDX-License-Identifier: BSD-3-Clause
#include "reload_on_signal.hpp"

#include "control/region_admission.hpp"

#include <fmt/format.h>

#include <atomic>
#include <signal.h>
#include <vector>

namespace weir::app {
namespace {

std::atomic<bool> is_asked{false};

void ask(int) {
  is_asked = true;
}

void tell(const std::vector<config::Change>& changes, const std::string& file,
          events::EventLog& log) {
  for (const config::Change& change : changes) {
    log.write({events::EventKind::reloaded,
               fmt::format("reload: {}: {} -> {}: {}", change.place, change.from, change.to,
                           text_of(change.effect)),
               {{"key", change.place}, {"effect", std::string(name_of(change.effect))}}});
  }
  if (changes.empty()) {
    log.write({events::EventKind::reloaded, fmt::format("reload: {} says nothing new", file), {}});
  }
}

/// Of what is allowed and hardly meant. Why a file is wrong has been said.
void warn(const std::string& file, events::EventLog& log) {
  try {
    for (const std::string& line : control::small_region_shares(config::load_config(file))) {
      log.write(
          {events::EventKind::reloaded, fmt::format("reload: {}", line), {{"key", "tenants"}}});
    }
  } catch (const config::ConfigError&) {
  }
}

void apply(control::Reload& reload, events::EventLog& log) {
  try {
    tell(reload.apply(), reload.file(), log);
  } catch (const control::ReloadUnfinished& error) {
    log.write({events::EventKind::reload_refused, fmt::format("reload: {}", error.what()), {}});
  } catch (const std::exception& error) {
    log.write({events::EventKind::reload_refused,
               fmt::format("reload: nothing has changed: {}", error.what()),
               {}});
  }
}

} // namespace

void catch_reload_signal() {
  struct sigaction action {};

  sigaction(SIGHUP, nullptr, &action);
  if (action.sa_handler == SIG_IGN) { // nohup(1)
    return;
  }
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART; // DPDK's telemetry thread ends when its accept() is interrupted
  sigaction(SIGHUP, &action, nullptr);
}

/// A signal that comes while the file is read asks for one reload more.
void reload_if_asked(control::Reload& reload, ServiceManager& service, events::EventLog& log) {
  if (!is_asked.exchange(false)) {
    return;
  }
  service.tell_reloading();
  apply(reload, log);
  warn(reload.file(), log);
  service.tell_ready();
}

} // namespace weir::app
