// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "network/dice.hpp"
#include "ring/ring_spec.hpp"
#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::fabric {

using network::Dice;

enum class Buffers : std::uint8_t { in_place, out_of_place };

/// A call of a job.
struct CallPlan {
  host::Call call; // its sequence is not used
  Buffers buffers = Buffers::in_place;
  std::vector<std::uint64_t> parts; // coalesced tensors, elements of each; empty: one tensor

  /// Of `count` elements.
  std::size_t own_bytes() const;
  /// What a rank gives.
  std::size_t given_bytes(std::uint16_t rank, std::uint16_t world) const;
  /// What the messages' results bring together.
  std::size_t result_bytes(std::uint16_t world) const;
  /// What a rank keeps of that.
  std::size_t kept_bytes(std::uint16_t rank, std::uint16_t world) const;
};

/// Draws a call of at most so many full messages, often of no element.
CallPlan draw_call(Dice& dice, const ring::RingSpec& spec, std::uint64_t most_messages);

/// Another call whose messages disagree with all of this one's in one field: operation, type, root
/// or collective. nullopt when there is none.
std::optional<CallPlan> draw_disagreeing(Dice& dice, const CallPlan& with, std::uint16_t world);

} // namespace weir::fabric
