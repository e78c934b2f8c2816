// SPDX-License-Identifier: BSD-3-Clause
#include "program/lexer.hpp"

#include "program/parse.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace weir::program {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 20> kSigns{"<<", ">>", "<=", ">=", "==", "!=", "+",
                                                  "-",  "*",  "/",  "&",  "|",  "^",  "~",
                                                  "<",  ">",  "(",  ")",  ",",  "="};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Of a number such as 0x1f, 12, 0.5 or 1e-3.
std::size_t number_length(std::string_view text) {
  std::size_t length = 0;
  const bool is_hex = text.starts_with("0x");
  while (length < text.size()) {
    const char c = text[length];
    const bool is_exponent_sign = !is_hex && length != 0 && (c == '-' || c == '+') &&
                                  (text[length - 1] == 'e' || text[length - 1] == 'E');
    if (!is_letter(c) && !is_digit(c) && c != '.' && !is_exponent_sign) {
      break;
    }
    ++length;
  }
  return length;
}

std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (is_letter(text[length]) || is_digit(text[length]) || text[length] == '.')) {
    ++length;
  }
  return length;
}

Word first_word(std::string_view text, unsigned line) {
  if (is_letter(text[0])) {
    return {Word::Kind::name, std::string(text.substr(0, name_length(text)))};
  }
  if (is_digit(text[0])) {
    return {Word::Kind::number, std::string(text.substr(0, number_length(text)))};
  }
  for (const std::string_view sign : kSigns) {
    if (text.starts_with(sign)) {
      return {Word::Kind::sign, std::string(sign)};
    }
  }
  const auto code = static_cast<unsigned char>(text[0]);
  const std::string found = code > ' ' && code < 127 ? fmt::format("\"{}\"", text[0])
                                                     : fmt::format("byte 0x{:02x}", code);
  throw TextError(line, fmt::format("found {}; allowed: names, numbers, and {}", found,
                                    fmt::join(kSigns, " ")));
}

std::vector<Word> words_of(std::string_view line, unsigned number) {
  std::vector<Word> words;
  while (!line.empty()) {
    if (line[0] == ' ' || line[0] == '\t' || line[0] == '\r') {
      line.remove_prefix(1);
      continue;
    }
    words.push_back(first_word(line, number));
    line.remove_prefix(words.back().text.size());
  }
  return words;
}

} // namespace

std::vector<Line> split(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    throw TextError(1, fmt::format("found a text of {} bytes; allowed: {} at most", text.size(),
                                   kMaxTextBytes));
  }
  std::vector<Line> lines;
  unsigned number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool is_indented = line.starts_with(' ') || line.starts_with('\t');
    line = line.substr(0, line.find('#'));
    if (std::vector<Word> words = words_of(line, number); !words.empty()) {
      lines.push_back({number, is_indented, std::move(words)});
    }
  }
  return lines;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  return text.starts_with("0x") ? text::parsed<std::uint64_t>(text.substr(2), 16)
                                : text::parsed<std::uint64_t>(text);
}

std::string joined(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) {
    text += (text.empty() ? "" : " ") + word.text;
  }
  return text;
}

} // namespace weir::program
