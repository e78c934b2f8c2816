// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/mending_switch.hpp"

#include <algorithm>

namespace weir::netsim {

MendingSwitch::MendingSwitch(const FoldPlace& place, const MessageList& messages, FoldPorts& ports,
                             Time floor)
    : place_(place), messages_(messages), ports_(ports), floor_(floor),
      slots_(place.slots, place.children), inflows_(place.children), outflows_(place.children) {}

Time MendingSwitch::timer_of(const Outflow& flow) const {
  return std::max(floor_, flow.round_trip.timeout(interval())) << flow.doublings;
}

/// How long the oldest slot may lack a child's packet before the child is asked for it.
Time MendingSwitch::longest_wait_for(std::uint32_t child) const {
  return leads_up(child) ? floor_ : timer_of(outflows_[place_.successor_of(child)]);
}

bool MendingSwitch::leads_up(std::uint32_t child) const {
  return place_.level == FoldPlace::Level::below && child + 1 == place_.children;
}

std::uint32_t MendingSwitch::acknowledged_of(std::uint32_t child) const {
  return leads_up(child) ? above_acknowledged_ : outflows_[place_.successor_of(child)].acknowledged;
}

void MendingSwitch::take_contribution(std::uint32_t child, std::uint32_t packet, Time now) {
  Inflow& inflow = inflows_[child];
  if (packet <= inflow.previous) {
    inflow.pass = Inflow::Pass::nothing;
    inflow.asked_for = kNothing;
  }
  inflow.previous = packet;
  if (packet < released_) {
    return swallow(child, packet, now);
  }
  const SlotTable::Finding finding = slots_.look(packet, child);
  if (finding != SlotTable::Finding::absent) {
    if (leads_up(child) && packet < climbed_) {
      ports_.send_up(packet);
    }
    return;
  }
  // What comes in order has what is before it there.
  if (packet != inflow.missing && !knows_first_of(packet, child)) {
    return ask(child);
  }
  const bool is_last = slots_.store(packet, child);
  while (slots_.look(inflow.missing, child) == SlotTable::Finding::present ||
         slots_.is_complete(inflow.missing)) {
    ++inflow.missing;
  }
  if (packet > inflow.missing) {
    ask(child);
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
      release(released_, now);
    }
    return;
  }
  while (slots_.is_complete(climbed_)) {
    ports_.send_up(climbed_++);
    oldest_since_ = now;
  }
}

void MendingSwitch::release(std::uint32_t packet, Time now) {
  released_ = packet + 1;
  oldest_since_ = now;
  // Before the window is full, the receivers are asked how far they are.
  const FoldPorts::Press press = slots_.is_complete(released_)
                                     ? FoldPorts::Press::normal
                                     : FoldPorts::Press::for_acknowledgement;
  for (std::uint32_t child = 0; child < place_.children; ++child) {
    if (outflows_[child].acknowledged == packet) {
      outflows_[child].since = now;
    }
    outflows_[child].round_trip.sent(packet, now);
    ports_.send_down(child, packet, press);
  }
}

void MendingSwitch::take_total(std::uint32_t packet, Time now) {
  if (packet == released_ && packet < climbed_) {
    return release(packet, now);
  }
  if (packet > released_) {
    return ask_parent();
  }
  if (packet >= outflows_.front().acknowledged) {
    outflows_.front().round_trip.sent_again();
    ports_.send_down(0, packet, FoldPorts::Press::for_acknowledgement);
  } else {
    ports_.answer_up(Frame::Kind::acknowledgement, outflows_.front().acknowledged);
  }
}

/// Asks once for each missing total.
void MendingSwitch::ask_parent() {
  if (asked_above_ != released_) {
    asked_above_ = released_;
    ports_.answer_up(Frame::Kind::refusal, outflows_.front().acknowledged);
  }
}

