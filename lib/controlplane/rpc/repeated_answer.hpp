// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/service.hpp"

#include <chrono>
#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>
#include <mutex>
#include <optional>

namespace weir::rpc {

/// Answers again and again, a period after each answer is on its way, until the caller goes or an
/// answer fails. Deletes itself when the call is done. Its heir's constructor calls begin().
template <typename Message>
class RepeatedAnswer : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RepeatedAnswer(std::chrono::milliseconds period) : period_(period) {}

  void OnWriteDone(bool is_written) final {
    give_back(message_);
    if (is_written) {
      wait();
    } else {
      this->Finish(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() final {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    if (alarm_) {
      alarm_->Cancel();
    }
  }

  void OnDone() final { delete this; }

 protected:
  void begin() { send(); }

 private:
  /// May throw, which ends the call.
  virtual void fill(Message& message) = 0;

  /// Called when the message is on its way, and when it cannot be filled.
  virtual void give_back(Message& message) = 0;

  void send() {
    try {
      fill(message_);
    } catch (...) {
      give_back(message_);
      this->Finish(status_of_exception());
      return;
    }
    this->StartWrite(&message_);
  }

  void wait() {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) {
      this->Finish(grpc::Status::CANCELLED);
      return;
    }
    alarm_.emplace().Set(std::chrono::system_clock::now() + period_,
                         [this](bool is_due) { wake(is_due); });
  }

  void wake(bool is_due) {
    {
      const std::lock_guard lock(mutex_);
      is_due = is_due && !is_cancelled_;
    }
    if (is_due) {
      send();
    } else {
      this->Finish(grpc::Status::CANCELLED);
    }
  }

  const std::chrono::milliseconds period_;
  Message message_; // being written
  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::optional<grpc::Alarm> alarm_; // a new one for each wait: an old one's callback may still run
};

} // namespace weir::rpc
