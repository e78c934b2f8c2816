// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "scenario.hpp"
#include "values.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace weir::fabric {

/// What a run of a job must bring, reckoned from its plan and docs/protocol.md §2 alone.
class ExpectedResults {
 public:
  /// A message's share of its call's results, which lie one after the other in the order of the
  /// messages.
  struct Share {
    std::uint32_t call = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  ExpectedResults(const RingPlan& plan, std::uint32_t nonce);

  /// Of message 1, 2, … nullptr past the last one.
  const Share* share_of(std::uint64_t message) const;

  /// The call's last message, or that of the calls before it if it has none. 0: no call has any.
  std::uint64_t last_message_of(std::uint32_t call) const { return last_messages_[call]; }

  /// All that a call's messages bring.
  const std::vector<std::uint8_t>& results_of(std::uint32_t call);

  /// What a rank keeps of that.
  std::span<const std::uint8_t> kept_by(std::uint16_t rank, std::uint32_t call);

  /// What a rank gives to a call.
  std::vector<std::uint8_t> given_by(std::uint16_t rank, std::uint32_t call) const;

 private:
  void add_messages_of(std::uint32_t call);
  std::vector<std::uint8_t> reckon(std::uint32_t call) const;

  DataKey key(std::uint16_t rank, std::uint32_t call) const;

  const RingPlan& plan_;
  const std::uint32_t nonce_;
  std::vector<Share> shares_;                // by message, from 1
  std::vector<std::uint64_t> last_messages_; // by call
  std::map<std::uint32_t, std::vector<std::uint8_t>> results_;
};

} // namespace weir::fabric
