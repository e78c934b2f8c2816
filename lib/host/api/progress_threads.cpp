// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/progress_threads.hpp"

#include "host/base/error.hpp"
#include "host/base/per_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <span>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weir::host {
namespace {

// Turns without a rest that make a group busy. A small call takes two or three.
constexpr unsigned kBusyTurns = 4;
// How long the thread of a busy group stays for what comes next. Longer than a scheduler's slices,
// by which the other ranks, or the switch, may be late.
constexpr std::chrono::milliseconds kStay{10};
constexpr std::size_t kMostSpareThreads = 1;
constexpr std::size_t kEventsAtOnce = 32;

[[noreturn]] void fail_to_wait(const char* what) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Registered {
  std::mutex mutex;
  std::weak_ptr<ProgressThreads> threads; // guarded by the mutex
};

void set_timer(const Socket& timer, std::chrono::nanoseconds after) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const itimerspec time{.it_interval = {},
                        .it_value = {.tv_sec = after.count() / kNanoseconds,
                                     .tv_nsec = after.count() % kNanoseconds}};
  timerfd_settime(timer.get(), 0, &time, nullptr);
}

void await(const Socket& timer) {
  std::uint64_t times = 0;
  while (read(timer.get(), &times, sizeof(times)) < 0 && errno == EINTR) {
  }
}

} // namespace

ProgressThreads::Seat::Seat(Attended& attended, int descriptor,
                            std::shared_ptr<ProgressThreads> threads)
    : attended_(attended), descriptor_(descriptor), threads_(std::move(threads)) {
  threads_->add(*this);
}

ProgressThreads::Seat::~Seat() {
  threads_->remove(*this);
}

void ProgressThreads::Seat::call() {
  threads_->call(*this);
}

std::shared_ptr<ProgressThreads> ProgressThreads::of_process() {
  auto& registered = of_this_process<Registered>();
  const std::lock_guard lock(registered.mutex);
  std::shared_ptr<ProgressThreads> threads = registered.threads.lock();
  if (!threads) {
    threads = std::make_shared<ProgressThreads>();
    registered.threads = threads;
  }
  return threads;
}

ProgressThreads::ProgressThreads(std::chrono::nanoseconds patience)
    : patience_(patience), events_([] { return epoll_create1(EPOLL_CLOEXEC); }),
      alarm_([] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC); }) {
  if (!events_ || !alarm_) {
    fail_to_wait("no descriptor for the threads of groups");
  }
  epoll(EPOLL_CTL_ADD, bell_.descriptor(), nullptr, EPOLLIN);
}

ProgressThreads::~ProgressThreads() {
  {
    const Lock lock(mutex_);
    assert(seats_.empty());
    is_over_ = true;
    bell_.ring();
    set_timer(alarm_, std::chrono::nanoseconds(1));
    spare_may_help_.notify_all();
  }
  for (std::thread& thread : threads_) { // none is added or ends any more
    thread.join();
  }
  Lock lock(mutex_);
  join_ended(lock);
}

void ProgressThreads::epoll(int operation, int descriptor, void* whose, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = whose}};
  if (epoll_ctl(events_.get(), operation, descriptor, &event) != 0) {
    fail_to_wait("a group's descriptors cannot be waited for");
  }
}

void ProgressThreads::add(Seat& seat) {
  const Lock lock(mutex_);
  if (threads_.empty()) {
    start_thread(Duty::serve);
  }
  epoll(EPOLL_CTL_ADD, seat.descriptor_, &seat, EPOLLONESHOT);
  seats_.push_back(&seat);
  provide_helper();
  end_wait();
}

void ProgressThreads::remove(Seat& seat) {
  Lock lock(mutex_);
  seat.is_left_ = true;
  left_.wait(lock, [&] { return !seat.is_attended_; });
  disarm(seat);
  std::erase(seats_, &seat);
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, seat.descriptor_, nullptr);
}

