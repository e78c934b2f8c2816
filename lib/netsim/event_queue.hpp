// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/day_marks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weir::netsim {

/// Future events by time; those of equal time come out in the order of pushing. So the order does
/// not depend on the queue's implementation: a calendar (R. Brown, CACM 31(10), 1988) whose days
/// are unordered lists of events. Events of the present day, and events after the calendar's end,
/// are in heaps with four children per node.
template <class Event>
class EventQueue {
 public:
  struct Entry {
    std::uint64_t time = 0;
    std::uint64_t order = 0;
    Event event;
  };

  bool empty() const { return size_ == 0; }

  std::size_t size() const { return size_; }

  /// Events pushed so far.
  std::uint64_t pushed() const { return next_; }

  void push(std::uint64_t time, Event event) {
    ++size_;
    const Entry entry{time, next_++, std::move(event)};
    const std::uint64_t day = time >> kDayBits;
    if (day <= today_) {
      present_.push(entry);
    } else if (day - today_ < kDays) {
      note(day, entry);
    } else {
      later_.push(entry);
    }
  }

  /// The queue must not be empty.
  Entry pop() {
    if (present_.is_empty()) {
      turn_page();
    }
    --size_;
    return present_.pop();
  }

 private:
  // Days are so short that a busy network has few events in each: sorting takes the most time.
  static constexpr unsigned kDayBits = 8;
  static constexpr std::uint64_t kDays = 65536;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  class Heap {
   public:
    bool is_empty() const { return entries_.empty(); }

    const Entry& first() const { return entries_.front(); }

    void push(const Entry& entry) {
      std::size_t hole = entries_.size();
      entries_.push_back(entry);
      while (hole != 0) {
        const std::size_t parent = (hole - 1) / kChildren;
        if (!is_earlier(entry, entries_[parent])) {
          break;
        }
        entries_[hole] = entries_[parent];
        hole = parent;
      }
      entries_[hole] = entry;
    }

    Entry pop() {
      const Entry first = entries_.front();
      const Entry last = entries_.back();
      entries_.pop_back();
      if (!entries_.empty()) {
        sink(last);
      }
      return first;
    }

   private:
    static constexpr std::size_t kChildren = 4;

    static bool is_earlier(const Entry& a, const Entry& b) {
      return (a.time < b.time) | ((a.time == b.time) & (a.order < b.order));
    }

    /// Moves `entry` down from the root to its place.
    void sink(const Entry& entry) {
      const std::size_t size = entries_.size();
      std::size_t hole = 0;
      for (;;) {
        const std::size_t first = hole * kChildren + 1;
        if (first >= size) {
          break;
        }
        const std::size_t end = std::min(first + kChildren, size);
        std::size_t best = first;
        for (std::size_t child = first + 1; child < end; ++child) {
          best = is_earlier(entries_[child], entries_[best]) ? child : best;
        }
        if (!is_earlier(entries_[best], entry)) {
          break;
        }
        entries_[hole] = entries_[best];
        hole = best;
      }
      entries_[hole] = entry;
    }

    std::vector<Entry> entries_;
  };

  struct Note {
    Entry entry;
    std::uint32_t next = kNone;
  };

  /// Puts an event into a day of the calendar.
  void note(std::uint64_t day, const Entry& entry) {
    std::uint32_t place = free_;
    if (place == kNone) {
      place = static_cast<std::uint32_t>(notes_.size());
      notes_.push_back({entry, kNone});
    } else {
      free_ = notes_[place].next;
      notes_[place].entry = entry;
    }
    const std::size_t slot = day % kDays;
    notes_[place].next = first_[slot];
    first_[slot] = place;
    marks_.set(slot);
  }

  /// Makes the next day with events the present one. The queue must not be empty.
  void turn_page() {
    const std::uint64_t noted = next_noted_day();
    const std::uint64_t distant = later_.is_empty() ? UINT64_MAX : later_.first().time >> kDayBits;
    today_ = std::min(noted, distant);
    if (noted == today_) {
      open(today_ % kDays);
    }
    while (!later_.is_empty() && (later_.first().time >> kDayBits) - today_ < kDays) {
      const Entry entry = later_.pop();
      const std::uint64_t day = entry.time >> kDayBits;
      if (day == today_) {
        present_.push(entry);
      } else {
        note(day, entry);
      }
    }
  }

  void open(std::size_t slot) {
    for (std::uint32_t place = first_[slot]; place != kNone;) {
      present_.push(notes_[place].entry);
      const std::uint32_t next = notes_[place].next;
      notes_[place].next = free_;
      free_ = place;
      place = next;
    }
    first_[slot] = kNone;
    marks_.clear(slot);
  }

  /// UINT64_MAX: none.
  std::uint64_t next_noted_day() const {
    const std::size_t ahead = marks_.distance_to_next((today_ + 1) % kDays);
    return ahead == kDays ? UINT64_MAX : today_ + 1 + ahead;
  }

  Heap present_; // of today, and late ones
  Heap later_;   // of today_ + kDays and later
  std::uint64_t today_ = 0;
  std::vector<std::uint32_t> first_ = std::vector(kDays, kNone); // by day: its first note
  DayMarks marks_ = DayMarks(kDays);                             // days with notes
  std::vector<Note> notes_;
  std::uint32_t free_ = kNone;
  std::size_t size_ = 0;
  std::uint64_t next_ = 0;
};

} // namespace weir::netsim
