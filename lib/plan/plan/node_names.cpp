// SPDX-License-Identifier: BSD-3-Clause
#include "plan/node_names.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace weir::plan {

std::optional<std::vector<std::string>> expand_names(std::string_view pattern, std::size_t most) {
  const std::size_t open = pattern.find('[');
  if (open == std::string_view::npos && pattern.find(']') == std::string_view::npos) {
    return std::vector{std::string(pattern)};
  }
  const std::size_t dash = pattern.find('-', open);
  const std::size_t close = pattern.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos || dash > close) {
    return std::nullopt;
  }
  const auto first = text::parsed<std::uint64_t>(pattern.substr(open + 1, dash - open - 1));
  const auto last = text::parsed<std::uint64_t>(pattern.substr(dash + 1, close - dash - 1));
  const std::string_view tail = pattern.substr(close + 1);
  if (!first || !last || *first > *last || *last - *first >= most ||
      tail.find_first_of("[]") != std::string_view::npos) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (std::uint64_t number = *first; number <= *last; ++number) {
    names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), number, tail));
  }
  return names;
}

} // namespace weir::plan
