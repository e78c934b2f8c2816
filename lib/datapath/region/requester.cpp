// SPDX-License-Identifier: BSD-3-Clause
#include "region/requester.hpp"

#include <cassert>

namespace weir::region {
namespace {

constexpr std::uint64_t kProbe = 1;     // copies under way to a member that may not take any
constexpr std::uint64_t kRnrMargin = 2; // times the wait that the member's code names

} // namespace

void Requester::add(const Copy& copy, std::uint64_t now) {
  push(copy, now);
}

void Requester::add_read(const PullTable::Asked& asked, std::uint64_t now) {
  assert(has_room_for_read());
  push({.request = reads_.end(), .ack_request = AckRequest::yes, .is_read = true}, now);
  reads_.push({asked});
}

void Requester::push(const Copy& copy, std::uint64_t now) {
  if (copies_.empty()) {
    moved(now);
  }
  copies_.push(copy);
  ++unacknowledged_;
}

/// Where a repeat meets what the member has, it goes on behind it.
void Requester::skip_done() {
  while (cursor_ < sent_end_ && copies_[cursor_].is_done) {
    ++cursor_;
  }
}

bool Requester::is_last_repeat() const {
  std::uint64_t number = cursor_ + 1;
  while (number < sent_end_ && copies_[number].is_done) {
    ++number;
  }
  return number == sent_end_;
}

/// What is done behind an unanswered READ stays.
void Requester::pop_done() {
  while (!copies_.empty() && copies_.front().is_done) {
    copies_.pop();
  }
  while (!reads_.empty() && reads_.front().is_answered) {
    reads_.pop();
  }
  cursor_ = std::max(cursor_, copies_.first());
}

std::optional<Requester::Due> Requester::next(std::uint64_t now) {
  skip_done();
  if (now < hushed_until_ || cursor_ == copies_.end() || cursor_ - copies_.first() >= flight_) {
    return std::nullopt;
  }
  Copy& copy = copies_[cursor_];
  const bool is_end_of_repeats = cursor_ < sent_end_ && is_last_repeat();
  if (cursor_ < sent_end_) {
    copy.is_again = true;
  } else {
    copy.sent_ns = now;
    sent_end_ = cursor_ + 1;
  }
  Due due{copy, psn_of(cursor_)};
  if (is_end_of_repeats || flight_ == kProbe || cursor_ % kAckEvery == kAckEvery - 1) {
    due.copy.ack_request = AckRequest::yes;
  }
  ++cursor_;
  return due;
}

void Requester::moved(std::uint64_t now) {
  moved_ns_ = heard_ns_ = now;
  flight_ = kFlight;
}

/// The timer stays as long as it has become until an answer tells which copy it is for (Karn and
/// Partridge, SIGCOMM'87).
void Requester::measure(const Copy& copy, std::uint64_t now) {
  if (!copy.is_again) {
    round_trip_.take(now - copy.sent_ns);
    doublings_ = 0;
  }
}

/// A member that says the same again gets nothing for it before the timer's time.
void Requester::take_nak(std::uint64_t now) {
  const bool is_news = went_back_to_ != copies_.first() || now >= resent_ns_ + timeout();
  if (now >= hushed_until_ && is_news) {
    go_back(now);
  }
}

/// The member lives. When its wait is over it gets one copy, and the others when it has taken that.
void Requester::take_rnr(std::uint8_t timer_code, std::uint64_t now) {
  heard_ns_ = now;
  hushed_until_ = now + kRnrMargin * static_cast<std::uint64_t>(wire::rnr_wait(timer_code).count());
  flight_ = kProbe;
  go_back(hushed_until_);
}

/// The timer runs from `now`.
void Requester::go_back(std::uint64_t now) {
  cursor_ = went_back_to_ = copies_.first();
  resent_ns_ = now;
}

std::uint64_t Requester::timeout() const {
  const std::uint64_t measured = round_trip_.timeout(recovery::kTimerGranularity);
  const std::uint64_t plain =
      measured == 0 ? recovery::kFirstTimer : std::max(measured, recovery::kTimerFloor);
  return std::max(plain, std::min(plain << doublings_, longest_timer_));
}

std::uint64_t Requester::next_timer() const {
  if (copies_.empty()) {
    return kNever;
  }
  const bool is_under_way = cursor_ != copies_.first();
  return is_under_way ? std::max(moved_ns_, resent_ns_) + timeout() : hushed_until_;
}

void Requester::poll(std::uint64_t now) {
  if (cursor_ == copies_.first() || now < next_timer()) {
    return;
  }
  doublings_ = std::min(doublings_ + 1, recovery::kMostDoublings);
  flight_ = kProbe;
  go_back(now);
}

void Requester::clear() {
  copies_.clear();
  reads_.clear();
  unacknowledged_ = 0;
  cursor_ = copies_.first();
}

} // namespace weir::region
