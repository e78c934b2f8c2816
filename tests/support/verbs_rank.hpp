// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/weir.hpp"

#include <cstdint>
#include <cstdlib>

namespace weir::verbs_rank {

/// Of a program whose first four arguments are RANK WORLD RENDEZVOUS RING. Refers to them and to
/// the ring's number.
inline GroupOptions group_options(char** arguments, const std::uint32_t& ring) {
  GroupOptions options;
  options.rank = static_cast<std::uint16_t>(std::atoi(arguments[1]));
  options.world = static_cast<std::uint16_t>(std::atoi(arguments[2]));
  options.rendezvous = arguments[3];
  options.rings = &ring;
  options.ring_count = 1;
  options.window = 4;
  options.message_bytes = 16384;
  options.form_timeout_ms = 30000;
  options.timeout_ms = 30000;
  return options;
}

inline Context context(const char* device) {
  ContextOptions options;
  options.transport = WEIR_VERBS;
  options.device = device;
  return Context(options);
}

inline std::uint32_t ring_number(const char* text) {
  return static_cast<std::uint32_t>(std::atoi(text));
}

} // namespace weir::verbs_rank
