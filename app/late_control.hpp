// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/switch.hpp"
#include "rpc/endpoint.hpp"
#include "rpc/switch_backend.hpp"

#include <chrono>
#include <optional>

namespace weir::app {

/// The control service. Its address may come later than the switch, or another process may have it;
/// forwarding does not wait for that.
class LateControl {
 public:
  /// EAL is up: an address that the file does not tell is in its folder. `weir` outlives this.
  LateControl(control::Switch& weir, config::ControlConfig where);

  /// Tries again if it is time.
  void try_to_listen();
  void end();

 private:
  static constexpr std::chrono::seconds kPause{10};

  rpc::SwitchBackend backend_;
  config::ControlConfig where_;
  std::optional<rpc::Endpoint> endpoint_;
  std::chrono::steady_clock::time_point due_{};
  bool has_complained_ = false;
};

} // namespace weir::app
