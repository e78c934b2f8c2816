// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/caller_shares.hpp"
#include "rpc/places.hpp"

#include <chrono>
#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>
#include <mutex>
#include <optional>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Sends the answer to a question again and again. Deletes itself when the call is done.
class Watcher : public grpc::ServerWriteReactor<v1::Statistics> {
 public:
  struct Order {
    command::Words words;
    std::chrono::milliseconds period;
  };

  /// Whose answers these are.
  struct Room {
    CallerShares& shares; // they outlive the watcher
    Caller caller;
  };

  /// It has the place until its end, and an answer's bytes until this is on its way.
  Watcher(Backend& backend, Order order, Places::Place place, Room room);

  void OnWriteDone(bool is_written) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void send();
  void give_back();
  /// From when an answer is on its way until the next one is due.
  void wait();
  void wake(bool is_due);

  Backend& backend_;
  const Order order_;
  const Places::Place place_;
  const Room room_;
  v1::Statistics message_;             // being written
  std::optional<Places::Place> bytes_; // its
  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::optional<grpc::Alarm> alarm_; // a new one for each wait: an old one's callback may still run
};

} // namespace weir::rpc
