// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace weir::app {

/// An endpoint whose address may come later than the switch, or which another process may have;
/// forwarding does not wait for that.
template <typename Endpoint, typename CannotListen>
class LateEndpoint {
 public:
  using Open = std::function<std::unique_ptr<Endpoint>()>;

  /// `open` begins to listen, or throws CannotListen; empty: no endpoint is wanted. The switch
  /// forwards without `what` until then.
  LateEndpoint(std::string what, Open open) : what_(std::move(what)), open_(std::move(open)) {
    try_to_listen();
  }

  /// Once in a while, until it listens. Tells on stderr that it cannot, once.
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
        fmt::print(stderr, "weir: {}; the switch forwards without {}, and tries every {} s\n",
                   error.what(), what_, kPause.count());
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
  std::unique_ptr<Endpoint> endpoint_; // after open_, for the same reason
  std::chrono::steady_clock::time_point due_{};
  bool has_complained_ = false;
};

} // namespace weir::app
