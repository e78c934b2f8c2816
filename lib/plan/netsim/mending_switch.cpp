// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/mending_switch.hpp"

#include <algorithm>

namespace weir::netsim {

/// A packet has come that belongs to a pass.
void MendingSwitch::Inflow::note(std::uint32_t packet) {
  if (previous != kNothing && packet <= previous) {
    answer = Answer::nothing;
    cause = asked;
    asked = Asked::no;
    asked_for = kNothing;
  }
  previous = packet;
}

MendingSwitch::MendingSwitch(const FoldPlace& place, const MessageList& messages, FoldPorts& ports,
                             Time floor)
    : place_(place), messages_(messages), ports_(ports), floor_(floor),
      slots_(place.slots, place.count()), inflows_(place.count()), outflows_(place.count()),
      known_(place.slots, kNothing) {}

Time MendingSwitch::timer_of(const Outflow& flow) const {
  return std::max(floor_, flow.round_trip.timeout(interval())) << flow.doublings;
}

/// How long the oldest slot may lack a child's packet before the child is asked for it.
Time MendingSwitch::longest_wait_for(std::uint32_t child) const {
  return leads_up(child) ? floor_ : timer_of(outflows_[place_.successor_of(child)]);
}

bool MendingSwitch::leads_up(std::uint32_t child) const {
  return place_.level == FoldPlace::Level::below && child + 1 == place_.count();
}

std::uint32_t MendingSwitch::acknowledged_of(std::uint32_t child) const {
  return leads_up(child) ? above_acknowledged_ : outflows_[place_.successor_of(child)].acknowledged;
}

/// What has left on a child's own connection.
std::uint32_t MendingSwitch::sent_of(std::uint32_t child) const {
  return leads_up(child) ? climbed_ : released_;
}

bool MendingSwitch::has_gap() const {
  return above_.has_gap() || std::ranges::any_of(inflows_, &Inflow::has_gap);
}

bool MendingSwitch::is_known(std::uint32_t packet) const {
  return known_[packet % known_.size()] == packet;
}

void MendingSwitch::take_contribution(std::uint32_t child, std::uint32_t packet, Time now) {
  Inflow& inflow = inflows_[child];
  inflow.note(packet);
  if (packet < sent_of(child)) {
    return swallow(child, packet, now);
  }
  if (slots_.look(packet, child) != SlotTable::Finding::absent) {
    return;
  }
  inflow.end = std::max(inflow.end, packet + 1);
  // What comes in order has what is before it there.
  if (packet != inflow.missing && !knows_first_of(packet, child)) {
    return ask(child, now);
  }
  const bool is_last = slots_.store(packet, child);
  while (slots_.look(inflow.missing, child) == SlotTable::Finding::present ||
         slots_.is_complete(inflow.missing)) {
    ++inflow.missing;
  }
  if (inflow.has_gap()) {
    ask(child, now);
  }
  if (is_last) {
    release_ready(now);
  }
}

bool MendingSwitch::knows_first_of(std::uint32_t packet, std::uint32_t child) const {
  const std::uint32_t first = messages_.first_of(messages_.message_of(packet));
  return first == packet || slots_.look(first, child) != SlotTable::Finding::absent;
}

void MendingSwitch::release_ready(Time now) {
  if (place_.level == FoldPlace::Level::root) {
    while (slots_.is_complete(released_)) {
      oldest_since_ = now;
      release(released_, now);
    }
    return;
  }
  while (slots_.is_complete(climbed_)) {
    ports_.send_up(climbed_++);
    oldest_since_ = now;
  }
}

/// A result of the root, or a total of another switch.
void MendingSwitch::release(std::uint32_t packet, Time now) {
  released_ = packet + 1;
  const bool is_next_there =
      place_.level == FoldPlace::Level::root ? slots_.is_complete(released_) : is_known(released_);
  // Behind a gap nothing may leave for a while: the receivers are asked how far they are.
  const FoldPorts::Press press = has_gap() && !is_next_there ? FoldPorts::Press::for_acknowledgement
                                                             : FoldPorts::Press::normal;
  for (std::uint32_t child = 0; child < place_.count(); ++child) {
    if (outflows_[child].acknowledged == packet) {
      outflows_[child].since = now;
    }
    outflows_[child].round_trip.sent(packet, now);
    ports_.send_down(child, packet, press);
  }
}

void MendingSwitch::take_total(std::uint32_t packet, Time now) {
  above_.note(packet);
  if (packet < released_) {
    return swallow_total(packet, now);
  }
  if (packet >= climbed_ || is_known(packet)) {
    return;
  }
  known_[packet % known_.size()] = packet;
  above_.end = std::max(above_.end, packet + 1);
  while (is_known(above_.missing)) {
    ++above_.missing;
  }
  while (released_ < above_.missing) {
    release(released_, now);
  }
  if (above_.has_gap()) {
    ask_parent(now);
  }
}

/// The first ask for a gap goes at once. What comes again then closes all gaps that there were. If
/// it does not, the next ask waits for the timer, and each further one twice as long. Whatever
/// moves on has the timer's pauses again.
bool MendingSwitch::may_ask_switch(Inflow& inflow, std::uint32_t acknowledged, Time timer,
                                   Time now) {
  if (inflow.missing >= inflow.asked_below) {
    inflow.quiet_until = now;
  }
  if (inflow.asked_for != inflow.missing || inflow.asked_at != acknowledged) {
    inflow.asked_for = inflow.missing;
    inflow.asked_at = acknowledged;
    inflow.pause = timer;
  }
  if (now < inflow.quiet_until) {
    return false;
  }
  inflow.asked = Asked::yes;
  inflow.asked_below = std::max(inflow.end, inflow.missing + 1);
  inflow.quiet_until = now + inflow.pause;
  inflow.pause = std::min(2 * inflow.pause, kLongestPause);
  return true;
}

void MendingSwitch::ask_parent(Time now) {
  const std::uint32_t acknowledged = outflows_.front().acknowledged;
  if (may_ask_switch(above_, acknowledged, floor_, now)) {
    ports_.answer_up(Frame::Kind::refusal, acknowledged);
  }
}

void MendingSwitch::ask(std::uint32_t child, Time now) {
  if (place_.is_rank(child)) {
    return ask_rank(child);
  }
  const std::uint32_t acknowledged = acknowledged_of(child);
  if (may_ask_switch(inflows_[child], acknowledged, longest_wait_for(child), now)) {
    ports_.answer_down(child, Frame::Kind::refusal, acknowledged);
  }
}

void MendingSwitch::ask_rank(std::uint32_t child) {
  Inflow& inflow = inflows_[child];
  const std::uint32_t acknowledged = acknowledged_of(child);
  if (inflow.asked_for == inflow.missing || inflow.asked_at == acknowledged) {
    return;
  }
  inflow.asked_for = inflow.missing;
  inflow.asked_at = acknowledged;
  inflow.asked = Asked::yes;
  inflow.pause = kFirstPause;
  ports_.answer_down(child, Frame::Kind::refusal, acknowledged);
}

void MendingSwitch::ask_late(std::uint32_t child, Time now) {
  if (place_.is_rank(child)) {
    ask_rank_again(child, now);
  } else {
    ask(child, now);
  }
}

void MendingSwitch::ask_rank_again(std::uint32_t child, Time now) {
  Inflow& inflow = inflows_[child];
  if (inflow.asked_at != acknowledged_of(child)) {
    inflow.asked_for = kNothing;
    return ask_rank(child);
  }
  if (now >= inflow.quiet_until) {
    inflow.asked = Asked::yes;
    inflow.quiet_until = now + inflow.pause;
    inflow.pause = std::min(2 * inflow.pause, kLongestPause);
    ports_.answer_down(child, Frame::Kind::hold, acknowledged_of(child));
  }
}

/// What a packet that comes again is answered by; each pass gets one answer of a kind. A pass that
/// the switch has asked for needs no resend.
MendingSwitch::Answer MendingSwitch::answer_to(Inflow& inflow, std::uint32_t packet,
                                               std::uint32_t acknowledged) {
  const Answer answer = packet < acknowledged ? Answer::acknowledgement : Answer::resend;
  if (inflow.answer >= answer || (answer == Answer::resend && inflow.cause == Asked::yes)) {
    return Answer::nothing;
  }
  inflow.answer = answer;
  return answer;
}

/// Takes a repeat of a packet that has left on its own connection.
void MendingSwitch::swallow(std::uint32_t child, std::uint32_t packet, Time now) {
  const std::uint32_t acknowledged = acknowledged_of(child);
  const Answer answer = answer_to(inflows_[child], packet, acknowledged);
  if (answer == Answer::acknowledgement) {
    ports_.answer_down(child, Frame::Kind::acknowledgement, acknowledged);
  } else if (answer == Answer::resend && leads_up(child)) {
    climb_again(acknowledged);
  } else if (answer == Answer::resend) {
    resend(place_.successor_of(child), acknowledged, now);
  }
}

void MendingSwitch::swallow_total(std::uint32_t packet, Time now) {
  const std::uint32_t acknowledged = outflows_.front().acknowledged;
  const Answer answer = answer_to(above_, packet, acknowledged);
  if (answer == Answer::acknowledgement) {
    ports_.answer_up(Frame::Kind::acknowledgement, acknowledged);
  } else if (answer == Answer::resend) {
    resend(0, acknowledged, now);
  }
}

void MendingSwitch::resend(std::uint32_t child, std::uint32_t from, Time now) {
  outflows_[child].since = now;
  outflows_[child].round_trip.sent_again();
  for (std::uint32_t packet = from; packet < released_; ++packet) {
    ports_.send_down(child, packet,
                     packet + 1 == released_ ? FoldPorts::Press::for_acknowledgement
                                             : FoldPorts::Press::normal);
  }
}

/// Sends partial sums again.
void MendingSwitch::climb_again(std::uint32_t from) {
  for (std::uint32_t packet = from; packet < climbed_; ++packet) {
    ports_.send_up(packet);
  }
}

void MendingSwitch::acknowledge(std::uint32_t child, std::uint32_t end, Time now) {
  Outflow& outflow = outflows_[child];
  if (end > outflow.acknowledged && end <= released_) {
    outflow.acknowledged = end;
    outflow.since = now;
    outflow.tries = 0;
    if (outflow.round_trip.acknowledged(end, now) == RoundTrip::Sample::taken) {
      outflow.doublings = 0;
    }
  }
}

/// To the sender of the connection into `child`.
void MendingSwitch::pass_acknowledgement(std::uint32_t child, std::uint32_t end) {
  if (child != 0) {
    ports_.answer_down(child - 1, Frame::Kind::acknowledgement, end);
  } else if (place_.level == FoldPlace::Level::root) {
    ports_.answer_down(place_.count() - 1, Frame::Kind::acknowledgement, end);
  } else {
    ports_.answer_up(Frame::Kind::acknowledgement, end);
  }
}

FoldSwitch::Passage MendingSwitch::see_answer_of(std::uint32_t child, Frame::Kind kind,
                                                 std::uint32_t packet, Time now) {
  acknowledge(child, packet, now);
  if (kind != Frame::Kind::refusal || packet >= released_) {
    return Passage::on;
  }
  const std::uint32_t acknowledged = outflows_[child].acknowledged;
  if (packet == acknowledged) { // else the answer is old
    resend(child, packet, now);
  }
  pass_acknowledgement(child, acknowledged);
  return Passage::absorbed;
}

FoldSwitch::Passage MendingSwitch::see_answer_from_above(Frame::Kind kind, std::uint32_t packet,
                                                         Time /*now*/) {
  const bool is_news = packet > above_acknowledged_;
  above_acknowledged_ = std::max(above_acknowledged_, packet);
  if (kind != Frame::Kind::refusal) {
    return Passage::on;
  }
  climb_again(above_acknowledged_);
  if (is_news) {
    ports_.answer_down(place_.count() - 1, Frame::Kind::acknowledgement, packet);
  }
  return Passage::absorbed;
}

void MendingSwitch::look_again(Time now) {
  resend_late(now);
  if (above_.has_gap()) {
    ask_parent(now);
  }
  const std::uint32_t oldest = place_.level == FoldPlace::Level::root ? released_ : climbed_;
  if (slots_.filling() == 0 || now < oldest_since_ + floor_) {
    return;
  }
  for (std::uint32_t child = 0; child < place_.count(); ++child) {
    if (slots_.look(oldest, child) == SlotTable::Finding::absent &&
        now >= oldest_since_ + longest_wait_for(child)) {
      ask_late(child, now);
    }
  }
}

void MendingSwitch::resend_late(Time now) {
  for (std::uint32_t child = 0; child < place_.count(); ++child) {
    Outflow& outflow = outflows_[child];
    if (outflow.acknowledged < released_ && outflow.tries < kMostTries &&
        now >= outflow.since + timer_of(outflow)) {
      ++outflow.tries;
      outflow.doublings = std::min(outflow.doublings + 1, kMostTries);
      resend(child, outflow.acknowledged, now);
    }
  }
}

} // namespace weir::netsim
