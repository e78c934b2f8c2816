// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/done_event.hpp"
#include "host/api/membership.hpp"
#include "host/api/request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

namespace weir::host {

/// A group's calls in their order, and the error that ended them. The engine works on all that it
/// was given. One thread at a time.
class RequestQueue {
 public:
  explicit RequestQueue(Membership& membership) : membership_(membership) {}

  /// Numbers the call and puts it last. Throws the error that ended the calls, if one did.
  void add(const std::shared_ptr<Request>& request, Call call);

  /// Gives the engine what it does not have yet and may have. The calls may end here.
  void start_all();

  /// Whether there is anything that the engine does not have.
  bool has_new() const { return started_ < requests_.size(); }

  /// Whether start_all() would give the engine anything. Calls wait here while ranks are so late
  /// that no more may be kept for them.
  bool may_start() const { return has_new() && membership_.control->has_room(); }

  /// Whether retire_done() would remove any. A call may be done as soon as the engine has it.
  bool has_done() const { return !requests_.empty() && requests_.front()->job.done; }

  /// Removes the first requests that are done. True if there were any.
  bool retire_done();

  /// Ends all calls and the connections, and tells the other ranks why. From then on nothing reads
  /// or writes callers' memory.
  void fail(const Error& error);

  bool is_empty() const { return requests_.empty(); }

  /// For any thread at any time. So is the next one.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  bool is_over(const Request& request) const {
    return request.is_cancelled || request.job.done || has_failed();
  }

  /// True: it is over, now or before, and its buffers are its caller's. If it was not and nothing
  /// of it has left, its call goes on with a copy, as this rank's at `place`.
  bool cancel(const std::shared_ptr<Request>& request, const Place& place);

  /// True if it is done; its caller knows then. Throws the error that ended it.
  bool outcome_of(Request& request);

  /// The callback becomes due when the request is over, perhaps now. Throws std::invalid_argument
  /// if the request has one.
  void set_callback(const std::shared_ptr<Request>& request, DoneCallback callback);

  bool has_due() const { return has_due_; }

  /// The first request whose callback is due. There is one.
  std::shared_ptr<Request> take_due();

  /// That ended a request that is over.
  std::optional<Error> error_of(const Request& request) const;

  /// Readable while requests are done and their callers do not know it, or after the end.
  int descriptor() { return done_event_.descriptor(); }

  void throw_if_failed() const;

  /// That ended all calls.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  void note_done(Request& request);
  void note_seen(Request& request);
  void note_over(const std::shared_ptr<Request>& request);
  static Error cancelled(const Request& request);

  Membership& membership_;
  std::deque<std::shared_ptr<Request>> requests_;
  std::deque<std::shared_ptr<Request>> due_; // over, and their callbacks not called yet
  bool has_due_ = false;                     // any of those
  std::size_t started_ = 0;                  // of those
  std::uint64_t calls_ = 0;
  std::optional<Error> failure_;
  std::atomic<bool> has_failed_ = false; // written last
  DoneEvent done_event_;
};

} // namespace weir::host
