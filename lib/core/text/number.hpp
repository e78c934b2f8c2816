// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace weir::text {

/// The number that is all of the text, or nullopt. For a whole number `base` may follow.
template <typename Number, std::same_as<int>... Base>
std::optional<Number> parsed(std::string_view text, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

} // namespace weir::text
