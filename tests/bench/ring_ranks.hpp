// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "region_lab.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace weir::bench {

/// All ranks of a workload, which send prepared frames.
class RingRanks : public Peers {
 public:
  /// Messages of a rank that may be under way.
  static constexpr std::uint32_t kWindow = 8;

  explicit RingRanks(const Workload& workload) : workload_(workload) {}

  /// These come next, together.
  void add(std::span<const Arrival> frames);

  /// The workload's data, and what receivers say of it, when it has come.
  void add_data();

  /// As FrameStock::enter_sessions, for all that is added later.
  void enter_sessions(std::function<std::uint32_t(std::uint16_t)> session_of) {
    session_of_ = std::move(session_of);
  }

  void speak(FarEnds& ends) override;
  bool hear(std::span<const std::uint8_t> frame, std::uint16_t port, FarEnds& ends) override;

  /// Messages of each rank that have not been sent, and answers.
  std::size_t turns_left() const { return turns_.size() - next_; }

  bool is_done() const override { return next_ == turns_.size() && under_way_ == 0; }

 private:
  const Workload& workload_;
  std::function<std::uint32_t(std::uint16_t)> session_of_;
  std::vector<std::vector<Arrival>> turns_;
  std::size_t next_ = 0; // of them
  std::size_t under_way_ = 0;
};

} // namespace weir::bench
