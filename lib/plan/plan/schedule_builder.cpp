// SPDX-License-Identifier: BSD-3-Clause
#include "plan/schedule_builder.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace weir::plan {
namespace {

bool is_same_row(const Message& a, const Message& b) {
  // A gather to all children is one row; a reduce is a row of its own.
  return a.operation == Operation::gather && b.operation == Operation::gather && a.step == b.step &&
         a.flow == b.flow && a.chunks == b.chunks;
}

} // namespace

void ScheduleBuilder::add(Message message, std::span<const LinkId> route) {
  assert(message.from < node_count_ && message.to < node_count_ &&
         message.chunks.first + message.chunks.count <= schedule_.chunk_count);
  message.route = {static_cast<std::uint32_t>(schedule_.routes.size()),
                   static_cast<std::uint32_t>(route.size())};
  schedule_.routes.insert(schedule_.routes.end(), route.begin(), route.end());
  schedule_.step_count = std::max(schedule_.step_count, message.step);
  schedule_.messages.push_back(message);
}

Schedule ScheduleBuilder::finish(std::uint32_t channels, Lockstep lockstep) && {
  schedule_.channels = channels;
  sort_messages();
  schedule_.first_row.reserve(node_count_ + 1);
  for (VertexId node = 0; node < node_count_; ++node) {
    schedule_.first_row.push_back(static_cast<std::uint32_t>(schedule_.entries.size()));
    make_rows(node, lockstep);
  }
  schedule_.first_row.push_back(static_cast<std::uint32_t>(schedule_.entries.size()));
  find_waits();
  return std::move(schedule_);
}

void ScheduleBuilder::sort_messages() {
  std::ranges::stable_sort(schedule_.messages, {}, [](const Message& message) {
    return std::tuple(message.from, message.step, message.flow, message.chunks.first);
  });
  first_message_.assign(node_count_ + 1, 0);
  for (const Message& message : schedule_.messages) {
    ++first_message_[message.from + 1];
  }
  for (VertexId node = 0; node < node_count_; ++node) {
    first_message_[node + 1] += first_message_[node];
  }
}

void ScheduleBuilder::make_rows(VertexId node, Lockstep lockstep) {
  Step next_step = 1;
  for (MessageId id = first_message_[node]; id < first_message_[node + 1];) {
    const Message& message = schedule_.messages[id];
    if (lockstep == Lockstep::by_nops) {
      for (; next_step < message.step; ++next_step) {
        Entry nop;
        nop.step = next_step;
        schedule_.entries.push_back(nop);
      }
      next_step = message.step + 1;
    }
    MessageId end = id + 1;
    while (end < first_message_[node + 1] && is_same_row(message, schedule_.messages[end])) {
      ++end;
    }
    Entry entry;
    entry.operation = message.operation;
    entry.flow = message.flow;
    entry.parent = message.operation == Operation::reduce ? message.to : kNone;
    entry.step = message.step;
    entry.chunks = message.chunks;
    entry.sends = {id, end - id};
    schedule_.entries.push_back(entry);
    id = end;
  }
}

void ScheduleBuilder::find_waits() {
  std::vector<std::vector<MessageId>> arrivals(node_count_);
  for (MessageId id = 0; id < schedule_.messages.size(); ++id) {
    arrivals[schedule_.messages[id].to].push_back(id);
  }
  holds_.resize(schedule_.chunk_count);
  is_awaited_.resize(schedule_.messages.size());
  for (VertexId node = 0; node < node_count_; ++node) {
    std::ranges::stable_sort(arrivals[node], {},
                             [&](MessageId id) { return schedule_.messages[id].step; });
    find_waits_of(node, arrivals[node]);
  }
}

void ScheduleBuilder::find_waits_of(VertexId node, std::span<const MessageId> arrivals) {
  for (Held& held : holds_) {
    held = {};
  }
  std::size_t arrived = 0;
  for (std::uint32_t row = schedule_.first_row[node]; row < schedule_.first_row[node + 1]; ++row) {
    Entry& entry = schedule_.entries[row];
    for (; arrived < arrivals.size(); ++arrived) {
      if (schedule_.messages[arrivals[arrived]].step >= entry.step) {
        break;
      }
      take_in(arrivals[arrived]);
    }
    set_waits(entry);
  }
}

void ScheduleBuilder::take_in(MessageId id) {
  const Message& message = schedule_.messages[id];
  for (std::uint32_t chunk = 0; chunk < message.chunks.count; ++chunk) {
    Held& held = holds_[message.chunks.first + chunk];
    if (message.operation == Operation::gather) {
      held.unawaited.clear();
      held.gather = id;
    }
    held.unawaited.push_back(id);
  }
}

void ScheduleBuilder::set_waits(Entry& entry) {
  std::vector<MessageId>& waits = schedule_.waits;
  const auto begin = static_cast<std::uint32_t>(waits.size());
  for (std::uint32_t chunk = 0; chunk < entry.chunks.count; ++chunk) {
    Held& held = holds_[entry.chunks.first + chunk];
    for (const MessageId id : held.unawaited) {
      if (!is_awaited_[id]) {
        is_awaited_[id] = true;
        waits.push_back(id);
      }
    }
    held.unawaited.clear();
  }
  std::sort(waits.begin() + begin, waits.end());
  entry.waits = {begin, static_cast<std::uint32_t>(waits.size()) - begin};
  if (entry.operation == Operation::gather) {
    const MessageId gather = holds_[entry.chunks.first].gather;
    const bool came_so = gather != kNone && schedule_.messages[gather].flow == entry.flow;
    entry.parent = came_so ? schedule_.messages[gather].from : kNone;
  }
}

} // namespace weir::plan
