// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace weir::app {

/// What --op names: an operation of the switch, and what the hosts do with its result.
struct Reduction {
  Operation operation = Operation::sum;
  host::Finish finish = host::Finish::none;

  bool operator==(const Reduction&) const = default;
};

/// Operations in the order of their numbers, then the average.
std::vector<Reduction> all_reductions();
std::optional<Reduction> reduction_named(std::string_view name);
std::string_view name_of(const Reduction& reduction);
/// "none" if the call does not reduce.
std::string_view reduction_name(const host::Call& call);

} // namespace weir::app
