// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::ring {

/// A number of a ring's configuration that another switch has otherwise.
struct OtherNumber {
  std::string_view key; // as in the configuration
  std::uint32_t theirs = 0;
  std::uint32_t ours = 0;
};

/// In which numbers a ring with this digest differs from ours: `mtu`, `window`, both of them, or
/// `max_message_bytes`. A CRC is linear, so for each number the digest leaves one value, which
/// mostly no configuration has. Empty where none fits: other members, or more numbers differ.
std::vector<OtherNumber> numbers_that_differ(const RingSpec& ours, std::uint32_t their_digest);

} // namespace weir::ring
