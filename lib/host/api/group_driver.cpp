// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_driver.hpp"

#include "host/api/within_callback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

// A caller that has just gone may come again; the process's thread does not take over at once.
constexpr auto kHandOver = std::chrono::milliseconds(1);
// Callers that look so often, each time so soon after the last, do that thread's work as well as it
// does. They may be held up now and then.
constexpr unsigned kOften = 8;
constexpr unsigned kMostVisits = 2 * kOften;
constexpr auto kSoon = std::chrono::microseconds(100);
constexpr auto kHeldBackPause = std::chrono::milliseconds(1); // of calls that may not start yet
constexpr auto kLongWait = std::chrono::milliseconds(100); // for a waiting caller that is notified

GroupOptions with_rings(GroupOptions options, const std::vector<std::uint32_t>& rings) {
  options.rings = rings;
  return options;
}

} // namespace

GroupDriver::GroupDriver(GroupOptions options, Membership membership)
    : options_(with_rings(std::move(options), membership.rings)),
      membership_(std::move(membership)), requests_(membership_) {
  if (options_.progress == ProgressBy::thread) {
    const Lock lock(mutex_);
    Attended& self = *this;
    seat_ = std::make_unique<ProgressThreads::Seat>(self, membership_.waiter->descriptor());
  }
  if (membership_.held_rings) {
    membership_.held_rings->when_ended([this](std::string_view why) { abort(why); });
  }
  membership_.control->when_region_ends(
      [this](const EndedRegion& ended) { region_ends_->note(ended); });
  region_ends_->set_driver({.wake = [this] { wake(); }, .progress = [this] { visit(); }});
}

/// For a region's end that the others do not know.
void GroupDriver::wake() {
  const Lock lock(mutex_);
  end_sleep();
}

std::optional<std::uint32_t> GroupDriver::taken_ring() {
  const Lock lock(mutex_);
  return requests_.failure() ? requests_.failure()->taken_ring() : std::nullopt;
}

/// Not with the lock: who tells that the switch has ended them may wait for it.
void GroupDriver::release_rings() {
  if (membership_.held_rings) {
    membership_.held_rings->release();
  }
  membership_.give_up_rings();
}

std::shared_ptr<Request> GroupDriver::start(std::shared_ptr<Request> request, const Call& call) {
  request->driver = shared_from_this();
  refuse_elsewhere();
  Lock lock(mutex_);
  requests_.add(request, call);
  if (may_step()) {
    step(lock, Deadline::min()); // its first messages leave now
    requests_.throw_if_failed();
  }
  if (!requests_.is_empty()) {
    end_sleep();
  }
  return request;
}

void GroupDriver::on_done(const std::shared_ptr<Request>& request, DoneCallback callback) {
  refuse_elsewhere();
  Lock lock(mutex_);
  requests_.set_callback(request, std::move(callback));
  call_back(lock);
}

/// All that are due, without the lock, so that they may do what other threads may. Not those that
/// another thread calls, or this one, further up.
void GroupDriver::call_back(Lock& lock) {
  if (!may_call_back()) {
    return;
  }
  is_calling_ = true;
  while (requests_.has_due()) {
    const std::shared_ptr<Request> request = requests_.take_due();
    const std::optional<Error> error = requests_.error_of(*request);
    lock.unlock();
    {
      const WithinCallback within;
      std::exchange(request->on_done, {})(error);
    }
    lock.lock();
  }
  is_calling_ = false;
  if (closing_) {
    changed_.notify_all();
  }
}

/// A caller that drives. Others may take over meanwhile.
void GroupDriver::call_back_while_waiting(Lock& lock) {
  if (may_call_back()) {
    --waiters_;
    hand_over();
    call_back(lock);
    begin_to_wait();
  }
}

/// The first one that waits drives. A thread that sleeps within its step gives way.
void GroupDriver::begin_to_wait() {
  if (++waiters_ == 1 && is_staying_) {
    end_sleep();
  }
}

