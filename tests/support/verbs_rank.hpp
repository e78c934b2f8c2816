// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rank_options.h"
#include "weir/weir.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>

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

/// A sum through the switch that no rank can miss any more: its first result is here, and every
/// result has a part from every rank. Before that, another rank may still be forming the group.
inline Request sum_of_all_under_way(Group& group, std::span<std::uint32_t> tensor) {
  const std::uint64_t earlier_results = group.statistics().results_received;
  Request request = group.start_all_reduce(tensor, WEIR_SUM);
  while (group.statistics().results_received == earlier_results) {
    request.wait_for(std::chrono::milliseconds(1));
  }
  return request;
}

} // namespace weir::verbs_rank
