// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Parts of sentences, of texts and lists that may be as long as a request.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::jobs {

/// As much of the text as has so many bytes, and no part of a letter.
inline std::string beginning_of(std::string_view text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  const auto goes_on = [&] { // RFC 3629
    return end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;
  };
  while (end > 0 && goes_on()) {
    --end;
  }
  return std::string(text.substr(0, end));
}

inline std::string shown(std::string_view text) {
  constexpr std::size_t most = 256;
  return text.size() <= most ? std::string(text) : beginning_of(text, most) + "…";
}

/// The first of them by name.
template <typename Names>
std::string names_in_words(const Names& names) {
  constexpr std::size_t named = 16;
  const auto all = static_cast<std::size_t>(names.size());
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(all, named)));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     all > named ? fmt::format(" and {} more", all - named) : "");
}

} // namespace weir::jobs
