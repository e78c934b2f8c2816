// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/fixed_queue.hpp"
#include "recovery/flow.hpp"
#include "recovery/smoothed_time.hpp"
#include "region/pull_table.hpp"
#include "region/speech.hpp"
#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace weir::region {

inline constexpr std::uint64_t kNever = UINT64_MAX;

/// A packet of a source's, or a READ, on the connection of one target.
struct Copy {
  std::uint16_t source = 0;  // member; not of a READ
  std::uint64_t request = 0; // number of the source's request, or of the READ
  AckRequest ack_request = AckRequest::no;
  bool is_read = false;
  bool is_done = false;      // the member has it, or has answered it
  bool is_again = false;     // it was sent more than once, so its acknowledgement measures nothing
  std::uint64_t sent_ns = 0; // at first
};

/// The switch as a requester of one member: the copies that the member has not acknowledged and the
/// READs that it has not answered, in the order of their PSNs, and when they are sent (rules W3,
/// W4, P2, P3 and P5 of docs/protocol.md §13). Each keeps its PSN.
class Requester {
 public:
  /// Copies that may be under way at a time.
  static constexpr std::uint64_t kFlight = 256;
  /// A responder may acknowledge on request only, so a copy in so many asks for it.
  static constexpr std::uint64_t kAckEvery = 16;
  /// Before a member is given up, when its timer has become as long as it may.
  static constexpr std::uint64_t kAttempts = 16;

  /// `patience`: a member that says nothing for so many ns is given up, after some attempts.
  /// `most_copies` are unacknowledged at a time. A member remembers its last `most_reads` READs,
  /// and drops the repeat of an older one.
  Requester(std::uint32_t first_psn, std::size_t most_copies, std::uint32_t most_reads,
            std::uint64_t patience)
      : first_psn_(first_psn), copies_(most_copies + behind_reads(most_reads)), reads_(most_reads),
        most_reads_(most_reads), longest_timer_(patience / kAttempts) {}

  void add(const Copy& copy, std::uint64_t now);

  /// Whether the member will remember all unanswered READs when it gets one more: that is a span of
  /// READs, answered ones too.
  bool has_room_for_read() const { return reads_.size() < most_reads_; }

  /// Adds a READ that there is room for.
  void add_read(const PullTable::Asked& asked, std::uint64_t now);

  /// What a READ of next() asks for.
  const Piece& piece_of(const Copy& read) const { return reads_[read.request].asked.piece; }

  struct Due {
    Copy copy;
    std::uint32_t psn = 0;
  };

  /// A copy that is to be sent now; it counts as sent. nullopt: none is.
  std::optional<Due> next(std::uint64_t now);

  enum class Outcome : std::uint8_t {
    taken,
    ghost,   // it acknowledges what was not sent
    refused, // a fatal NAK
  };

  /// An ACK, NAK or RNR NAK of the member. Calls `has` with each copy that the member has by now.
  /// It answers no READ: when one below it has no answer, that is lost.
  template <typename Has>
  Outcome take(std::uint8_t syndrome, std::uint32_t psn, std::uint64_t now, Has&& has);

  /// The response to a READ, with so many bytes. Likewise. Returns the entry that the READ was for;
  /// nullopt: no READ waits for it.
  template <typename Has>
  std::optional<EntryName> take_response(std::uint32_t psn, std::size_t bytes, std::uint64_t now,
                                         Has&& has);

  /// Has all that is unacknowledged sent again when the timer has run out.
  void poll(std::uint64_t now);

  /// When poll() and next() are worth calling.
  std::uint64_t next_timer() const;

  /// The last sign of life, or the end of the wait that the member wanted, while something is
  /// unacknowledged; kNever: nothing is.
  std::uint64_t waits_since() const {
    return copies_.empty() ? kNever : std::max(heard_ns_, hushed_until_);
  }

  /// Copies, and READs that are not answered.
  std::uint64_t unacknowledged() const { return unacknowledged_; }

  /// Calls `act` with each copy that was sent and is not acknowledged: at most kFlight.
  template <typename Act>
  void for_each_under_way(Act&& act) const {
    for (std::uint64_t number = copies_.first(); number < sent_end_; ++number) {
      if (const Copy& copy = copies_[number]; !copy.is_done && !copy.is_read) {
        act(copy);
      }
    }
  }

  /// Nothing is sent any more.
  void clear();

  /// After clear(): what is under way no more, for its receiver to free. Nothing is added any more.
  endpoint::FixedQueue<Copy> give_storage() { return std::move(copies_); }

 private:
  /// Most READs, and copies that are done but stay behind an unanswered READ.
  static std::size_t behind_reads(std::uint32_t most_reads) {
    return most_reads == 0 ? 0 : kFlight + most_reads;
  }

  std::uint32_t psn_of(std::uint64_t number) const {
    return wire::psn_add(first_psn_, static_cast<std::int64_t>(number));
  }

