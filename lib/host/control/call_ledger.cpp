// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/call_ledger.hpp"

#include "host/control/stall_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace weir::host {

void CallLedger::note(std::uint16_t rank, const Call& call) {
  if (call.sequence != ranks_[rank].made + 1) {
    throw Error(ErrorCode::transport_failure, rank,
                fmt::format("rank {} tells of call {}; call {} is due", rank, call.sequence,
                            ranks_[rank].made + 1));
  }
  if (rank == 0) {
    note_of_rank_0(call);
  } else if (call.sequence <= ranks_[0].made) {
    compare(rank, call);
  } else if (ranks_[rank].ahead.size() == kMostAhead) {
    throw Error(ErrorCode::transport_failure, rank,
                fmt::format("rank {} makes call {}; rank 0 has made {}; allowed: {} calls more; a "
                            "barrier waits for rank 0",
                            rank, call.sequence, ranks_[0].made, kMostAhead));
  } else {
    ranks_[rank].ahead.push_back(call);
  }
  most_ = std::max(most_, ++ranks_[rank].made);
  assert(last_ranks_ != 0);
  if (call.sequence == settled_ + 1 && --last_ranks_ == 0) {
    settle();
  }
}

Error CallLedger::too_far_ahead(std::uint64_t sequence) const {
  const std::vector<std::uint16_t> late = lacking(first_open());
  return {ErrorCode::transport_failure, late.front(),
          fmt::format("rank 0 makes call {}; {} made {}; allowed: {} calls more", sequence,
                      named(late), settled_, kMostAhead)};
}

void CallLedger::note_of_rank_0(const Call& call) {
  if (!has_room()) {
    throw too_far_ahead(call.sequence);
  }
  open_.push_back(call);
  for (std::uint16_t rank = 1; rank < ranks_.size(); ++rank) {
    std::deque<Call>& ahead = ranks_[rank].ahead;
    if (!ahead.empty()) {
      compare(rank, ahead.front());
      ahead.pop_front();
    }
  }
}

void CallLedger::compare(std::uint16_t rank, const Call& call) const {
  assert(call.sequence > settled_ && call.sequence - settled_ <= open_.size());
  const Call& own = open_[call.sequence - settled_ - 1];
  if (call != own) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("call {}: rank {} calls {}; rank 0 calls {}", call.sequence, rank,
                            describe(call), describe(own)));
  }
}

/// Every rank has made the first open call.
void CallLedger::settle() {
  assert(!open_.empty());
  ++settled_;
  open_.pop_front();
  last_ranks_ = static_cast<std::size_t>(std::ranges::count(ranks_, settled_, &Rank::made));
}

std::vector<std::uint16_t> CallLedger::lacking(std::uint64_t sequence) const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].made < sequence) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

} // namespace weir::host
