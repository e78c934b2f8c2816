// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_watch.hpp"

#include "rpc/service.hpp"

#include <chrono>
#include <utility>

namespace weir::rpc {
namespace {

constexpr std::chrono::seconds kBeat{1};

} // namespace

SwitchWatch::SwitchWatch(FabricRings& rings, v1::WatchSwitchRequest request, Places::Place place)
    : rings_(rings), request_(std::move(request)), place_(std::move(place)) {
  send();
}

void SwitchWatch::send() {
  try {
    message_.Clear();
    rings_.look(request_, labels_, message_);
    labels_ = FabricRings::Labels::left_out;
  } catch (...) {
    Finish(status_of_exception());
    return;
  }
  StartWrite(&message_);
}

void SwitchWatch::OnWriteDone(bool is_written) {
  if (is_written) {
    wait();
  } else {
    Finish(grpc::Status::CANCELLED);
  }
}

void SwitchWatch::wait() {
  const std::lock_guard lock(mutex_);
  if (is_cancelled_) {
    Finish(grpc::Status::CANCELLED);
    return;
  }
  alarm_.emplace().Set(std::chrono::system_clock::now() + kBeat,
                       [this](bool is_due) { wake(is_due); });
}

void SwitchWatch::wake(bool is_due) {
  {
    const std::lock_guard lock(mutex_);
    is_due = is_due && !is_cancelled_;
  }
  if (is_due) {
    send();
  } else {
    Finish(grpc::Status::CANCELLED);
  }
}

void SwitchWatch::OnCancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (alarm_) {
    alarm_->Cancel();
  }
}

void SwitchWatch::OnDone() {
  delete this;
}

} // namespace weir::rpc
