// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "text/number.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::text {

/// What a job shows a fabric's manager.
struct Token {
  std::uint64_t allocation = 0;
  std::string secret; // bytes
};

/// A line: "17 0a1b…", two digits for each byte.
inline std::string token_text(const Token& token) {
  std::string text = fmt::format("{} ", token.allocation);
  for (const char byte : token.secret) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text + "\n";
}

/// nullopt: it is no such line. There may be no end of the line.
inline std::optional<Token> parsed_token(std::string_view text) {
  constexpr int hexadecimal = 16;
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  const std::size_t blank = text.find(' ');
  const auto allocation = parsed<std::uint64_t>(text.substr(0, blank));
  if (!allocation || *allocation == 0 || blank == std::string_view::npos) {
    return std::nullopt;
  }
  Token token{*allocation, {}};
  text.remove_prefix(blank + 1);
  for (; text.size() >= 2; text.remove_prefix(2)) {
    const auto byte = parsed<std::uint8_t>(text.substr(0, 2), hexadecimal);
    if (!byte) {
      return std::nullopt;
    }
    token.secret += static_cast<char>(*byte);
  }
  return text.empty() && !token.secret.empty() ? std::optional(token) : std::nullopt;
}

} // namespace weir::text
