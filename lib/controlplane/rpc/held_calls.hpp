// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/held_call.hpp"
#include "rpc/places.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace weir::rpc {

/// The calls of all owners of one kind of thing, and what could not be taken back at its call's
/// end. It holds no thread for a call. Any thread may use it.
template <typename Message, typename Held>
class HeldCalls {
 public:
  using Call = HeldCall<Message, Held>;
  /// Gives it back to the switch. Throws when an lcore does not stop: then it is tried again.
  using TakeBack = std::function<void(const Held&)>;

  explicit HeldCalls(TakeBack take_back) : take_back_(std::move(take_back)) {}

  /// A call whose answer `write` fills in. It deletes itself when it is done. What is held is taken
  /// back then, or at once if this throws.
  template <typename Write>
  Call* open(const Held& held, Places::Place place, Write&& write) {
    try {
      Message message;
      write(message);
      auto call = std::make_unique<Call>(held, std::move(message), std::move(place),
                                         [this](Call& ended) { release(ended); });
      enter(*call);
      return call.release();
    } catch (...) { // no memory is left
      take_back(held);
      throw;
    }
  }

  void take_back(const Held& held) {
    try {
      take_back_(held);
    } catch (const std::exception&) { // later, when the lcore that did not stop has gone on
      const std::lock_guard lock(mutex_);
      orphans_.push_back(held);
    }
  }

  /// What could not be taken back with its call.
  void take_back_orphans() {
    std::vector<Held> orphans;
    {
      const std::lock_guard lock(mutex_);
      orphans.swap(orphans_);
    }
    for (const Held& orphan : orphans) {
      take_back(orphan);
    }
  }

  /// Of all calls.
  std::vector<Held> held() const {
    const std::lock_guard lock(mutex_);
    std::vector<Held> held;
    for (const Call* const call : calls_) {
      held.push_back(call->held());
    }
    return held;
  }

  /// Ends the calls for which `status_of(const Held&)` is one.
  template <typename StatusOf>
  void end_those(StatusOf&& status_of) {
    const std::lock_guard lock(mutex_);
    for (Call* const call : calls_) {
      if (const std::optional<grpc::Status> status = status_of(call->held())) {
        call->end(*status);
      }
    }
  }

  /// Ends all calls. The next ones are refused.
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    for (Call* const call : calls_) {
      call->end(the_switch_stops());
    }
  }

 private:
  static grpc::Status the_switch_stops() {
    return {grpc::StatusCode::UNAVAILABLE, "the switch stops"};
  }

  void enter(Call& call) {
    const std::lock_guard lock(mutex_);
    calls_.insert(&call);
    if (has_ended_) {
      call.end(the_switch_stops());
    }
  }

  void release(Call& call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.erase(&call);
    }
    take_back(call.held());
  }

  const TakeBack take_back_;
  mutable std::mutex mutex_; // guards all below
  std::set<Call*> calls_;
  std::vector<Held> orphans_;
  bool has_ended_ = false;
};

} // namespace weir::rpc
