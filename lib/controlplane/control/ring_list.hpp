// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::control {

/// "ring 7: 4096, ring 8: 512, 3 more": what `text_of` says of the first rings; "no ring" if there
/// is none.
template <typename TextOf>
std::string list_of(const std::vector<std::uint16_t>& rings, TextOf&& text_of) {
  constexpr std::size_t named = 8;
  std::vector<std::string> parts;
  for (const std::uint16_t ring : rings) {
    if (parts.size() == named) {
      parts.push_back(fmt::format("{} more", rings.size() - named));
      break;
    }
    parts.push_back(text_of(ring));
  }
  return parts.empty() ? "no ring" : fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace weir::control
