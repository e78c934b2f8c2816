// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "metrics/endpoint.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace weir::app {

/// The metrics' endpoint. Its address may come later than the switch, or another process may have
/// it; forwarding does not wait for that.
class LateMetrics {
 public:
  /// Empty `listen`: no metrics are wanted.
  LateMetrics(control::Switch& weir, const std::string& listen);

  /// Once in a while, until it listens. Tells on stderr that it cannot, once.
  void try_to_listen();

  void end();

 private:
  control::Switch& weir_;
  std::string listen_;
  std::optional<metrics::Endpoint> endpoint_;
  std::chrono::steady_clock::time_point due_{};
  bool has_complained_ = false;
};

} // namespace weir::app