void MendingSwitch::ask(std::uint32_t child) {
  Inflow& inflow = inflows_[child];
  const std::uint32_t acknowledged = acknowledged_of(child);
  if (inflow.asked_for == inflow.missing || inflow.asked_at == acknowledged) {
    return;
  }
  inflow.asked_for = inflow.missing;
  inflow.asked_at = acknowledged;
  inflow.pause = kFirstPause;
  ports_.answer_down(child, Frame::Kind::refusal, acknowledged);
}

void MendingSwitch::ask_again(std::uint32_t child, Time now) {
  Inflow& inflow = inflows_[child];
  if (inflow.asked_at != acknowledged_of(child)) {
    inflow.asked_for = kNothing;
    return ask(child);
  }
  if (now >= inflow.quiet_until) {
    inflow.quiet_until = now + inflow.pause;
    inflow.pause = std::min(2 * inflow.pause, kLongestPause);
    ports_.answer_down(child, Frame::Kind::hold, acknowledged_of(child));
  }
}

/// Takes a repeat of a packet whose result was released.
void MendingSwitch::swallow(std::uint32_t child, std::uint32_t packet, Time now) {
  Inflow& inflow = inflows_[child];
  const std::uint32_t acknowledged = acknowledged_of(child);
  if (packet < acknowledged) {
    if (inflow.pass == Inflow::Pass::nothing) {
      inflow.pass = Inflow::Pass::acknowledgement;
      ports_.answer_down(child, Frame::Kind::acknowledgement, acknowledged);
    }
    return;
  }
  if (inflow.pass == Inflow::Pass::resend) {
    return;
  }
  inflow.pass = Inflow::Pass::resend;
  if (leads_up(child)) {
    ports_.send_up(packet); // the parent has the results for that connection
  } else {
    resend(place_.successor_of(child), acknowledged, now);
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

FoldSwitch::Passage MendingSwitch::see_answer_of(std::uint32_t child, Frame::Kind kind,
                                                 std::uint32_t packet, Time now) {
  acknowledge(child, packet, now);
  if (kind != Frame::Kind::refusal) {
    return Passage::on;
  }
  if (packet >= released_) {
    if (place_.level == FoldPlace::Level::below && packet < climbed_) {
      ask_parent();
    }
    return Passage::absorbed;
  }
  resend(child, packet, now);
  if (child != 0) {
    ports_.answer_down(child - 1, Frame::Kind::acknowledgement, packet);
  } else if (place_.level == FoldPlace::Level::root) {
    ports_.answer_down(place_.children - 1, Frame::Kind::acknowledgement, packet);
  } else {
    ports_.answer_up(Frame::Kind::acknowledgement, packet);
  }
  return Passage::absorbed;
}

FoldSwitch::Passage MendingSwitch::see_answer_from_above(Frame::Kind kind, std::uint32_t packet,
                                                         Time /*now*/) {
  above_acknowledged_ = std::max(above_acknowledged_, packet);
  if (kind == Frame::Kind::acknowledgement) {
    return Passage::on;
  }
  for (std::uint32_t partial = packet; partial < climbed_; ++partial) {
    ports_.send_up(partial);
  }
  return Passage::absorbed;
}

void MendingSwitch::look_again(Time now) {
  for (std::uint32_t child = 0; child < place_.children; ++child) {
    Outflow& outflow = outflows_[child];
    if (outflow.acknowledged < released_ && outflow.tries < kMostTries &&
        now >= outflow.since + timer_of(outflow)) {
      ++outflow.tries;
      outflow.doublings = std::min(outflow.doublings + 1, kMostTries);
      resend(child, outflow.acknowledged, now);
    }
  }
  const std::uint32_t oldest = place_.level == FoldPlace::Level::root ? released_ : climbed_;
  if (slots_.filling() == 0 || now < oldest_since_ + floor_) {
    return;
  }
  for (std::uint32_t child = 0; child < place_.children; ++child) {
    if (slots_.look(oldest, child) == SlotTable::Finding::absent &&
        now >= oldest_since_ + longest_wait_for(child)) {
      ask_again(child, now);
    }
  }
}

} // namespace weir::netsim
