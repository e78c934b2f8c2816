// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/queue_pair.hpp"

#include <algorithm>

namespace weir::netsim {

std::optional<Sender::Departure> Sender::transmit(Time now) {
  if (has_failed_ || hold_until_ != kNever || next_ == messages_.first_of(posted_) ||
      next_ - oldest_ >= traits_.packets_in_flight) {
    return std::nullopt;
  }
  const bool is_last = next_ + 1 == messages_.end_of(cursor_);
  const bool asks = is_last || since_request_ + 1 >= traits_.ack_request_every;
  const Departure departure{next_, cursor_,
                            asks ? Departure::Ack::asked : Departure::Ack::not_asked};
  since_request_ = asks ? 0 : since_request_ + 1;
  ++sent_;
  repeats_ += next_ < sent_end_ ? 1 : 0;
  ++next_;
  sent_end_ = std::max(sent_end_, next_);
  cursor_ += is_last ? 1 : 0;
  if (ack_deadline_ == kNever) {
    ack_deadline_ = now + traits_.ack_timeout;
  }
  return departure;
}

void Sender::acknowledge(std::uint32_t end, Time now) {
  if (end != 0 && is_in_flight(end - 1)) {
    advance(end, now);
  }
}

void Sender::refuse(std::uint32_t packet, Time now) {
  if (!is_in_flight(packet)) {
    return;
  }
  advance(packet, now);
  if (next_ != oldest_) { // else a second NAK: nothing was sent since it went back
    go_back();
  }
}

void Sender::hold(std::uint32_t packet, Time wait, Time now) {
  if (!is_in_flight(packet)) {
    return;
  }
  advance(packet, now);
  if (hold_until_ == kNever) {
    ++retries_left_; // RNR retries have no limit
    go_back();
    hold_until_ = now + wait;
  }
}

void Sender::expire(Time now) {
  if (now >= hold_until_) {
    hold_until_ = kNever;
  }
  if (now >= ack_deadline_) {
    go_back();
  }
}

void Sender::advance(std::uint32_t end, Time now) {
  if (end <= oldest_) {
    return;
  }
  oldest_ = end;
  next_ = std::max(next_, oldest_); // an ACK may overtake a repeat
  while (acknowledged_ < posted_ && messages_.end_of(acknowledged_) <= oldest_) {
    ++acknowledged_;
  }
  while (cursor_ < posted_ && messages_.end_of(cursor_) <= next_) {
    ++cursor_;
  }
  retries_left_ = traits_.retry_count;
  hold_until_ = kNever;
  ack_deadline_ = next_ > oldest_ ? now + traits_.ack_timeout : kNever;
}

/// Timeouts and NAKs use one counter (IBTA §9.9.2.4.1).
void Sender::go_back() {
  ack_deadline_ = kNever;
  if (retries_left_ == 0) {
    has_failed_ = true;
    return;
  }
  --retries_left_;
  next_ = oldest_;
  cursor_ = acknowledged_;
  since_request_ = 0;
}

Receiver::Reply Receiver::receive(std::uint32_t packet, Sender::Departure::Ack ack) {
  if (packet < expected_) {
    return Reply::acknowledge; // IBTA C9-105
  }
  if (packet > expected_) {
    const bool is_known = has_refused_;
    has_refused_ = true;
    return is_known ? Reply::none : Reply::refuse;
  }
  ++expected_;
  has_refused_ = false;
  const bool ends_message = expected_ == messages_.end_of(arrived_);
  arrived_ += ends_message ? 1 : 0;
  return ends_message || ack == Sender::Departure::Ack::asked ? Reply::acknowledge : Reply::none;
}

} // namespace weir::netsim
