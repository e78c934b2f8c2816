// SPDX-License-Identifier: BSD-3-Clause
#include "wire/address.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace weir::wire {

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (text.find('\0') != text.npos) { // inet_pton() would stop there
    return std::nullopt;
  }
  const std::string terminated(text);
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) {
    return IpAddress::from_v4(bytes.data());
  }
  if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) {
    return IpAddress::from_v6(bytes.data());
  }
  return std::nullopt;
}

std::optional<MacAddress> parse_mac(std::string_view text) {
  constexpr std::size_t length = 17;
  const auto nibble = [](char c) -> int {
    if (c >= '0' && c <= '9') {
      return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  if (text.size() != length) {
    return std::nullopt;
  }
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    const int high = nibble(text[3 * i]);
    const int low = nibble(text[3 * i + 1]);
    const bool separated = i + 1 == mac.bytes.size() || text[3 * i + 2] == ':';
    if (high < 0 || low < 0 || !separated) {
      return std::nullopt;
    }
    mac.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return mac;
}

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    inet_ntop(AF_INET, address.bytes.data() + 12, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

std::string to_string(const MacAddress& address) {
  return fmt::format("{:02x}", fmt::join(address.bytes, ":"));
}

} // namespace weir::wire
