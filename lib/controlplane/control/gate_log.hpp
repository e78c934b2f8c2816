// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::control {

/// A process between the network and the control service that did not end by itself.
enum class GateProcess : std::uint8_t { connection, acceptor };

inline constexpr std::size_t kGateProcesses = static_cast<std::size_t>(GateProcess::acceptor) + 1;

inline constexpr std::string_view name_of(GateProcess process) {
  return process == GateProcess::connection ? "connection" : "acceptor";
}

/// How many have ended, since the switch was started. Any thread may use it.
class GateLog {
 public:
  void note(GateProcess process) {
    counts_[static_cast<std::size_t>(process)].fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t count(GateProcess process) const {
    return counts_[static_cast<std::size_t>(process)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kGateProcesses> counts_{};
};

} // namespace weir::control
