// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/request_queue.hpp"

#include "host/collective/call_copy.hpp"

#include <fmt/format.h>

#include <cassert>
#include <exception>
#include <stdexcept>
#include <utility>

namespace weir::host {

void RequestQueue::add(const std::shared_ptr<Request>& request, Call call) {
  throw_if_failed();
  call.sequence = ++calls_;
  request->job.call = call;
  requests_.push_back(request);
}

void RequestQueue::start_all() {
  try {
    while (may_start()) {
      membership_.engine->start(requests_[started_]->job);
      ++started_;
    }
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) { // out of memory
    fail(Error(ErrorCode::transport_failure, std::nullopt, text_of(error)));
  }
}

bool RequestQueue::retire_done() {
  const std::size_t before = requests_.size();
  while (has_done()) {
    if (!requests_.front()->is_cancelled) {
      note_done(*requests_.front());
      note_over(requests_.front());
    }
    requests_.pop_front();
    assert(started_ != 0);
    --started_;
  }
  return requests_.size() != before;
}

void RequestQueue::fail(const Error& error) {
  failure_ = error;
  membership_.control->report(error);
  membership_.transport->quiesce(); // before any caller learns that its memory is its own again
  membership_.give_up_rings();
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request->sparse) {
      request->sparse->outcome()->fail(error);
    }
  }
  for (const std::shared_ptr<Request>& request : requests_) {
    note_over(request);
  }
  requests_.clear();
  done_event_.end();
  started_ = 0;
  has_failed_.store(true, std::memory_order_release);
}

/// Its caller may know already: another thread than the driving one may have looked.
void RequestQueue::note_done(Request& request) {
  request.is_counted = !request.is_seen;
  if (request.is_counted) {
    done_event_.add_done();
  }
}

void RequestQueue::note_seen(Request& request) {
  if (!std::exchange(request.is_seen, true) && request.is_counted) {
    done_event_.take_done();
  }
}

void RequestQueue::note_over(const std::shared_ptr<Request>& request) {
  if (request->has_callback && !std::exchange(request->is_due, true)) {
    due_.push_back(request);
    has_due_ = true;
  }
}

void RequestQueue::set_callback(const std::shared_ptr<Request>& request, DoneCallback callback) {
  if (request->has_callback) {
    throw std::invalid_argument("request: found one with a callback; allowed: one without");
  }
  request->on_done = std::move(callback);
  request->has_callback = true;
  note_seen(*request); // nobody needs to look for it any more
  if (is_over(*request)) {
    note_over(request);
  }
}

std::shared_ptr<Request> RequestQueue::take_due() {
  std::shared_ptr<Request> request = std::move(due_.front());
  due_.pop_front();
  has_due_ = !due_.empty();
  return request;
}

bool RequestQueue::cancel(const std::shared_ptr<Request>& request, const Place& place) {
  if (is_over(*request)) {
    return true;
  }
  Job& job = request->job;
  if (job.series != nullptr || membership_.engine->has_begun(job)) {
    return false;
  }
  membership_.engine->replace(job, copy_call(job.call, place, job.buffers, request->copy));
  request->is_cancelled = true;
  note_done(*request);
  note_over(request);
  return true;
}

Error RequestQueue::cancelled(const Request& request) {
  return {
      ErrorCode::cancelled, std::nullopt,
      fmt::format("call {}, {}, was cancelled before it left this rank; the others get its part",
                  request.job.call.sequence, describe(request.job.call))};
}

std::optional<Error> RequestQueue::error_of(const Request& request) const {
  if (request.is_cancelled) {
    return cancelled(request);
  }
  return request.job.done ? std::nullopt : failure_;
}

bool RequestQueue::outcome_of(Request& request) {
  if (request.is_cancelled) {
    note_seen(request);
    throw cancelled(request);
  }
  if (!request.job.done) {
    throw_if_failed();
    return false;
  }
  note_seen(request);
  return true;
}

void RequestQueue::throw_if_failed() const {
  if (failure_) {
    throw *failure_;
  }
}

} // namespace weir::host
