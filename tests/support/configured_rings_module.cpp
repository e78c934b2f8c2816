// SPDX-License-Identifier: BSD-3-Clause

/// In place of libweir_switch.so, where hosts reach no control service: makes no ring, and answers
/// with rings that the switch's configuration has. $CONFIGURED_RINGS has their ids, with commas
/// between them: the process's first group has the first one.

#include "host/switch_rings/module.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

struct weir_hold {};

namespace {

std::vector<std::uint32_t> configured_rings() {
  const char* const list = std::getenv("CONFIGURED_RINGS");
  std::istringstream stream(list == nullptr ? "" : list);
  std::vector<std::uint32_t> rings;
  for (std::string id; std::getline(stream, id, ',');) {
    rings.push_back(static_cast<std::uint32_t>(std::stoul(id)));
  }
  return rings;
}

weir_hold* hold(const weir_hold_order*, weir_held_ring* held, char* why, std::size_t why_bytes) {
  static const std::vector<std::uint32_t> rings = configured_rings();
  static std::atomic<std::size_t> taken = 0;
  const std::size_t number = taken++;
  if (number >= rings.size()) {
    std::snprintf(why, why_bytes, "CONFIGURED_RINGS has %zu", rings.size());
    return nullptr;
  }
  *held = {rings[number], 1};
  return new weir_hold;
}

weir_hold* hold_job(const weir_hold_order*, weir_job_rings*, char* why, std::size_t why_bytes) {
  std::snprintf(why, why_bytes, "there is no manager");
  return nullptr;
}

weir_hold* hold_region(const weir_hold_order*, const weir_hold_region*, weir_held_region*,
                       char* why, std::size_t why_bytes) {
  std::snprintf(why, why_bytes, "it makes no regions");
  return nullptr;
}

void release(weir_hold* hold) {
  delete hold;
}

} // namespace

const weir_switch_module* weir_switch_module_of() {
  static constexpr weir_switch_module module{WEIR_SWITCH_MODULE_VERSION, hold, hold_job,
                                             hold_region, release};
  return &module;
}
