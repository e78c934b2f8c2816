// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/frame_network.hpp"
#include "netsim/message_list.hpp"
#include "netsim/time.hpp"

#include <cassert>
#include <cstdint>
#include <vector>

namespace weir::netsim {

/// What a switch sends for a ring. Children are ranks or switches, in ring order. A child's own
/// connection is that of its last rank. The connection into a child is that of the rank before its
/// first.
class FoldPorts {
 public:
  enum class Press : std::uint8_t { normal, for_acknowledgement };

  virtual ~FoldPorts() = default;

  /// Sends a result to a child.
  virtual void send_down(std::uint32_t child, std::uint32_t packet, Press press) = 0;
  /// Sends a partial sum to the parent.
  virtual void send_up(std::uint32_t packet) = 0;
  /// Sends an answer to the sender of a child's own connection, in its receiver's name.
  virtual void answer_down(std::uint32_t child, Frame::Kind kind, std::uint32_t packet) = 0;
  /// Sends an answer to the sender of the connection into the first child, through the parent.
  virtual void answer_up(Frame::Kind kind, std::uint32_t packet) = 0;
};

/// One switch's part of a ring.
class FoldSwitch {
 public:
  /// Whether an answer goes on to its receiver.
  enum class Passage : std::uint8_t { on, absorbed };

  virtual ~FoldSwitch() = default;

  virtual void take_contribution(std::uint32_t child, std::uint32_t packet, Time now) = 0;
  /// A total came from the parent.
  virtual void take_total(std::uint32_t packet, Time now) = 0;
  /// A receiver in `child` answers on the connection into it.
  virtual Passage see_answer_of(std::uint32_t child, Frame::Kind kind, std::uint32_t packet,
                                Time now) = 0;
  /// An answer came from the parent, on the last child's own connection.
  virtual Passage see_answer_from_above(Frame::Kind kind, std::uint32_t packet, Time now) = 0;
  /// How often it wants to check for what has waited too long; kNever.
  virtual Time interval() const = 0;
  virtual void look_again(Time now) = 0;
  /// Most slots that were filling at once.
  virtual std::uint32_t most_filling() const = 0;
};

/// Slots for 2N messages (docs/protocol.md §4): which children's packets have come.
class SlotTable {
 public:
  SlotTable(std::uint32_t slots, std::uint32_t children)
      : children_(children), words_((children + 63) / 64), tag_(slots, kUntouched), count_(slots),
        bits_(std::size_t{slots} * words_) {}

  static constexpr std::uint32_t kUntouched = UINT32_MAX;

  enum class Finding : std::uint8_t { newer, absent, present, complete };

  /// The state of the slot for a child's packet; `newer`: a later message uses the slot.
  Finding look(std::uint32_t packet, std::uint32_t child) const {
    const std::uint32_t slot = slot_of(packet);
    if (tag_[slot] != packet) {
      return tag_[slot] == kUntouched || tag_[slot] < packet ? Finding::absent : Finding::newer;
    }
    if (count_[slot] == children_) {
      return Finding::complete;
    }
    const bool is_there = (bits_[word_of(slot, child)] >> (child % 64) & 1) != 0;
    return is_there ? Finding::present : Finding::absent;
  }

  bool is_complete(std::uint32_t packet) const {
    const std::uint32_t slot = slot_of(packet);
    return tag_[slot] == packet && count_[slot] == children_;
  }

  /// The packet must be absent. Returns whether it was the last one.
  bool store(std::uint32_t packet, std::uint32_t child) {
    const std::uint32_t slot = slot_of(packet);
    if (tag_[slot] != packet) {
      tag_[slot] = packet;
      count_[slot] = 0;
      for (std::uint32_t word = 0; word < words_; ++word) {
        bits_[std::size_t{slot} * words_ + word] = 0;
      }
      most_filling_ = ++filling_ > most_filling_ ? filling_ : most_filling_;
    }
    assert(count_[slot] < children_);
    bits_[word_of(slot, child)] |= std::uint64_t{1} << (child % 64);
    const bool is_last = ++count_[slot] == children_;
    filling_ -= is_last ? 1 : 0;
    return is_last;
  }

  /// Slots that have some packets but not all.
  std::uint32_t filling() const { return filling_; }

  std::uint32_t most_filling() const { return most_filling_; }

 private:
  std::uint32_t slot_of(std::uint32_t packet) const {
    return packet % static_cast<std::uint32_t>(tag_.size());
  }

  std::size_t word_of(std::uint32_t slot, std::uint32_t child) const {
    return std::size_t{slot} * words_ + child / 64;
  }

  std::uint32_t children_;
  std::uint32_t words_;
  std::vector<std::uint32_t> tag_; // packet
  std::vector<std::uint32_t> count_;
  std::vector<std::uint64_t> bits_;
  std::uint32_t filling_ = 0;
  std::uint32_t most_filling_ = 0;
};

/// A switch's place in a ring's tree.
struct FoldPlace {
  enum class Level : std::uint8_t { root, below };
  enum class Child : std::uint8_t { rank, fold_switch };

  std::vector<Child> children; // in ring order
  Level level = Level::root;
  std::uint32_t slots = 0; // 2N · packets of a message

  std::uint32_t count() const { return static_cast<std::uint32_t>(children.size()); }

  bool is_rank(std::uint32_t child) const { return children[child] == Child::rank; }

  std::uint32_t successor_of(std::uint32_t child) const {
    return child + 1 == count() ? 0 : child + 1;
  }
};

} // namespace weir::netsim
