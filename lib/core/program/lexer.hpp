// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::program {

struct Word {
  enum class Kind : std::uint8_t { name, number, sign };

  Kind kind{};
  std::string text;

  bool is(std::string_view other) const { return text == other; }
};

/// A line of a text without its comment, in words. Lines without a word are left out.
struct Line {
  unsigned number = 0;      // from 1
  bool is_indented = false; // it goes on where the line before ended
  std::vector<Word> words;
};

/// Throws TextError for a character that no word has, and a text that is too long.
std::vector<Line> split(std::string_view text);

/// The whole number, decimal or behind 0x, that is all of the text.
std::optional<std::uint64_t> whole_number(std::string_view text);

/// Words with one blank between.
std::string joined(const std::vector<Word>& words);

} // namespace weir::program
