// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/request_queue.hpp"

namespace weir::host {

void RequestQueue::add(const std::shared_ptr<Request>& request, Call call) {
  throw_if_failed();
  call.sequence = ++calls_;
  request->job.call = call;
  requests_.push_back(request);
}

void RequestQueue::start_all() {
  try {
    while (started_ < requests_.size()) {
      membership_.engine->start(requests_[started_]->job);
      ++started_;
    }
  } catch (const Error& error) {
    fail(error);
  }
}

bool RequestQueue::retire_done() {
  const std::size_t before = requests_.size();
  while (!requests_.empty() && requests_.front()->job.done) {
    requests_.pop_front();
    --started_;
  }
  return requests_.size() != before;
}

void RequestQueue::fail(const Error& error) {
  failure_ = error;
  membership_.control->report(error);
  requests_.clear();
  started_ = 0;
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
