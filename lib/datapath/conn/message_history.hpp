// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/prefetch.hpp"
#include "recovery/result_template.hpp"
#include "wire/message_shape.hpp"
#include "wire/psn.hpp"

#include <cassert>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::conn {

/// One message of a connection, as described by its FIRST or ONLY.
struct MessageRecord {
  std::uint64_t message = 0;    // index in the sequence, extended past 32 bits
  std::uint32_t first_psn = 0;  // of its FIRST or ONLY; unknown: that of the next known message
  std::uint32_t packets = 0;    // 0: unknown, its FIRST has not come
  std::uint32_t first_slot = 0; // (message mod 2N) x L
  wire::MessageShape shape;
  recovery::MessageHeaders headers{}; // of the packets that have come

  bool is_known() const { return packets != 0; }

  /// The number in the message of the packet with this PSN, or some number that is too great.
  std::uint32_t packet_of(std::uint32_t psn) const { return (psn - first_psn) & wire::kPsnMask; }
};

/// The messages M-2N+1 .. M of one connection and the floor below them (docs/protocol.md §3,
/// "message history").
///
/// Message ids are extended to 64 bits relative to M. So `mod 2N` stays continuous when the 32-bit
/// id wraps, for any N.
class MessageHistory {
 public:
  /// `records` has 2N entries and outlives the history. L slots belong to each message.
  MessageHistory(std::span<MessageRecord> records, std::uint32_t packets_per_message);

  /// Forgets everything. Message 0, the hello, is then the newest: one packet at `psn`.
  void begin(std::uint32_t psn, const wire::MessageShape& shape);

  /// Message 0, right after begin().
  MessageRecord* greeting() const { return records_.data(); }

  enum class Entry : std::uint8_t {
    entered,  // was unknown or new; M may have advanced
    repeat,   // known, with the same PSN and shape
    stale,    // older than the history
    too_far,  // more than N past M, or before the sequence began
    conflict, // known at another PSN or in another shape, or overlaps another message
  };

  struct Entered {
    Entry entry;
    MessageRecord* record; // nullptr for stale, too_far and conflict
  };

  /// A FIRST or ONLY of message `id`.
  Entered enter(std::uint32_t id, std::uint32_t psn, std::uint32_t packets,
                const wire::MessageShape& shape);

  enum class Place : std::uint8_t { inside, stale, unknown };

  struct Located {
    Place place;
    MessageRecord* record; // set when inside
    std::uint32_t packet;  // k = psn - first_psn
  };

  /// Finds the message of any other packet. Reads about log2(2N) records at most. If a host's known
  /// messages span 2^24 PSNs or more, the answer may be `unknown`; the configuration keeps 2N x L
  /// far below that.
  Located locate(std::uint32_t psn) {
    const std::uint32_t packet = last_found_->packet_of(psn);
    assert(last_found_->packets <= packets_per_message_);
    return packet < last_found_->packets ? Located{Place::inside, last_found_, packet}
                                         : locate_elsewhere(psn);
  }

  /// The message whose packet locate() or enter() found last.
  MessageRecord* last_found() const { return last_found_; }

  /// The slot of a packet of the message that was found last, or of the next one, if that is as
  /// long.
  std::optional<std::uint32_t> probable_slot(std::uint32_t psn) const {
    const std::uint32_t packets = last_found_->packets;
    const std::uint32_t packet = last_found_->packet_of(psn);
    if (packet < packets) {
      return last_found_->first_slot + packet;
    }
    if (packet - packets >= packets) {
      return std::nullopt;
    }
    const std::uint32_t next = last_found_->first_slot + packets_per_message_;
    return (next == packets_per_message_ * depth() ? 0 : next) + (packet - packets);
  }

  /// Asks for what locate() and enter() use of the message that was found last and of the next one.
  void load() const {
    frame::prefetch(last_found_);
    frame::prefetch(last_found_ + 1);
  }

  std::uint64_t newest() const { return newest_; }

  /// Calls `visit` with each known message that may have a packet at `psn` or behind it, oldest
  /// first, until it returns false. Takes time for the messages, not for the PSNs between them, of
  /// which a host may leave out millions.
  template <typename Visitor>
  void for_each_known_from(std::uint32_t psn, Visitor&& visit) {
    const bool is_older = wire::psn_before(psn, record_of(oldest()).first_psn);
    std::uint64_t message = oldest() + (is_older ? 0 : last_not_behind(psn));
    for (; message <= newest_; ++message) {
      if (MessageRecord* record = known(message); record != nullptr && !visit(*record)) {
        return;
      }
    }
  }

  /// Whether the PSN is of a message that has left the history.
  bool is_below_floor(std::uint32_t psn) const { return floor_ && wire::psn_before(psn, *floor_); }

 private:
  std::uint64_t depth() const { return records_.size(); }

  std::uint64_t oldest() const { return newest_ < depth() ? 0 : newest_ - depth() + 1; }

  MessageRecord& record_of(std::uint64_t message) { return records_[message % depth()]; }

  MessageRecord* known(std::uint64_t message);
  bool overlaps_neighbour(std::uint64_t message, std::uint32_t psn, std::uint32_t packets);
  const MessageRecord* nearest_before(std::uint64_t message);
  const MessageRecord* nearest_after(std::uint64_t message);
  Located locate_elsewhere(std::uint32_t psn);
  std::size_t last_not_behind(std::uint32_t psn);

  /// The message that is so many behind the oldest one.
  MessageRecord& record_behind_oldest(std::size_t index) {
    const std::size_t place = oldest() % depth() + index;
    return records_[place < depth() ? place : place - depth()];
  }

  void place_unknown_before(std::uint64_t message, std::uint32_t psn);
  void move_newest_to(std::uint64_t message, std::uint32_t psn);
  void raise_floor_past(const MessageRecord& leaving);

  std::span<MessageRecord> records_; // message m at m mod 2N
  std::uint32_t packets_per_message_;
  std::uint64_t newest_ = 0;
  MessageRecord* last_found_; // which locate() tries first
  std::optional<std::uint32_t> floor_;
};

} // namespace weir::conn
