// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace weir::events {

/// "3, 5", or "3, 5, … and 12 more": what one line names, the first eight at most.
template <typename Name>
std::string list_of(const std::vector<Name>& names) {
  constexpr std::size_t most = 8;
  const std::size_t named = std::min(names.size(), most);
  const std::string more =
      named < names.size() ? fmt::format(" and {} more", names.size() - named) : "";
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(named);
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "), more);
}

} // namespace weir::events
