// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::server {

enum class Rank : std::uint8_t {
  wrong,   // the switch would not start
  warning, // it would, but slower than it could be, or without something that is configured
  unknown, // nobody can say before the start
  fine,
};

/// The rank as people and programs read it.
constexpr std::string_view name_of(Rank rank) {
  switch (rank) {
  case Rank::wrong:
    return "wrong";
  case Rank::warning:
    return "warning";
  case Rank::unknown:
    return "unknown";
  case Rank::fine:
    break;
  }
  return "fine";
}

/// What one question found.
struct Finding {
  Rank rank = Rank::fine;
  std::string found; // on one line
  std::string mend;  // commands, a line each; empty where nothing is to be mended, or none is known
};

} // namespace weir::server
