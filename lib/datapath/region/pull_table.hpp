// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/fixed_queue.hpp"
#include "frame/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::region {

/// What is asked of all members for one packet of a reader.
struct Piece {
  std::uint64_t offset = 0; // in the region
  std::uint32_t bytes = 0;  // at most the path MTU; 0: nobody is asked
};

/// An entry at one time: when it is given again, its former name means nothing.
struct EntryName {
  std::uint32_t slot = 0;
  std::uint32_t life = 0;

  bool operator==(const EntryName&) const = default;
};

/// The packets that are gathered for readers: an entry for each, with the payloads of the members
/// that have answered (rules P1 to P3 of docs/protocol.md §13). Its memory is allocated once.
class PullTable {
 public:
  PullTable(std::uint32_t entries, std::uint16_t members);

  bool is_full() const { return free_.empty(); }

  std::uint32_t used() const { return entries() - static_cast<std::uint32_t>(free_.size()); }

  /// Frames of members that are held.
  std::uint64_t held() const { return held_; }

  /// Gives an entry to a reader, behind those that it has. The table is not full.
  void give(std::uint16_t reader, const Piece& piece);

  std::uint32_t entries_of(std::uint16_t reader) const {
    return static_cast<std::uint32_t>(given_[reader].size());
  }

  struct Asked {
    EntryName name;
    Piece piece;
  };

  /// The oldest entry that this member has not been asked for; it counts as asked. nullopt: none.
  std::optional<Asked> ask(std::uint16_t member);

  bool has_to_ask(std::uint16_t member) const { return unasked_[member] != kNone; }

  /// Holds a member's answer for an entry. Returns the entry's reader. nullopt: nobody waits for
  /// it, and it is not held.
  std::optional<std::uint16_t> hold(const EntryName& name, std::uint16_t member,
                                    frame::Frame& frame);

  /// Whether all members have answered for the reader's first entry.
  bool is_ready(std::uint16_t reader) const;

  /// All members' answers for the reader's first entry, by rank.
  std::span<frame::Frame* const> frames_of_first(std::uint16_t reader) const;

  /// Takes the reader's first entry back. Calls `give_up` with each frame of it.
  template <typename GiveUp>
  void take_first(std::uint16_t reader, GiveUp&& give_up) {
    const std::uint32_t slot = given_[reader].front();
    given_[reader].pop();
    take(slot, give_up);
  }

  /// The same for all but the reader's first `kept` entries.
  template <typename GiveUp>
  void take_behind(std::uint16_t reader, std::uint32_t kept, GiveUp&& give_up) {
    endpoint::FixedQueue<std::uint32_t>& given = given_[reader];
    const std::uint32_t all = entries_of(reader);
    for (std::uint32_t place = 0; place < all; ++place) {
      const std::uint32_t slot = given.front();
      given.pop();
      if (place < kept) {
        given.push(slot);
      } else {
        take(slot, give_up);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    Piece piece;
    std::uint32_t life = 0;
    std::uint32_t before = kNone; // given, older
    std::uint32_t behind = kNone; // given, newer
    std::uint16_t reader = 0;
    std::uint16_t missing = 0; // members
    bool is_given = false;
  };

  std::uint32_t entries() const { return static_cast<std::uint32_t>(entries_.size()); }

  frame::Frame*& frame_of(std::uint32_t slot, std::uint16_t member) {
    return frames_[std::size_t{slot} * members_ + member];
  }

  void link(std::uint32_t slot);
  void unlink(std::uint32_t slot);

  template <typename GiveUp>
  void take(std::uint32_t slot, GiveUp&& give_up) {
    unlink(slot);
    const Entry& entry = entries_[slot];
    unsigned here = entry.piece.bytes == 0 ? 0 : members_ - entry.missing;
    for (std::uint16_t member = 0; here != 0; ++member) {
      if (frame::Frame*& frame = frame_of(slot, member); frame != nullptr) {
        give_up(*frame);
        frame = nullptr;
        --held_;
        --here;
      }
    }
    free_.push_back(slot);
  }

  std::uint16_t members_;
  std::vector<Entry> entries_;
  std::vector<frame::Frame*> frames_;                      // by entry and member
  std::vector<std::uint32_t> free_;                        // has room for all
  std::vector<endpoint::FixedQueue<std::uint32_t>> given_; // by reader, in the order of answers
  std::vector<std::uint32_t> unasked_; // by member: the oldest entry that it was not asked for
  std::uint32_t newest_ = kNone;
  std::uint64_t held_ = 0;
};

} // namespace weir::region