/// There is something new to do for the thread that drives.
void GroupDriver::end_sleep() {
  if (is_asleep_ && seat_) {
    seat_->call();
  }
  if (is_stepping_) {
    membership_.bell->ring();
  }
}

/// Nobody drives now.
void GroupDriver::hand_over() {
  changed_.notify_all();
  if (is_resting_ && is_own_turn()) {
    end_rest();
  }
}

void GroupDriver::end_rest() {
  is_resting_ = false;
  is_pausing_ = true;
  if (seat_) {
    seat_->call();
  }
}

/// Throws in a child made by fork: there the mutex may stay locked for ever, and the connections
/// are the parent's.
void GroupDriver::refuse_elsewhere() const {
  if (!is_here()) {
    throw Error(ErrorCode::transport_failure, options_.rank,
                fmt::format("rank {}: this process was made by a fork of the group's own; "
                            "only that one may use it",
                            options_.rank));
  }
}

/// What the body throws.
template <typename Body>
std::optional<Error> GroupDriver::error_of(Body body) const {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) { // out of memory, or thrown by a caller's FrameIo
    return Error(ErrorCode::transport_failure, options_.rank, text_of(error));
  }
}

/// Calls that wait for room start soon after there is some. Of calls that are done nothing else
/// tells.
Deadline GroupDriver::cut(Deadline deadline) const {
  if (requests_.has_done()) {
    return Deadline::min();
  }
  return requests_.has_new() ? std::min(deadline, Clock::now() + kHeldBackPause) : deadline;
}

/// Makes one step without the lock, and takes the lock again. Only for a caller that has checked
/// may_step(). With no work, sleeps until there may be some, or the deadline. True if the step did
/// any work.
bool GroupDriver::step(Lock& lock, Deadline deadline) {
  assert(lock.owns_lock() && may_step());
  requests_.start_all();
  if (requests_.has_failed()) {
    end_regions();
    hand_over();
    return false;
  }
  deadline = cut(deadline);
  is_stepping_ = true;
  const bool hears_control = std::exchange(hears_control_, false);
  lock.unlock();
  bool moved = false;
  const std::optional<Error> error = error_of([&] {
    if (hears_control) {
      membership_.engine->hear_control();
    }
    if (region_ends_->has_untold()) {
      tell_region_ends();
    }
    moved = membership_.progress(deadline);
  });
  if (error || is_aborted_) { // without the lock, because it may take a second
    membership_.transport->quiesce();
    release_rings();
  }
  lock.lock();
  is_stepping_ = false;
  note_step(error);
  return moved;
}

/// As rank 0, which the switch has told.
void GroupDriver::tell_region_ends() {
  for (const EndedRegion& ended : region_ends_->take_untold()) {
    membership_.control->tell(ended);
  }
}

/// With the group.
void GroupDriver::end_regions() {
  region_ends_->end_all(*requests_.failure());
}

/// Updates the state after a step and wakes waiting threads.
void GroupDriver::note_step(const std::optional<Error>& error) {
  assert(!is_stepping_);
  const bool is_done = requests_.retire_done();
  waits_for_ = membership_.control->waits_for();
  if (error) {
    requests_.fail(*error);
  }
  end_if_aborted();
  const bool has_failed = requests_.has_failed();
  if (has_failed) {
    end_regions();
  }
  if (is_done || has_failed || visitors_ != 0 || closing_ || is_resting_) {
    hand_over();
  }
}

/// Leaves the rest to a thread that drives: the device may take its time to end its requests. If
/// none does, the others shall know all the same.
void GroupDriver::abort(std::string_view why) {
  refuse_elsewhere();
  const Lock lock(mutex_);
  if (!is_aborted_) {
    why_aborted_ = why;
    is_aborted_ = true;
    membership_.give_up_rings(); // the caller may form the next group at once
    if (options_.progress == ProgressBy::caller && !is_stepping_ && !requests_.has_failed()) {
      membership_.control->report(aborted());
    }
  }
  hand_over();
  end_sleep();
}

void GroupDriver::end_if_aborted() {
  if (is_aborted_ && !requests_.has_failed()) {
    requests_.fail(aborted());
  }
}

