// SPDX-License-Identifier: BSD-3-Clause
#include "text/quoted_words.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace weir::text {

std::vector<std::string> quoted_words(std::string_view line) {
  std::vector<std::string> words;
  bool is_in_word = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char letter = line[at];
    if (letter == ' ' || letter == '\t') {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) {
      words.emplace_back();
      is_in_word = true;
    }
    if (letter != '"' && letter != '\'') {
      words.back() += letter;
      continue;
    }
    const std::size_t end = line.find(letter, at + 1);
    if (end == line.npos) {
      throw std::invalid_argument(
          fmt::format("found {} without a second; allowed: two around what has blanks", letter));
    }
    words.back() += line.substr(at + 1, end - at - 1);
    at = end;
  }
  return words;
}

} // namespace weir::text
