// SPDX-License-Identifier: BSD-3-Clause
#include "text/quantity.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace weir::text {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::uint64_t kThousand = 1000;
constexpr std::array kRateUnits{
    Unit{"bit/s", 1},
    Unit{"kbit/s", kThousand},
    Unit{"Mbit/s", kThousand* kThousand},
    Unit{"Gbit/s", kThousand* kThousand* kThousand},
    Unit{"Tbit/s", kThousand* kThousand* kThousand* kThousand},
    Unit{"B/s", 8},
    Unit{"kB/s", 8 * kThousand},
    Unit{"MB/s", 8 * kThousand* kThousand},
    Unit{"GB/s", 8 * kThousand* kThousand* kThousand},
    Unit{"TB/s", 8 * kThousand* kThousand* kThousand* kThousand},
};
constexpr std::array kLatencyUnits{
    Unit{"ns", 1},
    Unit{"us", kThousand},
    Unit{"ms", kThousand* kThousand},
    Unit{"s", kThousand* kThousand* kThousand},
};
constexpr std::array kSizeUnits{
    Unit{"", 1},           Unit{"B", 1},
    Unit{"K", 1ULL << 10}, Unit{"KiB", 1ULL << 10},
    Unit{"M", 1ULL << 20}, Unit{"MiB", 1ULL << 20},
    Unit{"G", 1ULL << 30}, Unit{"GiB", 1ULL << 30},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `factor` times 0.digits. nullopt when the product is not whole.
std::optional<std::uint64_t> fraction_of(std::uint64_t factor, std::string_view digits) {
  constexpr std::size_t most_digits = 15;
  const auto numerator = parsed<std::uint64_t>(digits);
  if (!numerator || digits.size() > most_digits) {
    return std::nullopt;
  }
  unsigned __int128 product = static_cast<unsigned __int128>(*numerator) * factor;
  for (std::size_t digit = 0; digit < digits.size(); ++digit) {
    if (product % 10 != 0) {
      return std::nullopt;
    }
    product /= 10;
  }
  return static_cast<std::uint64_t>(product);
}

/// Parses digits, an optional point and digits, optional spaces, a unit. Exact.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units,
                                            std::uint64_t most) {
  const auto number_end = static_cast<std::size_t>(
      std::ranges::find_if(text, [](char c) { return !is_digit(c) && c != '.'; }) - text.begin());
  std::string_view name = text.substr(number_end);
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) {
    return std::nullopt;
  }
  const std::string_view number = text.substr(0, number_end);
  const std::size_t point = number.find('.');
  const std::optional<std::uint64_t> integer = parsed<std::uint64_t>(number.substr(0, point));
  const std::optional<std::uint64_t> rest =
      point == std::string_view::npos ? 0 : fraction_of(unit->factor, number.substr(point + 1));
  if (!integer || !rest || *integer > most / unit->factor) {
    return std::nullopt;
  }
  const std::uint64_t value = *integer * unit->factor + *rest;
  return value > most ? std::nullopt : std::optional(value);
}

/// In the greatest of `units` (in ascending order) of which `value` is a whole multiple.
std::string in_units(std::uint64_t value, std::span<const Unit> units) {
  const auto unit = std::find_if(units.rbegin(), units.rend(), [&](const Unit& candidate) {
    return value != 0 && value % candidate.factor == 0;
  });
  const Unit& chosen = unit == units.rend() ? units.front() : *unit;
  return fmt::format("{}{}", value / chosen.factor, chosen.name);
}

} // namespace

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  return parse_quantity(text, kRateUnits, 1ULL << 53);
}

std::optional<std::uint64_t> parse_latency(std::string_view text) {
  return parse_quantity(text, kLatencyUnits, 60 * kLatencyUnits.back().factor);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse_quantity(text, kSizeUnits, 1ULL << 46);
}

std::string rate_text(std::uint64_t bits_per_second) {
  return in_units(bits_per_second, std::span(kRateUnits).first(5));
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array shown{kSizeUnits[1], kSizeUnits[3], kSizeUnits[5], kSizeUnits[7]};
  return in_units(bytes, shown);
}

} // namespace weir::text
