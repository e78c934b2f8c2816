// SPDX-License-Identifier: BSD-3-Clause
#include "config/key_lines.hpp"

#include "text/number.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace weir::config {
namespace {

/// "[2]…" of a list's key.
yaml::Reader item_of(const yaml::Reader& list, std::string_view brackets) {
  constexpr yaml::Range any{0, std::numeric_limits<std::uint64_t>::max()};
  const auto number = text::parsed<std::size_t>(brackets.substr(1, brackets.find(']') - 1));
  const std::vector<yaml::Reader> items = list.items(any, "entries");
  return number && *number < items.size() ? items[*number] : list;
}

/// A Reader is never assigned: yaml-cpp would write the one node's value into the other's.
int line_below(const yaml::Reader& at, std::string_view key) {
  if (key.empty() || !at.is_present()) {
    return at.line();
  }
  const bool is_item = key.front() == '[';
  const std::size_t end =
      std::min(is_item ? key.find(']') + 1 : key.find_first_of(".["), key.size());
  std::string_view rest = key.substr(end);
  rest.remove_prefix(rest.starts_with('.') ? 1 : 0);
  return line_below(is_item ? item_of(at, key) : at.at(key.substr(0, end)), rest);
}

} // namespace

KeyLines::KeyLines(std::string_view text, std::string_view file)
    : root_(yaml::Reader::parse(text, file)) {}

int KeyLines::line_of(std::string_view key) const {
  return line_below(root_, key);
}

} // namespace weir::config
