// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::host {

/// Where a rank lives, as far as other ranks must know: those that say the same share a NIC and can
/// reach one another's memory.
struct Residence {
  /// A digest of the host, its network namespace and the NIC's name. All 0: not known, or of no NIC
  /// that ranks could share.
  std::array<std::uint8_t, 16> nic{};
  std::uint32_t user = 0; // effective

  bool is_known() const { return nic != decltype(nic){}; }
};

/// Of this process with the NIC of that name; "" is none. Two namespaces of a host differ, since
/// their NICs of one name do. Throws std::runtime_error when libcrypto has no HMAC-SHA256.
Residence residence_with(std::string_view nic);

} // namespace weir::host
