// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/loop_judge.hpp"
#include "control/writer_lock.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace weir::control {

struct Chassis;

/// A finding with the names that people give to ports.
struct LoopNews {
  LoopFinding::Kind kind{};
  std::string port;
  std::string other;        // of a closed port
  std::uint64_t sender = 0; // as LoopFinding::sender
};

/// Finds loops (docs/operating.md, "Loops"). It has a probe sent by each port that bridges, looks
/// what has come back, and closes ports.
class Loops {
 public:
  static constexpr std::chrono::seconds kPeriod{1};
  /// So long it waits for its probes.
  static constexpr std::chrono::milliseconds kWayBack{10};

  /// `chassis` outlives it. Throws std::system_error.
  explicit Loops(Chassis& chassis);

  /// Sends, waits and looks; nothing if the last time was less than a period ago. For one thread.
  /// Throws lcore::LcoreError.
  std::vector<LoopNews> look();

  /// By the port's place. Any thread may ask.
  PortLoops of(std::uint16_t place) const;

 private:
  using Seen = std::array<ProbesSeen, l2::kMaxPorts>;

  std::vector<LoopFinding> find(const PortsNow& ports, const WriterLock& lock);
  void send(l2::PortSet bridged, const WriterLock& lock);
  void send_by(std::uint16_t place, const WriterLock& lock, const lcore::Quiesce& quiesced);
  Seen seen_since_last();
  std::vector<LoopFinding> judge(const PortsNow& ports);
  std::vector<LoopFinding> end(const WriterLock& lock);
  void close(l2::PortSet ports);
  std::vector<LoopNews> named(const std::vector<LoopFinding>& findings,
                              const WriterLock& lock) const;

  Chassis& chassis_;
  const std::uint64_t sender_;
  std::chrono::steady_clock::time_point next_{};
  l2::PortSet closed_ = 0;    // as the bridge knows it
  std::vector<Seen> counted_; // by lcore: in all, until the last look
  bool is_looking_ = false;
  mutable std::mutex one_at_a_time_;
  LoopJudge judge_; // under the mutex
};

/// The ports that are there, by what the configuration says.
PortsNow ports_now(const config::Config& config);

} // namespace weir::control
