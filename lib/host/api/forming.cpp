// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/forming.hpp"

#include "host/api/device.hpp"
#include "host/api/done_event.hpp"
#include "host/api/group_opening.hpp"
#include "host/api/transport_options.hpp"
#include "host/base/fork_watch.hpp"
#include "host/base/stop_order.hpp"
#include "host/transport/frame_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace weir::host {

/// The thread that forms a group, and what comes of it.
class FormingThread {
 public:
  explicit FormingThread(GroupOpening opening)
      : rank_(opening.options.rank), thread_([this, opened = std::move(opening)]() mutable {
          note(outcome_of(std::move(opened)));
        }) {}

  bool is_here() const { return birthplace_.is_here(); }

  void end();
  bool test() const;
  bool wait_until(Deadline deadline) const;
  std::shared_ptr<GroupDriver> take();
  void abort(std::string_view why);
  int descriptor();

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Outcome {
    std::shared_ptr<GroupDriver> driver; // null: it failed, or the group has been taken
    std::optional<Error> failure;
  };

  Outcome outcome_of(GroupOpening opening) const;
  void note(Outcome outcome);
  void end_group();
  bool is_formed() const;
  void refuse_elsewhere() const;

  const Birthplace birthplace_;
  const std::uint16_t rank_;
  StopOrder stop_;
  mutable std::mutex mutex_; // guards the next
  std::optional<Outcome> outcome_;
  DoneEvent done_event_;
  mutable std::condition_variable changed_;
  std::thread thread_; // begins when all else is there
};

FormingThread::Outcome FormingThread::outcome_of(GroupOpening opening) const {
  try {
    return {form(std::move(opening), &stop_), {}};
  } catch (const Error& error) {
    return {{}, error};
  } catch (const std::exception& error) { // out of memory, or thrown by a caller's FrameIo
    return {{}, Error(ErrorCode::transport_failure, rank_, text_of(error))};
  }
}

void FormingThread::note(Outcome outcome) {
  const Lock lock(mutex_);
  outcome_ = std::move(outcome);
  if (stop_.is_given()) { // perhaps too late to be seen
    end_group();
  }
  done_event_.end();
  changed_.notify_all();
}

/// The group that nobody has taken. Its other ranks learn why.
void FormingThread::end_group() {
  if (outcome_ && outcome_->driver && !outcome_->failure) {
    outcome_->driver->abort(stop_.why());
    outcome_->failure = stop_.error_of(rank_);
  }
}

void FormingThread::abort(std::string_view why) {
  refuse_elsewhere();
  stop_.give(why);
  const Lock lock(mutex_);
  end_group();
}

/// Waits for the thread, which looks for the order to stop many times a second.
void FormingThread::end() {
  try {
    abort("its program needs the group no more");
  } catch (const std::exception&) { // no memory for the reason; the order is given
  }
  thread_.join();
  if (outcome_->driver) {
    outcome_->driver->close();
  }
}

bool FormingThread::is_formed() const {
  if (outcome_ && outcome_->failure) {
    throw *outcome_->failure;
  }
  return outcome_.has_value();
}

bool FormingThread::test() const {
  refuse_elsewhere();
  const Lock lock(mutex_);
  return is_formed();
}

bool FormingThread::wait_until(Deadline deadline) const {
  constexpr std::chrono::seconds kLongWait{1}; // at a time: the clock's maximum is none for it
  refuse_elsewhere();
  Lock lock(mutex_);
  for (Deadline now = Clock::now(); !outcome_ && now < deadline; now = Clock::now()) {
    changed_.wait_until(lock, std::min(deadline, now + kLongWait));
  }
  return is_formed();
}

std::shared_ptr<GroupDriver> FormingThread::take() {
  refuse_elsewhere();
  const Lock lock(mutex_);
  if (!is_formed()) {
    return nullptr;
  }
  if (!outcome_->driver) {
    throw std::invalid_argument("forming: its group was taken already; allowed: once");
  }
  return std::exchange(outcome_->driver, nullptr);
}

int FormingThread::descriptor() {
  refuse_elsewhere();
  const Lock lock(mutex_);
  return done_event_.descriptor();
}

/// In a child made by fork the mutex may stay locked for ever.
void FormingThread::refuse_elsewhere() const {
  if (!is_here()) {
    throw Error(ErrorCode::transport_failure, rank_,
                fmt::format("rank {}: this process was made by a fork of the one that forms the "
                            "group; only that one may use it",
                            rank_));
  }
}

Forming::Forming(GroupOpening opening)
    : thread_(std::make_unique<FormingThread>(std::move(opening))) {}

Forming::Forming(const GroupOptions& options, Device& device)
    : Forming(open_group(device.named_by(options),
                         [&](const GroupOptions& group) { return device.open_transport(group); })) {
}

Forming::Forming(const GroupOptions& options, std::unique_ptr<FrameIo> frames)
    : Forming(open_group(options, [&](const GroupOptions& group) {
        return open_software_transport(group, std::move(frames));
      })) {}

Forming::Forming(Forming&&) noexcept = default;

/// A child made by fork has no such thread, and its parent owns the device: there the object stays.
Forming::~Forming() {
  if (thread_ && thread_->is_here()) {
    thread_->end();
  } else {
    static_cast<void>(thread_.release());
  }
}

bool Forming::test() const {
  return thread_->test();
}

bool Forming::wait_for(std::chrono::milliseconds timeout) const {
  return thread_->wait_until(deadline_after(Clock::now(), timeout));
}

std::optional<Group> Forming::take() {
  std::shared_ptr<GroupDriver> driver = thread_->take();
  return driver ? std::optional(Group(std::move(driver), {})) : std::nullopt;
}

void Forming::abort(std::string_view why) {
  thread_->abort(why);
}

int Forming::descriptor() {
  return thread_->descriptor();
}

} // namespace weir::host
