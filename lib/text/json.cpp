// SPDX-License-Identifier: BSD-3-Clause
#include "text/json.hpp"

#include <fmt/format.h>

#include <iterator>

namespace weir::text {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

} // namespace weir::text
