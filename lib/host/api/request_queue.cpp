// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/request_queue.hpp"

namespace weir::host {

void RequestQueue::add(const std::shared_ptr<Request>& request, Call call) {
  throw_if_failed();
  call.sequence = ++calls_;
  request->job.call = call;
  requests_.push_back(request);
}

void RequestQueue::start_next() {
  if (requests_.empty() || membership_.engine->is_reducing()) {
    return;
  }
  try {
    membership_.engine->start(requests_.front()->job);
  } catch (const Error& error) {
    fail(error);
  }
}

bool RequestQueue::retire_first() {
  if (requests_.empty() || !requests_.front()->job.done) {
    return false;
  }
  requests_.pop_front();
  return true;
}

void RequestQueue::fail(const Error& error) {
  failure_ = error;
  membership_.control->report(error);
  requests_.clear();
}

bool RequestQueue::outcome_of(const Request& request) const {
  if (!request.job.done) {
    throw_if_failed();
  }
  return request.job.done;
}

void RequestQueue::throw_if_failed() const {
  if (failure_) {
    throw *failure_;
  }
}

} // namespace weir::host
