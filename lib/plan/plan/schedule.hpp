// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What each node of an all-reduce sends, when, and what it waits for: MultiTree's schedule tables
/// (ISCA'21 §IV-A, Fig. 5), extended for the algorithms it is compared with.
///
/// The tensor of D bytes is cut into `chunk_count` chunks of equal size. A message carries a range
/// of chunks over a fixed route. A reduce is added to the receiver's data; a gather replaces it. A
/// node works through its table in order. It issues an entry when the entry's step is the node's
/// step and every message that the entry waits for has come (and, for a reduce, has been added).
/// Its step becomes that of the next entry when everything before has been sent.
/// node's step and every message that the entry waits for has come (a reduce: and is added). Its
/// step becomes that of the next entry when everything before is sent.

#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::plan {

/// The tree or pairing that a message belongs to. In MultiTree: its root's rank among the
/// participants.
using FlowId = std::uint32_t;
using MessageId = std::uint32_t;
/// From 1. The steps of all-gather follow those of reduce-scatter.
using Step = std::uint32_t;

enum class Operation : std::uint8_t { reduce, gather, nop };

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const ChunkRange&) const = default;
};

/// A range in one of the schedule's pools.
struct Slice {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

struct Message {
  Operation operation = Operation::reduce; // or gather
  FlowId flow = kNone;
  VertexId from = kNone;
  VertexId to = kNone;
  Step step = 0;
  ChunkRange chunks;
  Slice route; // links in order from `from` to `to`
};

/// One row of a table. A nop sends nothing: it delays the node by one estimated step (§IV-A,
/// footnote 4).
struct Entry {
  Operation operation = Operation::nop;
  FlowId flow = kNone;
  // Reduce: the receiver; gather: the sender that it came from, kNone at the root.
  VertexId parent = kNone;
  Step step = 0;
  ChunkRange chunks;
  Slice sends; // messages begin … begin+count-1; a reduce has one
  Slice waits; // in the pool of waits, without those that an earlier row of the node waited for
};

/// Tables of all nodes. A node's rows are in order of step, and within a step in order of flow.
struct Schedule {
  std::uint32_t chunk_count = 0;
  Step step_count = 0; // both phases
  /// How many messages a node's interface sends at once: 1 (RING, DBTREE, HDRM), or as many as the
  /// node has links (MULTITREE, 2D-RING in direct networks). MultiTree §V.
  std::uint32_t channels = 1;

  std::vector<Message> messages;        // sorted by sender, then as in its table
  std::vector<Entry> entries;           // sorted by node, then as in its table
  std::vector<std::uint32_t> first_row; // node → its first entry; node_count + 1 of them
  std::vector<MessageId> waits;         // pool
  std::vector<LinkId> routes;           // pool

  /// Empty for a node that is no participant.
  std::span<const Entry> table(VertexId node) const {
    return std::span(entries).subspan(first_row[node], first_row[node + 1] - first_row[node]);
  }

  std::span<const Message> sends_of(const Entry& entry) const {
    return std::span(messages).subspan(entry.sends.begin, entry.sends.count);
  }

  std::span<const MessageId> waits_of(const Entry& entry) const {
    return std::span(waits).subspan(entry.waits.begin, entry.waits.count);
  }

  std::span<const LinkId> route_of(const Message& message) const {
    return std::span(routes).subspan(message.route.begin, message.route.count);
  }
};

/// The children column of Fig. 5: for a reduce, whose messages it adds first; for a gather, to whom
/// it sends.
std::vector<VertexId> children_of(const Schedule& schedule, const Entry& entry);

} // namespace weir::plan
