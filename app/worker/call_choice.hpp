// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "worker/reduction.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::app {

/// Which calls, whatever their size.
struct CallChoice {
  std::vector<host::CallKind> kinds{host::CallKind::all_reduce};
  std::vector<DataType> types{DataType::f32};
  std::vector<Reduction> reductions{Reduction{}};
  std::uint16_t root = 0;
};

/// Every collective with every type, and with every reduction that the type has: calls without a
/// count. What does not reduce comes once with each type, and a barrier once.
std::vector<host::Call> kinds_of_calls(const CallChoice& choice);

/// Elements of a call of at most `bytes`, as bytes_of counts them.
std::uint64_t count_within(const host::Call& call, std::uint16_t world, std::uint64_t bytes);

/// The call with each size, cut to whole elements for each rank. Sizes without an element, and
/// those that are cut to the one before, are left out. A barrier has one size.
std::vector<host::Call> with_sizes(const host::Call& call, std::uint16_t world,
                                   std::span<const std::uint64_t> sizes);

} // namespace weir::app