Error GroupDriver::aborted() const {
  return {ErrorCode::aborted, options_.rank,
          fmt::format("rank {} aborted its group{}{}", options_.rank,
                      why_aborted_.empty() ? "" : ": ", why_aborted_)};
}

bool GroupDriver::test(Request& request) {
  refuse_elsewhere();
  if (!requests_.is_over(request)) {
    visit();
  }
  if (!requests_.is_over(request)) {
    return false;
  }
  Lock lock(mutex_);
  call_back(lock); // of a cancelled one's nobody else may think
  return requests_.outcome_of(request);
}

void GroupDriver::progress() {
  refuse_elsewhere();
  visit();
  if (requests_.has_failed()) {
    const Lock lock(mutex_);
    requests_.throw_if_failed();
  }
}

/// Makes a step, unless another thread drives or has the lock.
void GroupDriver::visit() {
  Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return;
  }
  note_visit(Clock::now());
  if (waiters_ == 0 && may_step()) {
    is_visited_ = true;
    step(lock, Deadline::min());
    is_visited_ = false;
    left_ = Clock::now();
  }
  call_back(lock);
}

void GroupDriver::note_visit(Deadline now) {
  visits_ = now < left_ + kSoon ? std::min(visits_ + 1, kMostVisits) : visits_ / 2;
  left_ = now;
}

/// Whoever has waited may wait again.
bool GroupDriver::callers_come_often() const {
  return visits_ >= kOften && Clock::now() < left_ + kHandOver;
}

bool GroupDriver::wait_until(Request& request, Deadline deadline) {
  refuse_elsewhere();
  if (is_within_callback() && !requests_.is_over(request)) {
    refuse_within_callback("wait");
  }
  Lock lock(mutex_);
  if (requests_.is_over(request)) { // nobody who drives needs to give way
    call_back(lock);
    return requests_.outcome_of(request);
  }
  begin_to_wait();
  for (Deadline now = Clock::now(); !requests_.is_over(request) && now < deadline;
       now = left_ = Clock::now()) {
    if (may_step()) {
      step(lock, deadline);
      if (requests_.has_due()) {
        call_back_while_waiting(lock);
      }
    } else if (waiters_ == 1) {
      give_way(lock); // the process's thread is driving, and stops after this step
    } else {
      changed_.wait_until(lock, std::min(deadline, now + kLongWait));
    }
  }
  --waiters_;
  visits_ = kOften;
  hand_over();
  if (requests_.has_due()) {
    call_back(lock);
  }
  if (!requests_.is_empty()) {
    end_sleep();
  }
  return requests_.outcome_of(request);
}

void GroupDriver::keep_for_ever(std::shared_ptr<GroupDriver> driver) {
  static auto* const kept = new std::vector<std::shared_ptr<GroupDriver>>;
  kept->push_back(std::move(driver));
}

/// Where that cannot be found out, control is looked at.
bool GroupDriver::may_hear_control() {
  bool hears = true;
  error_of([&] { hears = membership_.waiter->hear(); });
  return hears;
}

/// By a thread of the process's.
Rest GroupDriver::attend(Wakening wakening, Deadline stay) {
  const bool hears_control = wakening == Wakening::by_descriptor && may_hear_control();
  Lock lock(mutex_);
  is_asleep_ = false;
  hears_control_ |= hears_control;
  if (closing_) {
    return {};
  }
  if (is_visited_) {
    return {.end = Clock::now() + kHandOver};
  }
  if (may_call_back()) {
    call_back(lock);
    return kNoRest;
  }
  if (is_pausing_ && callers_come_often()) {
    return until_pause();
  }
  is_pausing_ = false;
  if (!is_own_turn()) {
    return leave_it_to_others();
  }
  if (callers_come_often()) {
    return until_pause();
  }
  return step_and_stay(lock, stay) || !may_sleep() ? kNoRest : sleep(lock);
}

