// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

namespace weir::text {

/// What stands between the commas; "" is a list of one empty word. Views of `list`.
inline std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t comma = 0; (comma = list.find(',')) != std::string_view::npos;) {
    words.push_back(list.substr(0, comma));
    list.remove_prefix(comma + 1);
  }
  words.push_back(list);
  return words;
}

} // namespace weir::text
