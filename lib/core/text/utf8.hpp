// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::text {

/// The beginning of a text.
struct Utf8Piece {
  std::size_t bytes = 1;
  char32_t code_point = 0;
  bool is_valid = false; // false: one byte that begins no code point
};

/// Shortest forms only, no surrogates, at most U+10FFFF (RFC 3629 §3). `text` is not empty.
Utf8Piece first_piece_of(std::string_view text);

/// False: no code point, a control character (C0, DEL, C1), a line separator or a mark of
/// direction.
bool is_shown(const Utf8Piece& piece);

} // namespace weir::text
