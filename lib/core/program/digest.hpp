// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::program {

/// SHA-256 of an operator's text and of what it makes of the trial's data (docs/protocol.md §12).
using Digest = std::array<std::uint8_t, 32>;

Digest digest_of(std::string_view text, std::span<const std::byte> results);

/// 64 hexadecimal digits.
std::string to_string(const Digest& digest);

/// nullopt for anything else.
std::optional<Digest> digest_from(std::string_view text);

} // namespace weir::program
