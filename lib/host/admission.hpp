// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/stream.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weir::host {

/// Who a connection says it is.
struct Newcomer {
  std::unique_ptr<FramedStream> stream;
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
};

/// Sends what the door waits for.
void ask_admission(FramedStream& stream, std::uint16_t rank, std::uint16_t world);

/// The door of a rendezvous. Connections are heard side by side: one that stays silent, or speaks
/// something else, keeps no rank waiting.
class Admission {
 public:
  /// Who may wait unheard, twice the ranks of the largest job. Past it the oldest has to go: it had
  /// the most time to say who it is.
  static constexpr std::size_t kMaxCallers = 512;

  explicit Admission(Socket listener) : listener_(std::move(listener)) {}

  /// The next connection that asks for admission, or nobody until the deadline.
  std::optional<Newcomer> next(Deadline deadline);

 private:
  void wait(Deadline deadline) const;
  void open_to_callers();
  std::optional<Newcomer> hear_callers();

  const Socket listener_;
  std::vector<std::unique_ptr<FramedStream>> callers_; // who have not said yet, the oldest first
};

} // namespace weir::host
