// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Whether anybody still uses a ring: a copy for who reclaims rings that nobody does.

#include "stage/worker.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::stage {

/// One ring at one moment. Times are nanoseconds of the switch's clock.
struct RingLife {
  /// When a packet of a member last came on a queue pair of the ring: a request of the running
  /// incarnation, an acknowledgement of a result, a hello that waits. When none has come since the
  /// ring was made: when that was.
  std::uint64_t heard_ns = 0;
  std::optional<std::uint64_t> draining_since_ns;
  bool has_incarnation = false;
  bool is_patient = false;                   // within the ring's patience since its last news
  std::uint64_t held = 0;                    // frames in slots, and waiting hellos
  std::uint32_t filling = 0;                 // slots
  std::vector<std::uint16_t> waited_for;     // whose packet the oldest slot lacks
  std::vector<std::uint16_t> unacknowledged; // children whose receivers owe an acknowledgement

  /// Whether a collective is under way whose end can be awaited. When patience is over, the switch
  /// does nothing more to bring it about.
  bool is_busy() const { return is_patient && (filling != 0 || !unacknowledged.empty()); }
};

/// The ring with this index and this specification. For the lcore that owns it, or while that
/// is quiescent.
RingLife life_of(const Worker& worker, std::uint16_t ring, const ring::RingSpec& spec,
                 frame::Instant now);

} // namespace weir::stage
