// SPDX-License-Identifier: BSD-3-Clause
#include "control/reload_plan.hpp"

#include "control/ring_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir::control {

using config::Change;
using config::Config;
using config::Effect;

namespace {

/// The configuration with one of its rings, or one that it lacks, alone.
Config with_only(Config config, const ring::RingSpec& ring) {
  config.rings = {ring};
  return config;
}

const ring::RingSpec& ring_of(const std::vector<ring::RingSpec>& rings, std::uint32_t id) {
  return *std::ranges::find(rings, id, &ring::RingSpec::id);
}

/// For a ring that the file has and that was made while the switch ran. Appends what keeping it
/// changes.
void keep(const Change& made, const Config& before, const Config& after,
          std::vector<Change>& changes) {
  changes.push_back(made);
  changes.back().effect = Effect::ring_kept;
  for (Change& change : config::difference(before, after)) {
    if (change.effect == Effect::ring_made_anew) {
      throw RingRefused(fmt::format(
          "ring {}: a ring with this id was made while the switch runs, and the file has another "
          "one ({}: found {}, running: {}); allowed: withdraw ring {}, or another id in the file",
          *made.ring, change.place, change.to, change.from, *made.ring));
    }
    if (change.ring) {
      changes.push_back(std::move(change));
    }
  }
}

/// Tells rings that are made from those that are there already.
std::vector<Change> with_rings_kept(std::vector<Change> changes, const Config& in_force,
                                    const Config& wanted, const ring::RingSet& present) {
  std::vector<Change> all;
  for (Change& change : changes) {
    const auto index =
        change.effect == Effect::ring_made ? present.ring_with_id(*change.ring) : std::nullopt;
    if (index) {
      keep(change, with_only(in_force, present.rings()[*index].spec()),
           with_only(wanted, ring_of(wanted.rings, *change.ring)), all);
    } else {
      all.push_back(std::move(change));
    }
  }
  return all;
}

/// What comes of a ring altogether: the gravest of its changes.
std::map<std::uint32_t, Effect> effects_on_rings(const std::vector<Change>& changes) {
  std::map<std::uint32_t, Effect> effects;
  for (const Change& change : changes) {
    if (change.ring) {
      Effect& effect = effects.try_emplace(*change.ring, change.effect).first->second;
      effect = std::max(effect, change.effect);
    }
  }
  return effects;
}

} // namespace

bool ReloadPlan::changes_in_place() const {
  return !changed.empty() || std::ranges::any_of(changes, [](const Change& change) {
    return change.effect == Effect::in_place && !change.ring;
  });
}

std::vector<ring::RingSpec> ReloadPlan::staying(const ring::RingSet& present) const {
  const auto find = [](const std::vector<ring::RingSpec>& rings, std::uint32_t id) {
    return std::ranges::find(rings, id, &ring::RingSpec::id);
  };
  std::vector<ring::RingSpec> rings;
  for (const std::uint16_t index : present.present()) {
    const ring::RingSpec& ring = present.rings()[index].spec();
    if (find(withdrawn, ring.id) == withdrawn.end()) {
      const auto next = find(changed, ring.id);
      rings.push_back(next == changed.end() ? ring : *next);
    }
  }
  return rings;
}

WantedConfig read_wanted(const Config& in_force, const PortBudget& budget) {
  if (in_force.file.empty()) {
    throw config::ConfigError("reload: this switch was not started with a file");
  }
  const std::string text = config::read_file(in_force.file);
  WantedConfig wanted{
      .config = config::parse_config(text, in_force.file), .ports = {}, .rings = {}};
  wanted.config.file = in_force.file;
  wanted.ports = plan_ports(in_force, wanted.config.ports, budget);
  try {
    wanted.rings = config::parse_config(text, in_force.file, wanted.ports.places).rings;
  } catch (const config::ConfigError& error) {
    throw config::ConfigError(
        fmt::format("{}; until it is started again, the switch has its ports as they were opened",
                    error.what()));
  }
  return wanted;
}

ReloadPlan plan_reload(const Config& in_force, const WantedConfig& wanted,
                       const ring::RingSet& present) {
  ReloadPlan plan;
  plan.changes = with_rings_kept(config::difference(in_force, wanted.config), in_force,
                                 wanted.config, present);
  for (const auto& [id, effect] : effects_on_rings(plan.changes)) {
    if (effect == Effect::ring_withdrawn || effect == Effect::ring_made_anew) {
      plan.withdrawn.push_back(ring_of(in_force.rings, id));
    }
    if (effect == Effect::ring_made || effect == Effect::ring_made_anew) {
      plan.added.push_back(ring_of(wanted.rings, id));
    }
    if (effect == Effect::in_place || effect == Effect::ring_kept) {
      plan.changed.push_back(ring_of(wanted.rings, id));
    }
  }
  return plan;
}

} // namespace weir::control
