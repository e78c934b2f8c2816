// SPDX-License-Identifier: BSD-3-Clause
#include "text/json.hpp"

#include "text/utf8.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace weir::text {

std::string json_string(std::string_view text) {
  constexpr char32_t replacement = 0xfffd;
  std::string out = "\"";
  while (!text.empty()) {
    const Utf8Piece piece = first_piece_of(text);
    const std::string_view bytes = text.substr(0, piece.bytes);
    if (bytes == "\"" || bytes == "\\") {
      out += '\\';
      out += bytes;
    } else if (is_shown(piece)) {
      out += bytes;
    } else {
      const char32_t shown = piece.is_valid ? piece.code_point : replacement;
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(shown));
    }
    text.remove_prefix(piece.bytes);
  }
  return out + "\"";
}

} // namespace weir::text
