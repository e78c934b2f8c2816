// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event_log.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace weir::app {

/// An endpoint whose address may come later than the switch, or which another process may have;
/// forwarding does not wait for that.
template <typename Endpoint, typename CannotListen>
class DeferredListener {
 public:
  using Open = std::function<std::unique_ptr<Endpoint>()>;

  /// `open` begins to listen, or throws CannotListen; empty: no endpoint is wanted. The switch
  /// forwards without `what` until then. `log` outlives it.
  DeferredListener(std::string what, Open open, events::EventLog& log)
      : what_(std::move(what)), open_(std::move(open)), log_(log) {
    try_to_listen();
  }

  /// Once in a while, until it listens. Logs that it cannot, once.
  void try_to_listen() {
    const auto now = std::chrono::steady_clock::now();
    if (!open_ || endpoint_ || now < due_) {
      return;
    }
    due_ = now + kPause;
    try {
      endpoint_ = open_();
    } catch (const CannotListen& error) {
      if (!std::exchange(has_complained_, true)) {
        log_.write({events::EventKind::service_waits,
                    fmt::format("{}; the switch forwards without {}, and tries every {} s",
                                error.what(), what_, kPause.count()),
                    {}});
      }
    }
  }

  void end() {
    endpoint_.reset(); // first: it may use what `open` holds
    open_ = nullptr;
  }

 private:
  static constexpr std::chrono::seconds kPause{10};

  std::string what_;
  Open open_;
  events::EventLog& log_;
  std::unique_ptr<Endpoint> endpoint_; // after open_, for the same reason
  std::chrono::steady_clock::time_point due_{};
  bool has_complained_ = false;
};

} // namespace weir::app
