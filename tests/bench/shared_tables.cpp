// SPDX-License-Identifier: BSD-3-Clause
#include "shared_tables.hpp"

#include <memory>
#include <numeric>

namespace weir::bench {
namespace {

constexpr std::uint32_t kStations = 65536;
constexpr std::uint64_t kAgingMs = 300'000;
constexpr std::uint16_t kMtu = 9000;

/// A limit that every frame of the workload fits, for every port.
std::vector<std::uint32_t> frame_limits(const Workload& workload) {
  return std::vector<std::uint32_t>(workload.ports(), stage::max_frame_bytes(kMtu));
}

/// The workload's, for everybody. It outlives the switch.
program::LoadedOperators operators_of(const Workload& workload) {
  program::LoadedOperators all;
  if (const program::Operator* const one = workload.shape().last_folds_by) {
    all.add({std::shared_ptr<const program::Operator>(), one}, {});
  }
  return all;
}

} // namespace

SharedTables::SharedTables(const Workload& workload, std::uint32_t queue_room)
    : queue_room(queue_room), rings(ring::RingSet(workload.rings())), stations(kStations, kAgingMs),
      bridge(stations, workload.ports()),
      operators(operators_of(workload)), shared{rings, bridge, frame_limits(workload),
                                                conn::magic_rule_settings(
                                                    worker_settings().classifier)} {}

stage::Worker::Settings SharedTables::worker_settings() {
  stage::Worker::Settings settings;
  settings.classifier.foreign_sessions = &foreign_sessions;
  settings.classifier.claims = &claims;
  settings.classifier.operators = &operators;
  settings.memory = &memory;
  settings.level = op::best_cpu_level();
  settings.queue_room = queue_room;
  return settings;
}

stage::Worker::Settings SharedTables::team_settings() {
  stage::Worker::Settings settings = worker_settings();
  settings.classifier.owners = &owners;
  settings.classifier.ports_of_members = &ports_of_members;
  shared.owners = &owners;
  return settings;
}

std::vector<std::uint16_t> all_rings(const Workload& workload) {
  std::vector<std::uint16_t> rings(workload.shape().rings);
  std::iota(rings.begin(), rings.end(), std::uint16_t{0});
  return rings;
}

} // namespace weir::bench
