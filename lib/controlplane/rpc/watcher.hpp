// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/caller_shares.hpp"
#include "rpc/places.hpp"
#include "rpc/repeated_answer.hpp"

#include <chrono>
#include <optional>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Sends the answer to a question again and again.
class Watcher final : public RepeatedAnswer<v1::Statistics> {
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

 private:
  void fill(v1::Statistics& message) override;
  void give_back(v1::Statistics& message) override;

  Backend& backend_;
  const command::Words words_;
  const Places::Place place_;
  const Room room_;
  std::optional<Places::Place> bytes_; // the message's
};

} // namespace weir::rpc
