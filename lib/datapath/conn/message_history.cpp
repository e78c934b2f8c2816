// SPDX-License-Identifier: BSD-3-Clause
#include "conn/message_history.hpp"

#include <cassert>

namespace weir::conn {

using wire::psn_add;
using wire::psn_distance;

MessageHistory::MessageHistory(std::span<MessageRecord> records, std::uint32_t packets_per_message)
    : records_(records), packets_per_message_(packets_per_message), last_found_(records.data()) {}

void MessageHistory::begin(std::uint32_t psn, const wire::MessageShape& shape) {
  assert(!records_.empty() && packets_per_message_ != 0);
  for (MessageRecord& record : records_) {
    record.packets = 0;
  }
  newest_ = 0;
  last_found_ = records_.data();
  floor_.reset();
  records_[0] = {0, psn, 1, 0, shape};
}

MessageHistory::Entered MessageHistory::enter(std::uint32_t id, std::uint32_t psn,
                                              std::uint32_t packets,
                                              const wire::MessageShape& shape) {
  const std::int64_t ahead = static_cast<std::int32_t>(id - static_cast<std::uint32_t>(newest_));
  const std::int64_t signed_message = static_cast<std::int64_t>(newest_) + ahead;
  const auto window = static_cast<std::int64_t>(depth() / 2);
  if (ahead > window || signed_message < 0) {
    return {Entry::too_far, nullptr};
  }
  if (ahead <= -static_cast<std::int64_t>(depth())) {
    return {Entry::stale, nullptr};
  }
  const auto message = static_cast<std::uint64_t>(signed_message);
  last_found_ = &record_of(message); // this message's other packets come next
  if (MessageRecord* record = known(message); record != nullptr) {
    const bool same =
        record->first_psn == psn && record->packets == packets && record->shape == shape;
    return same ? Entered{Entry::repeat, record} : Entered{Entry::conflict, nullptr};
  }
  if (overlaps_neighbour(message, psn, packets)) {
    return {Entry::conflict, nullptr};
  }
  if (message > newest_) {
    move_newest_to(message, psn);
  } else {
    place_unknown_before(message, psn);
  }
  assert(message <= newest_ && message >= oldest() && packets != 0 &&
         packets <= packets_per_message_);
  MessageRecord& record = record_of(message);
  const auto slot = static_cast<std::uint32_t>(message % depth()) * packets_per_message_;
  record = {message, psn, packets, slot, shape};
  return {Entry::entered, &record};
}

MessageHistory::Located MessageHistory::locate_elsewhere(std::uint32_t psn) {
  MessageRecord& candidate = record_behind_oldest(last_not_behind(psn));
  const std::uint32_t packet = (psn - candidate.first_psn) & wire::kPsnMask;
  if (packet >= candidate.packets) {
    return {is_below_floor(psn) ? Place::stale : Place::unknown, nullptr, 0};
  }
  assert(candidate.message >= oldest() && candidate.message <= newest_);
  last_found_ = &candidate;
  return {Place::inside, &candidate, packet};
}

/// The newest message that begins at or before `psn`, counted from the oldest message. Only this
/// one can contain `psn`: known messages do not overlap, and an unknown one has the first PSN of
/// the next known one. So first PSNs never decrease from one message to the next.
std::size_t MessageHistory::last_not_behind(std::uint32_t psn) {
  const std::size_t first = oldest() % depth();
  const auto record = [&](std::size_t index) -> const MessageRecord& {
    const std::size_t place = first + index;
    return records_[place < depth() ? place : place - depth()]; // a division would be the most
                                                                // expensive step
  };
  const std::uint32_t origin = record(0).first_psn;
  const std::uint32_t wanted = (psn - origin) & wire::kPsnMask;
  std::size_t found = 0;
  std::size_t behind = newest_ - oldest() + 1;
  while (behind - found > 1) {
    const std::size_t middle = (found + behind) / 2;
    const std::uint32_t begins = (record(middle).first_psn - origin) & wire::kPsnMask;
    (begins <= wanted ? found : behind) = middle;
  }
  return found;
}

void MessageHistory::place_unknown_before(std::uint64_t message, std::uint32_t psn) {
  while (message-- > oldest() && !record_of(message).is_known()) {
    record_of(message).first_psn = psn;
  }
}

MessageRecord* MessageHistory::known(std::uint64_t message) {
  MessageRecord& record = record_of(message);
  return record.is_known() && record.message == message ? &record : nullptr;
}

/// A host numbers its packets without overlap. A FIRST inside another message is an error that
/// would put later packets into two messages at once. Known messages are in order, so the nearest
/// ones on either side are enough to check.
bool MessageHistory::overlaps_neighbour(std::uint64_t message, std::uint32_t psn,
                                        std::uint32_t packets) {
  const MessageRecord* before = nearest_before(message);
  if (before != nullptr && psn_distance(psn_add(before->first_psn, before->packets), psn) < 0) {
    return true;
  }
  const MessageRecord* after = nearest_after(message);
  return after != nullptr && psn_distance(psn_add(psn, packets), after->first_psn) < 0;
}

const MessageRecord* MessageHistory::nearest_before(std::uint64_t message) {
  const std::uint64_t last = oldest();
  while (message-- > last) {
    if (const MessageRecord* record = known(message); record != nullptr) {
      return record;
    }
  }
  return nullptr;
}

const MessageRecord* MessageHistory::nearest_after(std::uint64_t message) {
  while (++message <= newest_) {
    if (const MessageRecord* record = known(message); record != nullptr) {
      return record;
    }
  }
  return nullptr;
}

void MessageHistory::move_newest_to(std::uint64_t message, std::uint32_t psn) {
  assert(message > newest_ && message - newest_ <= depth() / 2);
  for (std::uint64_t entering = newest_ + 1; entering <= message; ++entering) {
    MessageRecord& record = record_of(entering);
    if (record.is_known()) {
      raise_floor_past(record);
    }
    record.packets = 0;
    record.first_psn = psn;
  }
  newest_ = message;
}

void MessageHistory::raise_floor_past(const MessageRecord& leaving) {
  floor_ = psn_add(leaving.first_psn, leaving.packets);
}

} // namespace weir::conn
