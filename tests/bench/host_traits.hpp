// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::bench {

/// When a host decides which frame it sends next: when the link takes it, as a NIC, or as soon as
/// the queue pair has one, which then waits for the link.
enum class Choice : std::uint8_t { by_link, at_once };

/// How a job's hosts send.
struct HostTraits {
  Choice choice = Choice::by_link;
  std::uint32_t packets_in_flight = 256; // most, of a queue pair
  std::uint32_t window = 32;             // messages: N of docs/protocol.md
  std::uint32_t message_bytes = 16384;   // of a full message, its header included
  std::uint32_t mtu = 1024;              // path MTU

  /// Messages for which a host has room, and most that it posts.
  std::uint32_t inboxes() const { return 2 * window; }

  /// Bytes; room for a full payload and all headers.
  std::uint32_t longest_frame() const { return mtu + 256; }
};

} // namespace weir::bench
