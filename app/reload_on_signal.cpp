// SPDX-License-Identifier: BSD-3-Clause
#include "reload_on_signal.hpp"

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

std::string in_lines(const std::vector<config::Change>& changes, const std::string& file) {
  std::string lines;
  for (const config::Change& change : changes) {
    lines += fmt::format("weir: reload: {}: {} -> {}: {}\n", change.place, change.from, change.to,
                         text_of(change.effect));
  }
  return changes.empty() ? fmt::format("weir: reload: {} says nothing new\n", file) : lines;
}

std::string reloaded(control::Switch& weir) {
  try {
    return in_lines(weir.reload(), weir.config().file);
  } catch (const control::ReloadUnfinished& error) {
    return fmt::format("weir: reload: {}\n", error.what());
  } catch (const std::exception& error) {
    return fmt::format("weir: reload: nothing has changed: {}\n", error.what());
  }
}

} // namespace

void catch_reload_signal() {
  struct sigaction action {};

  action.sa_handler = ask;
  action.sa_flags = SA_RESTART; // DPDK's telemetry thread ends when its accept() is interrupted
  sigaction(SIGHUP, &action, nullptr);
}

/// A signal that comes while the file is read asks for one reload more.
std::string reload_if_asked(control::Switch& weir, ServiceManager& service) {
  if (!is_asked.exchange(false)) {
    return {};
  }
  service.tell_reloading();
  std::string said = reloaded(weir);
  service.tell_ready();
  return said;
}

} // namespace weir::app
