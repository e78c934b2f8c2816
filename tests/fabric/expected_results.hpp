// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "scenario.hpp"
#include "values.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
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
    std::uint16_t root = 0; // of a broadcast
  };

  /// A packet of a rank's connection: whose data it carries.
  struct PacketShare {
    const Share* share = nullptr; // of its message; nullptr: a hello
    bool starts_message = false;
    std::size_t offset = 0; // of its data in the call's results
    std::size_t bytes = 0;
  };

  ExpectedResults(const RingPlan& plan, std::uint32_t nonce);

  /// Of message 1, 2, … nullptr past the last one.
  const Share* share_of(std::uint64_t message) const;

  /// Of packet 0, 1, 2, … of every rank's connection. nullopt past the last one.
  std::optional<PacketShare> packet(std::uint32_t number) const;

  /// Packets of every rank's connection, the hello included.
  std::uint32_t packets() const { return first_packets_.back(); }

  /// Whether each rank's data make the results of the call's messages, and not one rank's alone.
  bool is_sum(std::uint32_t call) const { return plan_.calls[call].call.reduces(); }

  /// What the switch makes of its ranks' data for a call that is a sum: as long as the results.
  const std::vector<std::uint8_t>& sum_of(std::uint16_t node, std::uint32_t call);

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
  std::vector<std::uint8_t> reckon(std::uint32_t call);
  std::vector<std::uint8_t> fold_at(std::uint16_t node, std::uint32_t call);

  DataKey key(std::uint16_t rank, std::uint32_t call) const;

  const RingPlan& plan_;
  const std::uint32_t nonce_;
  std::vector<Share> shares_;                // by message, from 1
  std::vector<std::uint64_t> last_messages_; // by call
  std::vector<std::uint32_t> first_packets_; // by message, and behind the last
  std::map<std::uint32_t, std::vector<std::uint8_t>> results_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<std::uint8_t>> sums_;
};

} // namespace weir::fabric
