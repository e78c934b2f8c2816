// SPDX-License-Identifier: BSD-3-Clause
#include "control/switch.hpp"

#include "control/port_rules.hpp"

#include <fmt/format.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace weir::control {

using lcore::Quiesce;

namespace {

int run_lcore(void* lcore) {
  static_cast<lcore::Lcore*>(lcore)->run();
  return 0;
}

std::optional<RingJournal> journal_of(const config::Config& config) {
  return config.state_directory.empty() ? std::nullopt
                                        : std::optional<RingJournal>(config.state_directory);
}

std::optional<OperatorStore> store_of(const config::Config& config) {
  return config.state_directory.empty() ? std::nullopt
                                        : std::optional<OperatorStore>(config.state_directory);
}

std::vector<ring::RingSpec> remembered_by(const std::optional<RingJournal>& journal) {
  return journal ? journal->remembered() : std::vector<ring::RingSpec>();
}

} // namespace

Switch::Switch(const config::Config& config) : Switch(config, journal_of(config)) {}

Switch::Switch(const config::Config& config, std::optional<RingJournal> journal)
    : chassis_(config, remembered_by(journal)), port_counts_(chassis_.lcores, config.ports.size()),
      captures_(chassis_), traces_(chassis_.lcores), operators_(chassis_, store_of(config)),
      rings_(chassis_, captures_, std::move(journal)), regions_(chassis_),
      ports_(chassis_, rings_, port_counts_), reload_({chassis_, captures_, rings_, ports_}),
      loops_(chassis_), inspector_(chassis_, rings_, port_counts_, loops_) {}

Switch::~Switch() {
  try {
    if (is_running_) {
      stop();
    }
  } catch (const lcore::LcoreError& error) { // the lcore still uses what would be freed
    fmt::print(stderr, "weir: {}\n", error.what());
    std::abort();
  }
}

void Switch::start() {
  const auto ports = chassis_.ports.share();
  for (const auto& port : *ports) {
    port->start(chassis_.pool);
  }
  ports_.withhold_unstarted();
  install_rules(*ports, *chassis_.rings.share(), *chassis_.placement.share());
  for (std::size_t i = 0; i < chassis_.lcores.size(); ++i) {
    rte_eal_remote_launch(run_lcore, &chassis_.lcores[i], static_cast<unsigned>(i + 1));
  }
  for (const auto& lcore : chassis_.lcores) {
    lcore->wait_until_running();
  }
  is_running_ = true;
}

void Switch::stop() {
  {
    const Quiesce quiesced(chassis_.lcores);
    for (const auto& lcore : chassis_.lcores) {
      lcore->stop_receiving();
    }
  }
  std::this_thread::sleep_for(kDrainTime);
  for (const auto& lcore : chassis_.lcores) {
    lcore->stop();
  }
  for (const auto& lcore : chassis_.lcores) {
    lcore->wait_until_stopped();
  }
  rte_eal_mp_wait_lcore();
  is_running_ = false;
  discard_all();
  captures_.stop(); // what was discarded is in it
  for (const auto& port : *chassis_.ports.share()) {
    if (port) {
      port->stop();
    }
  }
}

/// A capture that ends meanwhile waits for each step: here this thread does what lcores do.
void Switch::discard_all() {
  rings_.discard_all();
  regions_.discard_all();
  const Quiesce quiesced(chassis_.lcores);
  for (const auto& lcore : chassis_.lcores) {
    lcore->discard_queued();
  }
}

void Switch::close_ports() {
  for (const auto& port : *chassis_.ports.share()) {
    if (port) {
      port->close();
    }
  }
}

} // namespace weir::control
