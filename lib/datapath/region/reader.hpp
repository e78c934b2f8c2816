// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/fixed_queue.hpp"
#include "endpoint/read_packets.hpp"
#include "region/spec.hpp"

#include <cstdint>
#include <optional>

namespace weir::region {

/// A READ of a member's, of at least one packet.
struct Read {
  std::uint32_t psn = 0;
  std::uint32_t packets = 1;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t offset = 0; // in the region
  std::uint32_t bytes = 0;
  std::uint16_t view = 0;
  std::uint32_t answered = 0; // packets
};

/// The place of a packet in what answers a READ or a repeat of it.
enum class Part : std::uint8_t { first, middle, last, only };

/// One packet that answers a READ.
struct Answer {
  std::uint32_t psn = 0;
  Part part = Part::only;
  std::uint64_t offset = 0; // in the region
  std::uint32_t bytes = 0;
  std::uint16_t view = 0;
};

/// The last READs of a member, and which answers are due to it, in the order in which they leave:
/// first what is answered again (rule P4 of docs/protocol.md §13), then what is new. It knows no
/// data.
class Reader {
 public:
  /// `mtu` is the most bytes of an answer; `most_reads` READs are remembered.
  Reader(std::uint32_t mtu, std::uint32_t most_reads);

  /// Whether the member may have one more READ unanswered.
  bool has_room() const { return unanswered_reads() < most_reads_; }

  /// Takes a READ of a member that has_room(). The oldest one is forgotten for it. Returns how many
  /// of the answers that were due first are still so; nullopt: all.
  std::optional<std::uint32_t> accept(const Read& read);

  /// Takes a READ below A. It is answered again, before all that is new. But if it is none of those
  /// that are remembered, or is answered again already, it changes nothing. Returns as accept().
  std::optional<std::uint32_t> repeat(const endpoint::ReadRequest& request);

  bool is_answering_again() const { return !again_.empty(); }

  /// Packets of the oldest unanswered READ that are answered; 0: none, or there is no such READ.
  std::uint32_t answered_of_oldest() const {
    return due_ == reads_.end() ? 0 : reads_[due_].answered;
  }

  /// Whether a READ that is remembered has this PSN, and not as its first.
  bool is_inside(std::uint32_t psn) const;

  /// The answer that leaves after so many others. nullopt: none does.
  std::optional<Answer> due(std::uint32_t after) const;

  /// The first answer that was due leaves.
  void leave();

  /// Forgets READs that are so far below A that their PSNs soon mean something else.
  void forget_old(std::uint32_t unanswered);

  /// The PSN below all READs that are remembered.
  std::optional<std::uint32_t> psn_below_all() const;

  std::uint64_t unanswered_reads() const { return reads_.end() - due_; }

 private:
  /// A part of a READ that is answered again. Packets count from the READ's first.
  struct Again {
    std::uint64_t read = 0; // number
    std::uint32_t from = 0;
    std::uint32_t next = 0;
    std::uint32_t end = 0;
    std::uint32_t bytes_end = 0; // of what was asked for, counted from the READ's first

    std::uint32_t left() const { return end - next; }
  };

  std::optional<Again> part_of(const endpoint::ReadRequest& request) const;
  std::uint32_t psn_of(const Again& again) const;
  bool is_within_again(std::uint32_t psn) const;
  std::uint32_t due_again() const;
  Answer answer(const Read& read, const Again& again, std::uint32_t packet) const;

  std::uint32_t mtu_;
  std::uint32_t most_reads_;
  endpoint::FixedQueue<Read> reads_; // at most most_reads_
  endpoint::FixedQueue<Again> again_;
  std::uint64_t due_ = 0; // the oldest READ that is not wholly answered, or reads_.end()
};

} // namespace weir::region
