// SPDX-License-Identifier: BSD-3-Clause
#include "program/stand_in.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace weir::program {
namespace {

struct Known {
  std::string_view digest;
  op::BlockSum sum{};
};

// Those of config/operators. Tests compare them.
constexpr std::array kKnown{
    Known{"f87a9e2246120f2eec3d350bf6e41b2626e0e7fc673d8ab4d605c3ed1f642c9e",
          op::BlockSum::mxfp8_e4m3},
    Known{"e8b66eb610954153690831dd11fe1b02ef076e50ce9958c539779ea3389a340c",
          op::BlockSum::mxfp8_e5m2},
};

} // namespace

op::ReduceKernel known_kernel(const Digest& digest, op::CpuLevel level) {
  const auto* const row = std::ranges::find(kKnown, to_string(digest), &Known::digest);
  return row == kKnown.end() ? nullptr : op::find_block_sum(row->sum, level);
}

StandIn tried(op::ReduceKernel kernel, const TrialData& data,
              const std::vector<std::byte>& results) {
  if (kernel == nullptr) {
    return {};
  }
  const bool is_right = results_of(data, kernel) == results;
  return {.kernel = is_right ? kernel : nullptr, .is_wrong = !is_right};
}

} // namespace weir::program
