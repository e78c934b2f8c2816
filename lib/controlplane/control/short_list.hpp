// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// "ring 7: 4096, ring 8: 512, 3 more": what `text_of` says of the first rings, or of other things;
/// `none` if there is none.
template <typename Thing, typename TextOf>
std::string list_of(const std::vector<Thing>& things, TextOf&& text_of,
                    std::string_view none = "no ring") {
  constexpr std::size_t named = 8;
  std::vector<std::string> parts;
  for (const Thing& thing : things) {
    if (parts.size() == named) {
      parts.push_back(fmt::format("{} more", things.size() - named));
      break;
    }
    parts.push_back(text_of(thing));
  }
  return parts.empty() ? std::string(none) : fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace weir::control
