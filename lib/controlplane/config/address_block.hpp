// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

/// All addresses of one family with the same first bits (RFC 4632, RFC 4291 §2.3).
struct AddressBlock {
  wire::IpAddress first;
  unsigned prefix = 0; // bits, 0 .. 32 of IPv4, 0 .. 128 of IPv6

  /// An IPv4 address lies in no block of IPv6.
  bool contains(const wire::IpAddress& address) const;

  bool operator==(const AddressBlock&) const = default;
};

/// "10.1.0.0/16" or "2001:db8::/32"; nullopt for anything else, also for bits behind the prefix and
/// for IPv4 written as IPv6.
std::optional<AddressBlock> parse_block(std::string_view text);

std::string to_string(const AddressBlock& block);

} // namespace weir::config
