// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rank_options.h"
#include "weir/weir.hpp"

#include <cstdint>
#include <cstdlib>

namespace weir::verbs_rank {

/// Of a program whose first four arguments are RANK WORLD RENDEZVOUS RING. Refers to them and to
/// the ring's number.
inline GroupOptions group_options(char** arguments, const std::uint32_t& ring) {
  GroupOptions options;
  set_rank_options(&options, arguments + 1, &ring);
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