void ProgressThreads::call(Seat& seat) {
  const Lock lock(mutex_);
  seat.is_called_ = true;
  end_wait();
}

void ProgressThreads::end_wait() {
  if (is_waiting_ && !std::exchange(is_rung_, true)) {
    bell_.ring();
  }
}

void ProgressThreads::start_thread(Duty duty) {
  threads_.emplace_back([this, duty] { run(duty); });
  spare_ += duty == Duty::help ? 1 : 0;
}

/// A thread's body.
void ProgressThreads::run(Duty duty) {
  Lock lock(mutex_);
  if (duty == Duty::help) {
    wait_to_help(lock);
  }
  serve(lock);
  while (!is_over_ && !(has_helper_ && spare_ == kMostSpareThreads)) {
    ++spare_;
    wait_to_help(lock);
    serve(lock);
  }
  if (!is_over_) {
    end_thread();
  }
}

/// Returns when another thread waits for events and there is nothing else to do.
void ProgressThreads::serve(Lock& lock) {
  Seat* last = nullptr; // whose turn has just been
  while (!is_over_) {
    const Deadline now = Clock::now();
    if (Seat* const seat = next_seat(last, now)) {
      seat->since_ = now;
      attend(lock, *seat);
      last = seat;
    } else if (is_waiting_) {
      if (end_of_rests() < end_of_wait_) {
        end_wait();
      }
      return;
    } else {
      wait(lock);
      last = nullptr; // it may have left
    }
  }
}

bool ProgressThreads::Seat::needs_thread(Deadline now) const {
  return !is_attended_ && !is_left_ && (is_called_ || is_readable_ || rest_.end <= now);
}

bool ProgressThreads::Seat::is_busy() const {
  return busy_turns_ >= kBusyTurns;
}

/// Whose rest is over, and has been for the most turns of others. But who may stay does.
ProgressThreads::Seat* ProgressThreads::next_seat(Seat* last, Deadline now) {
  if (last != nullptr && may_stay(*last) && last->needs_thread(now)) {
    return last;
  }
  Seat* next = nullptr;
  for (Seat* const seat : seats_) {
    if (seat->needs_thread(now) && (next == nullptr || seat->turn_ < next->turn_)) {
      next = seat;
    }
  }
  return next;
}

void ProgressThreads::attend(Lock& lock, Seat& seat) {
  const bool is_readable = std::exchange(seat.is_readable_, false);
  seat.is_called_ = false;
  seat.is_attended_ = true;
  disarm(seat);
  const Deadline stay = may_stay(seat) ? seat.since_ += kStay : Deadline::min();
  lock.unlock();
  const Rest rest = seat.attended_.attend(
      is_readable ? Wakening::by_descriptor : Wakening::by_call_or_clock, stay);
  lock.lock();
  seat.is_attended_ = false;
  seat.rest_ = rest;
  seat.busy_turns_ = rest.end == kNoRest.end ? seat.busy_turns_ + 1 : 0;
  seat.turn_ = ++turns_;
  if (seat.is_left_) {
    left_.notify_all();
    return;
  }
  if (rest.is_watched) {
    arm(seat);
  } else if (armed_ != 0 && !is_waiting_) {
    if (seat.is_busy()) {
      call_helper();
    }
    collect(); // events of others: this one may be busy for long, and nobody else hears them
  }
}

/// Where threads share CPUs, one that has computed for long is late. So it keeps this group, and
/// the one that waits, and has slept, attends to the others.
bool ProgressThreads::may_stay(const Seat& seat) const {
  return is_waiting_ && seat.is_busy();
}

void ProgressThreads::arm(Seat& seat) {
  seat.is_armed_ = true;
  ++armed_;
  epoll(EPOLL_CTL_MOD, seat.descriptor_, &seat, EPOLLIN | EPOLLONESHOT);
}

/// Its descriptor may be armed still: what it tells then is too much, and is looked at once.
void ProgressThreads::disarm(Seat& seat) {
  armed_ -= std::exchange(seat.is_armed_, false) ? 1 : 0;
}

