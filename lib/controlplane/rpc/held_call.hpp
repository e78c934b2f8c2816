// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/places.hpp"

#include <functional>
#include <grpcpp/support/server_callback.h>
#include <mutex>
#include <optional>
#include <utility>

namespace weir::rpc {

/// An owner's call, for as long as which something is held. It writes once, and then waits for its
/// end. It deletes itself when the call is done. Any thread may use it.
template <typename Message, typename Held>
class HeldCall : public grpc::ServerWriteReactor<Message> {
 public:
  using Release = std::function<void(HeldCall&)>;

  /// `release` is told of the end.
  HeldCall(Held held, Message message, Places::Place place, Release release)
      : held_(std::move(held)), message_(std::move(message)), place_(std::move(place)),
        release_(std::move(release)) {
    this->StartWrite(&message_);
  }

  const Held& held() const { return held_; }

  /// Only the first one counts.
  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_) {
      end_ = status;
      finish();
    }
  }

  void OnWriteDone(bool is_written) override {
    if (!is_written) {
      end(grpc::Status::CANCELLED);
    }
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    finish();
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  void OnDone() override {
    release_(*this);
    delete this;
  }

 private:
  /// Not while it writes.
  void finish() {
    if (end_ && !is_writing_ && !is_finished_) {
      is_finished_ = true;
      this->Finish(*end_);
    }
  }

  const Held held_;
  const Message message_;
  const Places::Place place_;
  const Release release_;
  std::mutex mutex_; // guards all below
  bool is_writing_ = true;
  bool is_finished_ = false;
  std::optional<grpc::Status> end_;
};

} // namespace weir::rpc
