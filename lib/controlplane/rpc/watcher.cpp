// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/watcher.hpp"

#include "rpc/messages.hpp"
#include "rpc/service.hpp"

#include <utility>

namespace weir::rpc {
namespace {

std::uint64_t unix_time_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

} // namespace

Watcher::Watcher(Backend& backend, Order order, Places::Place place, Room room)
    : backend_(backend), order_(std::move(order)), place_(std::move(place)),
      room_(std::move(room)) {
  send();
}

void Watcher::send() {
  try {
    room_.shares.expect_room_for_answer(room_.caller, *backend_.config());
    const report::Report answer = backend_.ask(order_.words);
    write(answer, *message_.mutable_tables());
    message_.set_time_ns(unix_time_ns());
    bytes_.emplace(room_.shares.take_answer(room_.caller, bytes_of(message_)));
  } catch (...) {
    give_back();
    Finish(status_of_exception());
    return;
  }
  StartWrite(&message_);
}

void Watcher::give_back() {
  v1::Statistics().Swap(&message_);
  bytes_.reset();
}

void Watcher::OnWriteDone(bool is_written) {
  give_back();
  if (is_written) {
    wait();
  } else {
    Finish(grpc::Status::CANCELLED);
  }
}

void Watcher::wait() {
  const std::lock_guard lock(mutex_);
  if (is_cancelled_) {
    Finish(grpc::Status::CANCELLED);
    return;
  }
  alarm_.emplace().Set(std::chrono::system_clock::now() + order_.period,
                       [this](bool is_due) { wake(is_due); });
}

void Watcher::wake(bool is_due) {
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

void Watcher::OnCancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (alarm_) {
    alarm_->Cancel();
  }
}

void Watcher::OnDone() {
  delete this;
}

} // namespace weir::rpc
