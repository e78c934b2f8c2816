// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/event_waiter.hpp"
#include "host/base/stream.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::host {

/// What ended a rest.
enum class Wakening : std::uint8_t { by_call_or_clock, by_descriptor };

/// How long somebody needs no thread.
struct Rest {
  Deadline end = Deadline::max();
  bool is_watched = false; // ends, too, when the descriptor is readable
};

/// After a turn of all others who need a thread.
inline constexpr Rest kNoRest{.end = Deadline::min()};

/// Who needs a thread now and then.
class Attended {
 public:
  virtual ~Attended() = default;
  /// Does a part of what there is to do. One thread at a time. Where there is nothing, it may sleep
  /// until `stay` for whatever would end a rest.
  virtual Rest attend(Wakening wakening, Deadline stay) = 0;
};

/// The threads of a process that drive the groups that nobody else drives. One does it all, in
/// turns. Where it is held up by one group, or has work for several all the time, or for one that
/// does not rest, a second one helps, and so on. Then that group keeps the first one for itself.
/// Who does not help sleeps.
class ProgressThreads {
 public:
  /// Somebody's place among those who are attended to.
  class Seat {
   public:
    /// `descriptor` is open as long as this. Throws Error, or std::system_error, when the process
    /// can have no more descriptors or threads.
    Seat(Attended& attended, int descriptor,
         std::shared_ptr<ProgressThreads> threads = of_process());
    /// Returns when no thread attends to it any more. Not in attend().
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    /// Ends the rest, or the next one at once. Any thread; never blocks for long.
    void call();

   private:
    friend class ProgressThreads;

    bool needs_thread(Deadline now) const;
    bool is_busy() const;

    Attended& attended_;
    const int descriptor_;
    const std::shared_ptr<ProgressThreads> threads_;
    // Guarded by the threads' mutex.
    Rest rest_ = kNoRest;
    std::uint64_t turn_ = 0;  // who has the least is next
    unsigned busy_turns_ = 0; // since the last rest
    bool is_armed_ = false;   // its descriptor wakes the thread that waits
    bool is_readable_ = false;
    bool is_called_ = false;
    bool is_attended_ = false;
    Deadline since_; // of that
    bool is_left_ = false;
  };

  /// `patience` is how long a group may hold up the others, or share their thread with others that
  /// are as busy.
  explicit ProgressThreads(std::chrono::nanoseconds patience = std::chrono::milliseconds(2));
  /// When there are no seats.
  ~ProgressThreads();
  ProgressThreads(const ProgressThreads&) = delete;
  ProgressThreads& operator=(const ProgressThreads&) = delete;

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Duty : std::uint8_t { serve, help };

  static std::shared_ptr<ProgressThreads> of_process();
  void add(Seat& seat);
  void remove(Seat& seat);
  void call(Seat& seat);
  void end_wait();
  void start_thread(Duty duty);
  void end_thread();
  void join_ended(Lock& lock);
  void run(Duty duty);
  void serve(Lock& lock);
  Seat* next_seat(Seat* last, Deadline now);
  void attend(Lock& lock, Seat& seat);
  bool may_stay(const Seat& seat) const;
  void arm(Seat& seat);
  void disarm(Seat& seat);
  void wait(Lock& lock);
  Deadline end_of_rests() const;
  void collect();
  void wait_to_help(Lock& lock);
  void set_alarm();
  void call_helper();
  bool is_held_up(Deadline now) const;
  void provide_helper();
  void epoll(int operation, int descriptor, void* whose, std::uint32_t events);

  const std::chrono::nanoseconds patience_;
  Socket events_; // of the seats' descriptors and the bell
  Socket alarm_;  // wakes the helper
  Bell bell_;     // wakes the thread that waits

  std::mutex mutex_; // guards all below
  std::vector<Seat*> seats_;
  std::uint64_t turns_ = 0;
  std::size_t armed_ = 0;              // of those
  bool is_waiting_ = false;            // a thread, for events
  Deadline end_of_wait_;               // at the latest
  bool is_rung_ = false;               // the bell
  Deadline busy_since_ = Clock::now(); // no thread has waited
  bool has_helper_ = false;            // a thread sleeps until the alarm
  bool is_alarm_set_ = false;
  bool is_helper_called_ = false; // because a group is busy
  std::size_t spare_ = 0;         // threads that sleep until there is no helper
  bool is_over_ = false;
  std::condition_variable left_; // a seat is not attended to any more
  std::condition_variable spare_may_help_;
  std::list<std::thread> threads_;
  std::vector<std::thread> ended_; // to be joined
};

} // namespace weir::host