  struct Asking {
    PullTable::Asked asked;
    bool is_answered = false;
  };

  void push(const Copy& copy, std::uint64_t now);
  void skip_done();
  bool is_last_repeat() const;
  void pop_done();
  template <typename Has>
  bool count_off(std::uint64_t end, std::uint64_t now, Has&& has);
  std::uint64_t timeout() const;
  void moved(std::uint64_t now);
  void measure(const Copy& copy, std::uint64_t now);
  void take_nak(std::uint64_t now);
  void take_rnr(std::uint8_t timer_code, std::uint64_t now);
  void go_back(std::uint64_t now);

  std::uint32_t first_psn_;
  endpoint::FixedQueue<Copy> copies_;  // by number, counted from the first PSN
  endpoint::FixedQueue<Asking> reads_; // from the oldest unanswered one on
  std::uint32_t most_reads_;
  std::uint64_t unacknowledged_ = 0;
  std::uint64_t cursor_ = 0;   // the copy that is sent next
  std::uint64_t sent_end_ = 0; // behind the last one that was ever sent
  std::uint64_t moved_ns_ = 0; // progress, or the first copy after none
  std::uint64_t heard_ns_ = 0; // the same, or an RNR NAK
  std::uint64_t resent_ns_ = 0;
  std::uint64_t went_back_to_ = kNever; // the last time
  std::uint64_t hushed_until_ = 0;      // an RNR wait
  std::uint64_t flight_ = kFlight;
  std::uint32_t doublings_ = 0; // of the timer
  std::uint64_t longest_timer_;
  recovery::SmoothedTime round_trip_;
};

/// The member has all copies below `end`. Whether a READ below it is not answered.
template <typename Has>
bool Requester::count_off(std::uint64_t end, std::uint64_t now, Has&& has) {
  bool lacks_response = false;
  for (std::uint64_t number = copies_.first(); number != end; ++number) {
    Copy& copy = copies_[number];
    lacks_response = lacks_response || (copy.is_read && !copy.is_done);
    if (copy.is_read || copy.is_done) {
      continue;
    }
    if (number + 1 == end) {
      measure(copy, now);
    }
    copy.is_done = true;
    --unacknowledged_;
    has(copy);
    moved(now);
  }
  return lacks_response;
}

template <typename Has>
std::optional<EntryName> Requester::take_response(std::uint32_t psn, std::size_t bytes,
                                                  std::uint64_t now, Has&& has) {
  const std::int64_t ahead = wire::psn_distance(psn_of(copies_.first()), psn);
  if (ahead < 0 || ahead >= static_cast<std::int64_t>(sent_end_ - copies_.first())) {
    return std::nullopt;
  }
  const std::uint64_t number = copies_.first() + static_cast<std::uint64_t>(ahead);
  Copy& read = copies_[number];
  if (!read.is_read || read.is_done || piece_of(read).bytes != bytes) {
    return std::nullopt;
  }
  const bool lacks_response = count_off(number, now, has);
  Asking& asking = reads_[read.request];
  const EntryName entry = asking.asked.name;
  asking.is_answered = true;
  read.is_done = true;
  --unacknowledged_;
  measure(read, now);
  moved(now);
  pop_done();
  if (lacks_response) {
    take_nak(now);
  }
  return entry;
}

template <typename Has>
Requester::Outcome Requester::take(std::uint8_t syndrome, std::uint32_t psn, std::uint64_t now,
                                   Has&& has) {
  const std::int64_t ahead = wire::psn_distance(psn_of(copies_.first()), psn);
  if (ahead >= static_cast<std::int64_t>(sent_end_ - copies_.first())) {
    return Outcome::ghost;
  }
  const bool is_reserved = wire::kind_of(syndrome) == wire::SyndromeKind::reserved;
  if (ahead < 0 || is_reserved) {
    return Outcome::taken; // it was overtaken, or says nothing that is known
  }
  const bool is_ack = wire::kind_of(syndrome) == wire::SyndromeKind::acknowledge;
  const std::uint64_t end = copies_.first() + static_cast<std::uint64_t>(ahead) + (is_ack ? 1 : 0);
  const bool lacks_response = count_off(end, now, has);
  pop_done();
  switch (wire::kind_of(syndrome)) {
  case wire::SyndromeKind::acknowledge:
  case wire::SyndromeKind::reserved:
    if (lacks_response) {
      take_nak(now);
    }
    return Outcome::taken;
  case wire::SyndromeKind::rnr:
    take_rnr(wire::value_of(syndrome), now);
    return Outcome::taken;
  case wire::SyndromeKind::nak:
    break;
  }
  if (wire::value_of(syndrome) != static_cast<std::uint8_t>(wire::NakCode::sequence_error)) {
    return Outcome::refused;
  }
  take_nak(now);
  return Outcome::taken;
}

} // namespace weir::region
