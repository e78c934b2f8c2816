// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::control {
class Switch;
} // namespace weir::control

namespace weir::report {

/// Packets that a capture takes at most, unless the order says another number.
inline constexpr std::uint64_t kCaptureCount = 1000;
inline constexpr std::uint64_t kMostCaptureCount = 1'000'000;

/// Where a capture goes, as typed at the prompt.
struct CaptureTarget {
  std::string_view file;
  std::string_view count; // empty: kCaptureCount
};

// The prompt's actions on captures. Each throws UnknownName for what it does not know, and as
// control::Captures::start.

void capture_ring(control::Switch& weir, std::string_view ring, const CaptureTarget& target);
/// `connection` is a row of `show conn all`: its pair and queue pair as "pair:qp".
void capture_connection(control::Switch& weir, std::string_view connection,
                        const CaptureTarget& target);
void capture_ports(control::Switch& weir, std::string_view port, const CaptureTarget& target);

} // namespace weir::report
