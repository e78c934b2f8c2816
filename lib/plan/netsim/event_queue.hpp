// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/day_marks.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::netsim {

/// What is to happen, by time; at one time first come, first served. So the order of things does
/// not depend on how the queue is made: a calendar (R. Brown, CACM 31(10), 1988) whose days are
/// lists of events in the order of their coming. A day's list is sorted when the day begins. What
/// comes for a day that has begun waits in a heap of four children a node, and so does what is
/// further away than the calendar reaches.
template <class Event>
class EventQueue {
 public:
  struct Entry {
    std::uint64_t time = 0;
    Event event;
  };

  bool empty() const { return size_ == 0; }

  std::size_t size() const { return size_; }

  /// Events pushed so far.
  std::uint64_t pushed() const { return pushed_; }

  void push(std::uint64_t time, const Event& event) {
    ++size_;
    ++pushed_;
    const std::uint64_t day = time >> kDayBits;
    if (day <= today_) {
      late_.push(time, pushed_, event);
    } else if (day - today_ < kDays) {
      note(time, event);
    } else {
      later_.push(time, pushed_, event);
    }
  }

  /// The queue must not be empty.
  Entry pop() {
    assert(size_ != 0);
    --size_;
    if (given_ == due_.size()) {
      if (!late_.is_empty()) {
        return late_.pop();
      }
      turn_page();
    }
    const Due next = due_[given_];
    const std::uint64_t time = (today_ << kDayBits) + next.offset;
    // At one time what was noted before the day began came first.
    if (!late_.is_empty() && late_.first_time() < time) {
      return late_.pop();
    }
    ++given_;
    free_.push_back(next.note);
    return {time, events_[next.note]};
  }

  /// What comes behind the next, as far as it is known: a hint for what to fetch.
  const Event* after_next() const {
    return given_ + 1 < due_.size() ? &events_[due_[given_ + 1].note] : nullptr;
  }

 private:
  // Days so short that a busy network has few events in each: sorting them takes the longest.
  static constexpr unsigned kDayBits = 10;
  static constexpr std::uint64_t kDays = 16384;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  class Heap {
   public:
    bool is_empty() const { return entries_.empty(); }

    std::uint64_t first_time() const { return entries_.front().time; }

    void push(std::uint64_t time, std::uint64_t order, const Event& event) {
      const Ordered entry{time, order, event};
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
      const Entry first{entries_.front().time, entries_.front().event};
      const Ordered last = entries_.back();
      entries_.pop_back();
      if (!entries_.empty()) {
        sink(last);
      }
      return first;
    }

   private:
    static constexpr std::size_t kChildren = 4;

    struct Ordered {
      std::uint64_t time = 0;
      std::uint64_t order = 0;
      Event event;
    };

    static bool is_earlier(const Ordered& a, const Ordered& b) {
      return (a.time < b.time) | ((a.time == b.time) & (a.order < b.order));
    }

    /// Finds `entry` a place from the root down.
    void sink(const Ordered& entry) {
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

    std::vector<Ordered> entries_;
  };

  /// Where a note stands in its day.
  struct Place {
    std::uint32_t next = kNone; // note of the same day; the last one's is the first
    std::uint32_t offset = 0;   // of its time in the day
  };

  struct Due {
    std::uint32_t offset = 0;
    std::uint32_t note = 0;
  };

  /// Into a day of the calendar, behind what is there.
  void note(std::uint64_t time, const Event& event) {
    const std::uint32_t note = free_note();
    events_[note] = event;
    places_[note].offset = static_cast<std::uint32_t>(time & ((std::uint64_t{1} << kDayBits) - 1));
    const std::size_t slot = (time >> kDayBits) % kDays;
    std::uint32_t& last = last_[slot];
    if (last == kNone) {
      marks_.set(slot);
      places_[note].next = note;
    } else {
      places_[note].next = places_[last].next;
      places_[last].next = note;
    }
    last = note;
  }

  std::uint32_t free_note() {
    if (free_.empty()) {
      events_.emplace_back();
      places_.emplace_back();
      return static_cast<std::uint32_t>(events_.size() - 1);
    }
    const std::uint32_t note = free_.back();
    free_.pop_back();
    return note;
  }

  /// The next day that has anything becomes today; something is in the calendar or later.
  void turn_page() {
    const std::uint64_t distant = later_.is_empty() ? UINT64_MAX : later_.first_time() >> kDayBits;
    today_ = std::min(next_noted_day(), distant);
    while (!later_.is_empty() && (later_.first_time() >> kDayBits) - today_ < kDays) {
      const Entry entry = later_.pop();
      note(entry.time, entry.event);
    }
    begin(today_ % kDays);
  }

  /// Lays out what is due that day.
  void begin(std::size_t slot) {
    due_.clear();
    given_ = 0;
    const std::uint32_t last = last_[slot];
    std::uint32_t note = last;
    bool is_sorted = true;
    do {
      note = places_[note].next;
      const std::uint32_t offset = places_[note].offset;
      is_sorted = is_sorted && (due_.empty() || due_.back().offset <= offset);
      due_.push_back({offset, note});
      __builtin_prefetch(&events_[note]);
    } while (note != last);
    last_[slot] = kNone;
    marks_.clear(slot);
    if (!is_sorted) {
      sort_due();
    }
  }

  /// Keeps the order of coming of what is due at one time.
  void sort_due() {
    constexpr std::size_t kFew = 64; // for which std::stable_sort takes longer, as it allocates
    const auto is_earlier = [](const Due& a, const Due& b) { return a.offset < b.offset; };
    if (due_.size() > kFew) {
      std::stable_sort(due_.begin(), due_.end(), is_earlier);
      return;
    }
    for (std::size_t next = 1; next < due_.size(); ++next) {
      const Due moved = due_[next];
      std::size_t hole = next;
      for (; hole != 0 && is_earlier(moved, due_[hole - 1]); --hole) {
        due_[hole] = due_[hole - 1];
      }
      due_[hole] = moved;
    }
  }

  /// UINT64_MAX: none.
  std::uint64_t next_noted_day() const {
    const std::size_t ahead = marks_.distance_to_next((today_ + 1) % kDays);
    return ahead == kDays ? UINT64_MAX : today_ + 1 + ahead;
  }

  std::uint64_t today_ = 0;
  std::vector<Due> due_;  // today, in order: what was noted before the day began
  std::size_t given_ = 0; // of due_
  Heap late_;             // came for today or a day before it
  Heap later_;            // not before today_ + kDays
  std::vector<std::uint32_t> last_ = std::vector(kDays, kNone); // by day: its last note
  DayMarks marks_ = DayMarks(kDays);                            // days that have notes
  // By note. Two lists, for a day is laid out by its places alone.
  std::vector<Event> events_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_; // notes
  std::size_t size_ = 0;
  std::uint64_t pushed_ = 0;
};

} // namespace weir::netsim
