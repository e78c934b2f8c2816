// SPDX-License-Identifier: BSD-3-Clause
#include "config/address_block.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

namespace weir::config {
namespace {

constexpr unsigned kV4Bits = 32;
constexpr unsigned kV6Bits = 128;

unsigned bits_of(const wire::IpAddress& address) {
  return address.is_v4() ? kV4Bits : kV6Bits;
}

/// The address with zeros behind its first `prefix` bits.
wire::IpAddress cut(const wire::IpAddress& address, unsigned prefix) {
  constexpr unsigned byte_bits = 8;
  wire::IpAddress first = address;
  for (unsigned bit = kV6Bits - bits_of(address) + prefix; bit < kV6Bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> bit % byte_bits);
    first.bytes[bit / byte_bits] &= static_cast<std::uint8_t>(~mask);
  }
  return first;
}

} // namespace

bool AddressBlock::contains(const wire::IpAddress& address) const {
  return address.is_v4() == first.is_v4() && cut(address, prefix) == first;
}

std::optional<AddressBlock> parse_block(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) {
    return std::nullopt;
  }
  const std::string_view address = text.substr(0, slash);
  const std::optional<wire::IpAddress> first = wire::parse_ip(address);
  const std::optional<unsigned> prefix = text::parsed<unsigned>(text.substr(slash + 1));
  const bool is_v4_as_v6 = first && first->is_v4() && address.find(':') != text.npos;
  if (!first || is_v4_as_v6 || !prefix || *prefix > bits_of(*first) ||
      cut(*first, *prefix) != *first) {
    return std::nullopt;
  }
  return AddressBlock{*first, *prefix};
}

std::string to_string(const AddressBlock& block) {
  return fmt::format("{}/{}", wire::to_string(block.first), block.prefix);
}

} // namespace weir::config
