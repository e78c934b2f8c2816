// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::program {

/// "clipped-i8-sum: loaded; digest …; at most … ns for a KiB and rank", and the end of the line.
inline std::string loaded_in_words(std::string_view name, std::string_view digest, double price) {
  return fmt::format("{}: loaded; digest {}; at most {:.0f} ns for a KiB and rank\n", name, digest,
                     price);
}

/// A packet: 32 bytes in a line, in hexadecimal, behind the first one's place.
inline std::string packet_in_words(std::string_view packet) {
  constexpr std::size_t in_line = 32;
  std::string words;
  for (std::size_t at = 0; at < packet.size(); ++at) {
    if (at % in_line == 0) {
      words += fmt::format("{}{:04}  ", at == 0 ? "" : "\n", at);
    }
    words += fmt::format("{:02x}", static_cast<unsigned char>(packet[at]));
  }
  return words + "\n";
}

} // namespace weir::program
