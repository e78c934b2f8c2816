// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_driver.hpp"

#include "host/api/group_formation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

constexpr auto kIdlePeriod = std::chrono::milliseconds(1); // how long a peer waits for an ACK
constexpr auto kLongWait = std::chrono::milliseconds(100); // for a waiting caller that is notified

} // namespace

GroupDriver::GroupDriver(const GroupOptions& options, std::unique_ptr<Transport> transport)
    : options_(options), membership_(form_group(options_, std::move(transport))),
      requests_(membership_) {
  thread_ = std::thread([this] { attend(); });
}

std::shared_ptr<Request> GroupDriver::start(const void* in, void* out, const Call& call) {
  auto request = std::make_shared<Request>();
  request->driver = shared_from_this();
  request->job.in = static_cast<const std::uint8_t*>(in);
  request->job.out = static_cast<std::uint8_t*>(out);
  refuse_elsewhere();
  const Lock lock(mutex_);
  requests_.add(request, call);
  if (!is_stepping_) {
    requests_.start_all();
    requests_.throw_if_failed();
  }
  wake_.notify_one();
  return request;
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

/// Makes one step without the lock, and takes the lock again. Only for a caller that has checked
/// may_step(). With no work, waits up to `timeout`. True if the step did any work.
bool GroupDriver::step(Lock& lock, std::chrono::microseconds timeout) {
  is_stepping_ = true;
  lock.unlock();
  bool moved = false;
  std::optional<Error> error;
  try {
    moved = membership_.progress(timeout);
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::exception& caught) { // out of memory, or thrown by a caller's FrameIo
    error = Error(ErrorCode::transport_failure, options_.rank, caught.what());
  }
  lock.lock();
  is_stepping_ = false;
  note_step(error);
  return moved;
}

/// Updates the state after a step and wakes waiting threads.
void GroupDriver::note_step(const std::optional<Error>& error) {
  const bool is_done = requests_.retire_done();
  waits_for_ = membership_.control->waits_for();
  if (error) {
    requests_.fail(*error);
  }
  end_if_aborted();
  requests_.start_all();
  if (is_done || requests_.has_failed() || visitors_ != 0 || closing_) {
    changed_.notify_all();
  }
}

/// The thread that makes a step has the control connections until its end.
void GroupDriver::abort() {
  refuse_elsewhere();
  const Lock lock(mutex_);
  is_aborted_ = true;
  if (!is_stepping_) {
    end_if_aborted();
    changed_.notify_all();
  }
}

void GroupDriver::end_if_aborted() {
  if (is_aborted_ && !requests_.has_failed()) {
    requests_.fail(Error(ErrorCode::aborted, options_.rank,
                         fmt::format("rank {} aborted its group", options_.rank)));
  }
}

bool GroupDriver::test(const Request& request) {
  refuse_elsewhere();
  Lock lock(mutex_);
  if (!requests_.is_over(request) && may_step()) {
    step(lock, {});
  }
  return requests_.outcome_of(request);
}

bool GroupDriver::wait_until(const Request& request, Deadline deadline) {
  refuse_elsewhere();
  Lock lock(mutex_);
  ++waiters_;
  for (auto now = Clock::now(); !requests_.is_over(request) && now < deadline; now = Clock::now()) {
    if (may_step()) {
      step(lock, kShortWait);
    } else if (waiters_ == 1) {
      give_way(lock); // the own thread is driving, and stops after this step
    } else {
      changed_.wait_until(lock, std::min(deadline, now + kLongWait));
    }
  }
  --waiters_;
  changed_.notify_all(); // another thread may drive now
  if (!requests_.is_empty()) {
    wake_.notify_one();
  }
  return requests_.outcome_of(request);
}

void GroupDriver::keep_for_ever(std::shared_ptr<GroupDriver> driver) {
  static auto* const kept = new std::vector<std::shared_ptr<GroupDriver>>;
  kept->push_back(std::move(driver));
}

/// Body of the own thread.
void GroupDriver::attend() {
  Lock lock(mutex_);
  while (!closing_) {
    if (requests_.is_empty() || waiters_ != 0) {
      wake_.wait_for(lock, kIdlePeriod);
    }
    while (waiters_ == 0 && may_step() && step(lock, {})) {
    }
    if (waiters_ != 0) {
      changed_.notify_all(); // callers drive now
    } else if (!requests_.is_empty()) {
      give_way(lock);
    }
  }
}

void GroupDriver::give_way(Lock& lock) {
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void GroupDriver::close() {
  {
    Lock lock(mutex_);
    closing_ = true;
    changed_.wait(lock, [this] { return !is_stepping_; });
    if (!requests_.is_empty() && !requests_.has_failed()) {
      requests_.fail(closed_too_early());
    }
    changed_.notify_all();
    wake_.notify_one();
  }
  thread_.join();
  if (!requests_.has_failed()) {
    membership_.leave();
  }
}

Error GroupDriver::closed_too_early() const {
  return {ErrorCode::peer_died, options_.rank,
          fmt::format("rank {} closed its group during a call", options_.rank)};
}

std::string GroupDriver::waits_for() {
  refuse_elsewhere();
  const Lock lock(mutex_);
  return waits_for_;
}

GroupStatistics GroupDriver::statistics() {
  refuse_elsewhere();
  Lock lock(mutex_);
  ++visitors_;
  changed_.wait(lock, [this] { return !is_stepping_; });
  --visitors_;
  changed_.notify_all(); // the engine may go on
  return membership_.statistics();
}

} // namespace weir::host
