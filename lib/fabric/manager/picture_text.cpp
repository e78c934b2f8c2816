// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_text.hpp"

#include "text/printable.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::manager {
namespace {

bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; // no byte that goes on (RFC 3629)
}

/// Where the letter with this number begins.
std::size_t place_of(std::string_view text, std::size_t letter) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_letter(text[at]) && letter-- == 0) {
      break;
    }
  }
  return at;
}

} // namespace

std::string escaped(std::string_view text) {
  constexpr std::array<std::pair<char, std::string_view>, 5> markup{
      {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string out;
  for (const char c : text::printable(text)) {
    const auto* const found =
        std::ranges::find(markup, c, &std::pair<char, std::string_view>::first);
    out += found == markup.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most_letters) {
  std::string shown = text::printable(text);
  const auto letters = static_cast<std::size_t>(std::ranges::count_if(shown, begins_letter));
  if (letters <= most_letters) {
    return shown;
  }
  const std::size_t first = most_letters / 2;
  const std::size_t last = most_letters - first - 1;
  return shown.substr(0, place_of(shown, first)) + "…" +
         shown.substr(place_of(shown, letters - last));
}

} // namespace weir::manager
