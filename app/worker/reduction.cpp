// SPDX-License-Identifier: BSD-3-Clause
#include "worker/reduction.hpp"

#include <algorithm>

namespace weir::app {

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  for (std::size_t number = 0; number < kOperations; ++number) {
    all.push_back({static_cast<Operation>(number)});
  }
  all.push_back({Operation::sum, host::Finish::average});
  return all;
}

std::optional<Reduction> reduction_named(std::string_view name) {
  const std::vector<Reduction> all = all_reductions();
  const auto found = std::ranges::find_if(
      all, [&](const Reduction& reduction) { return name_of(reduction) == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

std::string_view name_of(const Reduction& reduction) {
  return reduction.finish == host::Finish::average ? "average" : name_of(reduction.operation);
}

std::string_view reduction_name(const host::Call& call) {
  return call.reduces() ? name_of(Reduction{call.operation, call.finish}) : "none";
}

} // namespace weir::app
