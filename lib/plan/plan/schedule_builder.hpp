// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Turns an algorithm's messages into tables: rows, and what each row waits for.

#include "plan/schedule.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::plan {

/// Whether a node that has nothing to send in a step waits for that step (MultiTree §IV-A).
enum class Lockstep : std::uint8_t { none, by_nops };

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Topology& topology, std::uint32_t chunk_count)
      : node_count_(topology.node_count()) {
    schedule_.chunk_count = chunk_count;
  }

  /// Sets `message.route`.
  void add(Message message, std::span<const LinkId> route);

  /// A row waits for every message to its node that comes in an earlier step and has some of its
  /// chunks. It does not wait for messages that a later gather has replaced, nor for those that an
  /// earlier row of the node waits for, because rows leave in order.
  Schedule finish(std::uint32_t channels, Lockstep lockstep) &&;

 private:
  void sort_messages();
  void make_rows(VertexId node, Lockstep lockstep);
  void find_waits();
  void find_waits_of(VertexId node, std::span<const MessageId> arrivals);
  void take_in(MessageId id);
  void set_waits(Entry& entry);

  /// A node's messages of one chunk.
  struct Held {
    std::vector<MessageId> unawaited; // since the last gather; no row waits for them
    MessageId gather = kNone;         // the last gather
  };

  std::uint32_t node_count_;
  Schedule schedule_;
  std::vector<std::uint32_t> first_message_; // by sender; node_count + 1
  std::vector<Held> holds_;                  // by chunk, at the present node
  std::vector<bool> is_awaited_;             // by message: a row waits for it
};

} // namespace weir::plan
