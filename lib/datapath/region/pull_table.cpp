// SPDX-License-Identifier: BSD-3-Clause
#include "region/pull_table.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace weir::region {

PullTable::PullTable(std::uint32_t entries, std::uint16_t members)
    : members_(members), entries_(entries), frames_(std::size_t{entries} * members), free_(entries),
      unasked_(members, kNone) {
  std::iota(free_.rbegin(), free_.rend(), 0);
  given_.reserve(members);
  for (std::uint16_t reader = 0; reader < members; ++reader) {
    given_.emplace_back(std::max(entries, 1U));
  }
}

void PullTable::give(std::uint16_t reader, const Piece& piece) {
  assert(!is_full());
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  Entry& entry = entries_[slot];
  entry.piece = piece;
  entry.reader = reader;
  entry.missing = piece.bytes == 0 ? 0 : members_;
  given_[reader].push(slot);
  link(slot);
}

void PullTable::link(std::uint32_t slot) {
  Entry& entry = entries_[slot];
  entry.is_given = true;
  ++entry.life;
  entry.before = newest_;
  entry.behind = kNone;
  if (newest_ != kNone) {
    entries_[newest_].behind = slot;
  }
  newest_ = slot;
  for (std::uint32_t& unasked : unasked_) {
    unasked = unasked == kNone ? slot : unasked;
  }
}

void PullTable::unlink(std::uint32_t slot) {
  Entry& entry = entries_[slot];
  assert(entry.is_given);
  entry.is_given = false;
  if (entry.before != kNone) {
    entries_[entry.before].behind = entry.behind;
  }
  if (entry.behind != kNone) {
    entries_[entry.behind].before = entry.before;
  }
  newest_ = newest_ == slot ? entry.before : newest_;
  std::ranges::replace(unasked_, slot, entry.behind);
}

std::optional<PullTable::Asked> PullTable::ask(std::uint16_t member) {
  std::uint32_t& unasked = unasked_[member];
  while (unasked != kNone) {
    const std::uint32_t slot = unasked;
    const Entry& entry = entries_[slot];
    unasked = entry.behind;
    if (entry.piece.bytes != 0) {
      return Asked{{slot, entry.life}, entry.piece};
    }
  }
  return std::nullopt;
}

std::optional<std::uint16_t> PullTable::hold(const EntryName& name, std::uint16_t member,
                                             frame::Frame& frame) {
  Entry& entry = entries_[name.slot];
  if (!entry.is_given || entry.life != name.life) {
    return std::nullopt;
  }
  frame::Frame*& place = frame_of(name.slot, member);
  assert(place == nullptr && entry.missing != 0); // a READ has one answer
  place = &frame;
  --entry.missing;
  ++held_;
  return entry.reader;
}

bool PullTable::is_ready(std::uint16_t reader) const {
  return !given_[reader].empty() && entries_[given_[reader].front()].missing == 0;
}

std::span<frame::Frame* const> PullTable::frames_of_first(std::uint16_t reader) const {
  const std::uint32_t slot = given_[reader].front();
  return {frames_.data() + std::size_t{slot} * members_, members_};
}

} // namespace weir::region
