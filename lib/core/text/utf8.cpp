// SPDX-License-Identifier: BSD-3-Clause
#include "text/utf8.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace weir::text {
namespace {

constexpr std::array<char32_t, 5> kLeastOf{0, 0, 0x80, 0x800, 0x10000}; // by bytes
constexpr char32_t kMost = 0x10ffff;

struct Range {
  char32_t first;
  char32_t last;
};

/// Control characters, line separators, marks of direction.
constexpr std::array kHidden{
    Range{0x00, 0x1f},     Range{0x7f, 0x9f},     Range{0x061c, 0x061c},
    Range{0x200e, 0x200f}, Range{0x2028, 0x202e}, Range{0x2066, 0x2069},
};

bool is_surrogate(char32_t code_point) {
  return code_point >= 0xd800 && code_point <= 0xdfff;
}

} // namespace

Utf8Piece first_piece_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) {
    return {.bytes = 1, .code_point = lead, .is_valid = true};
  }
  const auto bytes = static_cast<std::size_t>(std::countl_one(lead));
  if (bytes < 2 || bytes > 4 || bytes > text.size()) {
    return {};
  }
  char32_t code_point = lead & (0x7fU >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    const auto next = static_cast<unsigned char>(c);
    if ((next & 0xc0U) != 0x80) {
      return {};
    }
    code_point = (code_point << 6U) | (next & 0x3fU);
  }
  if (code_point < kLeastOf[bytes] || code_point > kMost || is_surrogate(code_point)) {
    return {};
  }
  return {.bytes = bytes, .code_point = code_point, .is_valid = true};
}

bool is_shown(const Utf8Piece& piece) {
  return piece.is_valid && std::ranges::none_of(kHidden, [&](const Range& range) {
           return piece.code_point >= range.first && piece.code_point <= range.last;
         });
}

} // namespace weir::text
