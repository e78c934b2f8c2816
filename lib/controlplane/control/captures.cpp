// SPDX-License-Identifier: BSD-3-Clause
#include "control/captures.hpp"

#include "control/chassis.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace weir::control {

using lcore::Quiesce;

/// No ring may come between the plan and the capture's beginning.
void Captures::start(CaptureOrder order) {
  const WriterLock writer(chassis_.one_writer);
  const std::lock_guard lock(one_capture_);
  if (capture_ && capture_->status().state == capture::State::running) {
    const capture::Status running = capture_->status();
    throw CaptureRuns(fmt::format("capture: {} is being written to {}; allowed: one capture at a "
                                  "time; `capture stop` ends it",
                                  running.what, running.file));
  }
  if (capture_) {
    capture_->end(); // a failed one may still be about to take its taps away
  }
  auto next = std::make_unique<capture::Capture>(plan_of(std::move(order), writer));
  {
    const Quiesce quiesced(chassis_.lcores);
    for (std::size_t i = 0; i < chassis_.lcores.size(); ++i) {
      chassis_.lcores[i].trace().copy_to(&next->tap(i));
    }
  }
  capture_ = std::move(next);
  capture_->start([this] { copy_to_none(); });
}

capture::Plan Captures::plan_of(CaptureOrder order, const WriterLock& lock) const {
  const auto limits = frame_limits(chassis_.at_start);
  capture::Plan plan{.file = std::move(order.file),
                     .what = std::move(order.what),
                     .filter = std::move(order.filter),
                     .count = order.count,
                     .most_bytes = *std::ranges::max_element(limits),
                     .lcores = chassis_.lcores.size(),
                     .clock_zero_ns = lcore::unix_time_of_zero(),
                     .names = {.ports = {}, .rings = {}}};
  for (const ring::Ring& ring : chassis_.rings.read(lock).rings()) {
    plan.names.rings.push_back(ring.spec());
  }
  for (const config::PortConfig& port : chassis_.config.read(lock).ports) {
    plan.names.ports.push_back(port.name);
  }
  return plan;
}

void Captures::copy_to_none() {
  const Quiesce quiesced(chassis_.lcores);
  for (const auto& lcore : chassis_.lcores) {
    lcore->trace().copy_to(nullptr);
  }
}

void Captures::stop() {
  const std::lock_guard lock(one_capture_);
  if (capture_) {
    capture_->end();
  }
}

std::optional<capture::Status> Captures::last() const {
  const std::lock_guard lock(one_capture_);
  return capture_ ? std::optional(capture_->status()) : std::nullopt;
}

void Captures::learn(std::uint16_t ring, const ring::RingSpec& spec, const WriterLock&) {
  const std::lock_guard lock(one_capture_);
  if (capture_) {
    capture_->learn(ring, spec);
  }
}

} // namespace weir::control