/// Until there is an event, or a rest is over.
void ProgressThreads::wait(Lock& lock) {
  is_waiting_ = true;
  is_helper_called_ = false;
  end_of_wait_ = end_of_rests();
  const Deadline end = end_of_wait_;
  lock.unlock();
  pollfd entry{events_.get(), POLLIN, 0};
  poll_until({&entry, 1}, end);
  lock.lock();
  is_waiting_ = false;
  busy_since_ = Clock::now();
  collect();
  if (has_helper_ && !is_alarm_set_) {
    set_alarm();
  }
}

Deadline ProgressThreads::end_of_rests() const {
  Deadline end = Deadline::max();
  for (const Seat* const seat : seats_) {
    end = std::min(end, seat->is_attended_ ? Deadline::max() : seat->rest_.end);
  }
  return end;
}

/// Those that are there.
void ProgressThreads::collect() {
  std::array<epoll_event, kEventsAtOnce> ready;
  const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (const epoll_event& event :
       std::span(ready).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.ptr == nullptr) {
      bell_.silence();
      is_rung_ = false;
      continue;
    }
    Seat& seat = *static_cast<Seat*>(event.data.ptr);
    seat.is_readable_ = true;
    disarm(seat);
  }
}

/// Until the other threads are held up. Its caller is counted as spare.
void ProgressThreads::wait_to_help(Lock& lock) {
  spare_may_help_.wait(lock, [this] { return is_over_ || !has_helper_; });
  --spare_;
  has_helper_ = true;
  while (!is_over_ && !is_held_up(Clock::now())) {
    if (!is_waiting_) {
      set_alarm();
    }
    lock.unlock();
    await(alarm_);
    lock.lock();
    is_alarm_set_ = false;
  }
  has_helper_ = false;
  is_helper_called_ = false;
  if (!is_over_) {
    provide_helper();
    join_ended(lock);
  }
}

/// Not at the end, whose alarm it would put off.
void ProgressThreads::set_alarm() {
  if (is_over_) {
    return;
  }
  is_alarm_set_ = true;
  set_timer(alarm_, patience_);
}

/// To wait for events, which a busy group's thread would only hear between its turns.
void ProgressThreads::call_helper() {
  if (!std::exchange(is_helper_called_, true) && has_helper_) {
    set_timer(alarm_, std::chrono::nanoseconds(1));
  }
}

/// No thread waits for events: one has been with a group for long, or a group that is busy all the
/// time waits for its turn.
bool ProgressThreads::is_held_up(Deadline now) const {
  if (is_helper_called_) {
    return true;
  }
  if (is_waiting_ || now < busy_since_ + patience_) {
    return false;
  }
  return std::ranges::any_of(seats_, [&](const Seat* seat) {
    return seat->is_attended_ ? seat->since_ + patience_ <= now : seat->rest_.end == kNoRest.end;
  });
}

/// Unless there is one. A thread more than there are groups would have nothing to do. Without one
/// the groups wait for one another.
void ProgressThreads::provide_helper() {
  if (spare_ != 0) {
    spare_may_help_.notify_one();
  } else if (!has_helper_ && threads_.size() < seats_.size()) {
    try {
      start_thread(Duty::help);
    } catch (const std::exception&) { // no thread, or no memory: whoever needs it next tries again
    }
  }
}

void ProgressThreads::end_thread() {
  const auto own = std::ranges::find(threads_, std::this_thread::get_id(), &std::thread::get_id);
  ended_.push_back(std::move(*own));
  threads_.erase(own);
}

/// Without the lock: what a user keeps for each thread goes now, and may call the library.
void ProgressThreads::join_ended(Lock& lock) {
  std::vector<std::thread> ended = std::exchange(ended_, {});
  lock.unlock();
  for (std::thread& thread : ended) {
    thread.join();
  }
  lock.lock();
}

} // namespace weir::host
