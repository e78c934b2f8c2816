// SPDX-License-Identifier: BSD-3-Clause
#include "text/printable.hpp"

#include "text/utf8.hpp"

#include <fmt/format.h>

namespace weir::text {

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const Utf8Piece piece = first_piece_of(text);
    if (!is_shown(piece)) {
      return false;
    }
    text.remove_prefix(piece.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Piece piece = first_piece_of(text);
    const std::string_view bytes = text.substr(0, piece.bytes);
    if (is_shown(piece)) {
      out += bytes;
    } else {
      for (const char byte : bytes) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(piece.bytes);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (std::size_t end = 0; (end = text.find('\n')) != text.npos;) {
    out += printable(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return out + printable(text);
}

} // namespace weir::text
