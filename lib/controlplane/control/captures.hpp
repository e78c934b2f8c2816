// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "capture/capture.hpp"
#include "control/capture_order.hpp"
#include "control/writer_lock.hpp"
#include "lcore/lock_order.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace weir::control {

struct Chassis;

/// Writes packets and what becomes of them into a file, one capture at a time. Any thread may use
/// it.
class Captures {
 public:
  /// `chassis` outlives it.
  explicit Captures(Chassis& chassis) : chassis_(chassis) {}

  /// Throws CaptureRuns and capture::FileError.
  void start(CaptureOrder order);
  /// Ends the capture, if one runs, and waits until its file is whole.
  void stop();
  /// The last capture; nullopt: there was none. Does not stop the lcores.
  std::optional<capture::Status> last() const;

  /// A ring comes; the capture is told before the first record of it.
  void learn(std::uint16_t ring, const ring::RingSpec& spec, const WriterLock& lock);

 private:
  using Mutex = lcore::RankedMutex<lcore::LockRank::capture>;

  capture::Plan plan_of(CaptureOrder order, const WriterLock& lock) const;
  void copy_to_none();

  Chassis& chassis_;
  mutable Mutex one_capture_;
  std::unique_ptr<capture::Capture> capture_; // the last one
};

} // namespace weir::control
