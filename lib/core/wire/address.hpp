// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weir::wire {

/// An IPv4 or IPv6 address or a GID: 16 bytes in network order; IPv4 as ::ffff:a.b.c.d (RFC 4291
/// §2.5.5.2), which is also how RoCE writes an IPv4 address in a GID (IBTA annex A17.4.5).
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  static IpAddress from_v4(const std::uint8_t* four_bytes) {
    std::uint32_t v4 = 0;
    std::memcpy(&v4, four_bytes, sizeof v4);
    return from_words({0, std::uint64_t{v4} << 32 | 0xffff0000});
  }

  static IpAddress from_v6(const std::uint8_t* sixteen_bytes) {
    IpAddress address;
    std::memcpy(address.bytes.data(), sixteen_bytes, 16);
    return address;
  }

  bool is_v4() const {
    static constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
  }

  /// The bytes as two numbers in host order. Hashes and comparisons work on these.
  std::array<std::uint64_t, 2> words() const {
    return std::bit_cast<std::array<std::uint64_t, 2>>(bytes);
  }

  static IpAddress from_words(const std::array<std::uint64_t, 2>& words) {
    return {std::bit_cast<std::array<std::uint8_t, 16>>(words)};
  }

  /// Compares number by number. The arrays would be loaded as a whole, and a CPU cannot forward the
  /// two stores of from_words() to one load.
  bool operator==(const IpAddress& other) const {
    const auto [high, low] = words();
    const auto [other_high, other_low] = other.words();
    return high == other_high && low == other_low;
  }

  auto operator<=>(const IpAddress&) const = default;
};

static_assert(std::endian::native == std::endian::little);

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  bool is_group() const { return (bytes[0] & 0x01) != 0; }

  auto operator<=>(const MacAddress&) const = default;
};

/// Dotted quad or RFC 5952 text; nullopt for anything else.
std::optional<IpAddress> parse_ip(std::string_view text);
/// Six colon-separated hexadecimal bytes; nullopt for anything else.
std::optional<MacAddress> parse_mac(std::string_view text);
std::string to_string(const IpAddress& address);
std::string to_string(const MacAddress& address);

} // namespace weir::wire