/// True: there may be more to do at once. A device that is polled ends each sleep after a moment.
bool GroupDriver::step_and_stay(Lock& lock, Deadline stay) {
  is_staying_ = stay != Deadline::min();
  bool moved = step(lock, stay);
  while (!moved && may_sleep() && !callers_come_often() && Clock::now() < stay) {
    moved = step(lock, stay);
  }
  is_staying_ = false;
  return moved;
}

/// Callers drive, or nobody does any more. Waking a thread costs a caller as much as the rest of a
/// small call, so those who come again and again wake it once.
Rest GroupDriver::leave_it_to_others() {
  changed_.notify_all();
  is_resting_ = true;
  return {};
}

/// Until no caller has driven for a while, or they come seldom.
Rest GroupDriver::until_pause() {
  is_pausing_ = true;
  return {.end = left_ + kHandOver};
}

/// Others may drive meanwhile.
Rest GroupDriver::sleep(Lock& lock) {
  std::optional<Deadline> due;
  if (const auto error = error_of([&] { due = membership_.next_work(); })) {
    note_step(error);
    return kNoRest;
  }
  if (!due) {
    give_way(lock);
    return kNoRest;
  }
  is_asleep_ = true;
  return {.end = cut(*due), .is_watched = true};
}

void GroupDriver::give_way(Lock& lock) {
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void GroupDriver::close() {
  region_ends_->set_driver({});
  region_ends_->end_all(closed_with_regions());
  {
    Lock lock(mutex_);
    closing_ = true;
    end_sleep();
    changed_.wait(lock, [this] { return !is_stepping_; });
    end_calls(lock);
  }
  end_attendance();
  if (!requests_.has_failed()) {
    membership_.leave();
  }
  release_rings();
}

/// Without the lock, which a thread in attend() takes.
void GroupDriver::end_attendance() {
  Lock lock(mutex_);
  const auto last = std::move(seat_);
  lock.unlock();
}

/// Callbacks may start more.
void GroupDriver::end_calls(Lock& lock) {
  do {
    end_if_aborted();
    if (!requests_.is_empty() && !requests_.has_failed()) {
      requests_.fail(closed_too_early());
    }
    changed_.notify_all();
    call_back(lock);
    changed_.wait(lock, [this] { return !is_calling_; });
  } while (requests_.has_due() || !(requests_.is_empty() || requests_.has_failed()));
}

Error GroupDriver::closed_too_early() const {
  return {ErrorCode::peer_died, options_.rank,
          fmt::format("rank {} closed its group during a call", options_.rank)};
}

Error GroupDriver::closed_with_regions() const {
  return {ErrorCode::aborted, options_.rank,
          fmt::format("rank {} closed the group of this region", options_.rank)};
}

int GroupDriver::descriptor() {
  refuse_elsewhere();
  if (options_.progress == ProgressBy::caller) {
    throw std::invalid_argument("progress: found a group without a thread, of which nothing tells "
                                "when a request is done; allowed: a group with one");
  }
  const Lock lock(mutex_);
  return requests_.descriptor();
}

std::string GroupDriver::waits_for() {
  refuse_elsewhere();
  const Lock lock(mutex_);
  return waits_for_;
}

/// While it lives nobody uses the membership. Whoever drove does again afterwards.
class GroupDriver::Pause {
 public:
  Pause(GroupDriver& driver, Lock& lock) : driver_(driver) {
    ++driver.visitors_;
    driver.end_sleep();
    driver.changed_.wait(lock, [&] { return !driver.is_stepping_; });
    --driver.visitors_;
  }

  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  ~Pause() { driver_.hand_over(); }

 private:
  GroupDriver& driver_;
};

GroupStatistics GroupDriver::statistics() {
  refuse_elsewhere();
  Lock lock(mutex_);
  const Pause pause(*this, lock);
  return membership_.statistics();
}

/// Its callback is left to a thread that drives, as after an abort.
bool GroupDriver::cancel(const std::shared_ptr<Request>& request) {
  refuse_elsewhere();
  Lock lock(mutex_);
  const Pause pause(*this, lock);
  const bool is_over = requests_.cancel(request, {options_.rank, options_.world});
  end_sleep();
  return is_over;
}

} // namespace weir::host
