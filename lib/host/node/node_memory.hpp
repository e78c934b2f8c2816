// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/base/stream.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// What all ranks of a node must have alike to find their way in its memory. The portions are alike
/// on all nodes, since a portion is what leaders exchange.
struct NodeGeometry {
  std::uint16_t ranks = 1; // of the node
  std::size_t channels = 1;
  std::size_t slots = 2; // portions under way on a channel
  std::size_t portion_bytes = 8;

  std::size_t slot_bytes() const;

  std::size_t area_bytes() const;
  std::size_t bytes() const;
};

/// The descriptors that make a node: the leader opens them, and hands them to the others.
struct NodeDescriptors {
  Socket memory;
  std::vector<Socket> bells; // by place in the node
};

/// Memory without a name, of a fixed size, that is there as long as somebody has it. Throws Error
/// when there is not so much, or the process can open no more descriptors.
NodeDescriptors make_node_descriptors(const NodeGeometry& geometry);

/// The memory that the ranks of a node share. For each channel it has slots, and in each slot an
/// area for every rank's input and one for their sum. Counters tell how far each rank is with the
/// channel's portions, which are numbered from 0. Each has one writer. Nothing in the memory is a
/// place or a length, so what is written there by mistake changes data, not where others read and
/// write.
class NodeMemory {
 public:
  /// `place` is ours in the node. Throws Error.
  NodeMemory(const NodeGeometry& geometry, std::uint16_t place, NodeDescriptors descriptors);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  const NodeGeometry& geometry() const { return geometry_; }

  std::uint16_t place() const { return place_; }

  /// How far a rank is with a channel. The number is that of the portions that are done.
  struct Counters {
    std::atomic<std::uint64_t> brought = 0;   // its input is there
    std::atomic<std::uint64_t> folded = 0;    // its share of the sum is there
    std::atomic<std::uint64_t> exchanged = 0; // of the leader: the sum is that of all nodes
  };

  Counters& counters(std::size_t channel, std::uint16_t place);

  /// What the rank says of the portion that it has brought. Ranks that call different things say
  /// something else.
  std::uint64_t& label(std::size_t channel, std::uint64_t portion, std::uint16_t place);

  /// The areas of the slot that the portion has; what is in them is of the portion `slots` before
  /// until its ranks are done with it.
  std::uint8_t* input(std::size_t channel, std::uint64_t portion, std::uint16_t place);
  std::uint8_t* sum(std::size_t channel, std::uint64_t portion);

  /// A counter of ours has changed: ranks that sleep look again.
  void announce();

  /// We have gone on: there may be more to do.
  void note_move() { has_moved_ = true; }

  /// Whether there may be something new to do since the last call.
  bool has_news();

  /// Slices that wait for others here; so it is worth to look for news some time before a sleep.
  void add_slice() { ++slices_; }

  void end_slices(std::uint64_t count) { slices_ -= count; }

  bool is_waiting() const { return slices_ != 0; }

  /// Before a sleep on the bell. False: there is news, so that it would not end.
  bool may_sleep();

  /// After it.
  void end_sleep();

  /// Readable when a sleep is over.
  int bell() const { return bells_[place_].get(); }

 private:
  struct Presence;
  struct Board;

  Presence& presence(std::uint16_t place);
  std::uint8_t* slot(std::size_t channel, std::uint64_t portion);
  std::uint64_t news();

  const NodeGeometry geometry_;
  const std::uint16_t place_;
  const Birthplace birthplace_;
  std::vector<Socket> bells_;
  std::uint8_t* begin_ = nullptr;
  std::uint64_t heard_ = 0; // news
  std::uint64_t slices_ = 0;
  bool has_moved_ = false;
  bool is_asleep_ = false;
};

} // namespace weir::host
