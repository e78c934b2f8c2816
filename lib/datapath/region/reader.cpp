// SPDX-License-Identifier: BSD-3-Clause
#include "region/reader.hpp"

#include "endpoint/config.hpp"
#include "wire/psn.hpp"

#include <algorithm>
#include <cassert>

namespace weir::region {
namespace {

constexpr std::int32_t kOld = 3 << 21; // so far back PSNs have an order; more than all READs take

Part part_of(std::uint32_t packet, std::uint32_t first, std::uint32_t end) {
  if (packet == first) {
    return packet + 1 == end ? Part::only : Part::first;
  }
  return packet + 1 == end ? Part::last : Part::middle;
}

} // namespace

Reader::Reader(std::uint32_t mtu, std::uint32_t most_reads)
    : mtu_(mtu), most_reads_(most_reads), reads_(most_reads), again_(most_reads) {}

/// An honest member has all of what it asked for before its last most_reads_ READs.
std::optional<std::uint32_t> Reader::accept(const Read& read) {
  assert(has_room());
  const std::size_t again = again_.size();
  if (reads_.size() == most_reads_) {
    for (std::size_t left = again; left != 0; --left) {
      const Again one = again_.front();
      again_.pop();
      if (one.read != reads_.first()) {
        again_.push(one);
      }
    }
    reads_.pop();
  }
  reads_.push(read);
  return again == again_.size() ? std::nullopt : std::optional(0U);
}

/// What of a remembered READ has been answered, and is asked for again. nullopt: nothing, or the
/// request does not fit the READ.
std::optional<Reader::Again> Reader::part_of(const endpoint::ReadRequest& request) const {
  for (std::uint64_t number = reads_.first(); number != reads_.end(); ++number) {
    const Read& read = reads_[number];
    const std::int32_t ahead = wire::psn_distance(read.psn, request.psn);
    if (ahead < 0 || ahead >= static_cast<std::int32_t>(read.answered)) {
      continue;
    }
    const auto from = static_cast<std::uint32_t>(ahead);
    const std::uint32_t skipped = from * mtu_;
    if (request.remote_key != read.key || request.address != read.address + skipped ||
        request.bytes > read.bytes - skipped || request.bytes % kReadUnit != 0) {
      return std::nullopt;
    }
    const std::uint32_t bytes_end = skipped + request.bytes;
    const auto end = static_cast<std::uint32_t>(endpoint::packets_of(bytes_end, mtu_));
    return Again{number, from, from, std::max(from, std::min(end, read.answered)), bytes_end};
  }
  return std::nullopt;
}

std::uint32_t Reader::psn_of(const Again& again) const {
  return wire::psn_add(reads_[again.read].psn, again.next);
}

bool Reader::is_within_again(std::uint32_t psn) const {
  for (std::uint64_t number = again_.first(); number != again_.end(); ++number) {
    const std::int32_t ahead = wire::psn_distance(psn_of(again_[number]), psn);
    if (ahead >= 0 && ahead < static_cast<std::int32_t>(again_[number].left())) {
      return true;
    }
  }
  return false;
}

bool Reader::is_inside(std::uint32_t psn) const {
  for (std::uint64_t number = reads_.first(); number != reads_.end(); ++number) {
    const std::int32_t ahead = wire::psn_distance(reads_[number].psn, psn);
    if (ahead > 0 && ahead < static_cast<std::int32_t>(reads_[number].packets)) {
      return true;
    }
  }
  return false;
}

std::uint32_t Reader::due_again() const {
  std::uint32_t due = 0;
  for (std::uint64_t number = again_.first(); number != again_.end(); ++number) {
    due += again_[number].left();
  }
  return due;
}

/// A member that goes back repeats all its READs, so that what follows comes again, too.
std::optional<std::uint32_t> Reader::repeat(const endpoint::ReadRequest& request) {
  const std::optional<Again> part = part_of(request);
  if (!part || part->left() == 0) {
    return std::nullopt;
  }
  if (!again_.empty() && request.psn == psn_of(again_.front())) {
    const Again front = again_.front();
    again_.clear();
    again_.push(front);
    return front.left();
  }
  if (!again_.empty() && !wire::psn_before(psn_of(again_[again_.end() - 1]), request.psn)) {
    again_.clear();
  } else if (is_within_again(request.psn) || again_.size() == most_reads_) {
    return std::nullopt;
  }
  const std::uint32_t kept = due_again();
  again_.push(*part);
  return kept;
}

/// A repeat begins with FIRST or ONLY (P6), and ends where it asked to end.
Answer Reader::answer(const Read& read, const Again& again, std::uint32_t packet) const {
  const std::uint32_t at = packet * mtu_;
  const auto end = static_cast<std::uint32_t>(endpoint::packets_of(again.bytes_end, mtu_));
  return {.psn = wire::psn_add(read.psn, packet),
          .part = region::part_of(packet, again.from, end),
          .offset = read.offset + at,
          .bytes = std::min(mtu_, again.bytes_end - at),
          .view = read.view};
}

std::optional<Answer> Reader::due(std::uint32_t after) const {
  for (std::uint64_t number = again_.first(); number != again_.end(); ++number) {
    const Again& again = again_[number];
    if (after < again.left()) {
      return answer(reads_[again.read], again, again.next + after);
    }
    after -= again.left();
  }
  for (std::uint64_t number = due_; number != reads_.end(); ++number) {
    const Read& read = reads_[number];
    if (after < read.packets - read.answered) {
      return answer(read, {.bytes_end = read.bytes}, read.answered + after);
    }
    after -= read.packets - read.answered;
  }
  return std::nullopt;
}

void Reader::leave() {
  if (!again_.empty()) {
    Again& again = again_.front();
    if (++again.next == again.end) {
      again_.pop();
    }
    return;
  }
  Read& read = reads_[due_];
  if (++read.answered == read.packets) {
    ++due_;
  }
}

void Reader::forget_old(std::uint32_t unanswered) {
  while (reads_.first() != due_ && again_.empty() &&
         wire::psn_distance(reads_.front().psn, unanswered) > kOld) {
    reads_.pop();
  }
}

std::optional<std::uint32_t> Reader::psn_below_all() const {
  return reads_.empty() ? std::nullopt : std::optional(wire::psn_add(reads_.front().psn, -1));
}

} // namespace weir::region
