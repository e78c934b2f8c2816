// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Numbers with units, as people write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::text {

/// "100Gbit/s", "12.5 Gbit/s", "16GB/s" → bit/s. Units: bit/s or B/s, with k, M, G or T (powers of
/// 1000). nullopt: other text, a fraction of a bit, or more than 2^53 bit/s.
std::optional<std::uint64_t> parse_rate(std::string_view text);

/// "150ns", "1.5us", "2ms" → ns. nullopt: other text, a fraction of a nanosecond, or over a minute.
std::optional<std::uint64_t> parse_latency(std::string_view text);

/// "4096", "32K", "64KiB", "1G" → bytes; K, M, G are powers of 1024. nullopt: other text, or more
/// than 2^46.
std::optional<std::uint64_t> parse_size(std::string_view text);

inline constexpr std::string_view kRateForm =
    "a rate of at least 1 bit/s, such as 100Gbit/s or 12.5GB/s";
inline constexpr std::string_view kLatencyForm = "a time up to a minute, such as 600ns or 1.5us";
inline constexpr std::string_view kSizeForm = "bytes, such as 4096, 64KiB or 1G, in powers of 1024";

/// The shortest exact form: "100Gbit/s", "12500Mbit/s"; "600ns"; "64KiB".
std::string rate_text(std::uint64_t bits_per_second);
std::string size_text(std::uint64_t bytes);

} // namespace weir::text
