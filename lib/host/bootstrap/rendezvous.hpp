// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/admission.hpp"
#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/error.hpp"
#include "host/bootstrap/stall_timer.hpp"
#include "host/bootstrap/stream.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

using Blob = std::vector<std::uint8_t>;

struct RendezvousPlan {
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
  std::string address; // HOST:PORT of rank 0
  std::chrono::milliseconds timeout{10'000};
};

/// Where the ranks of a job meet: rank 0 listens, the others connect and stay connected. Strangers
/// are rejected and do no harm. Until all ranks are there, a rank may come again, for example after
/// a restart; the later connection replaces the earlier. Every function ends within the timeout, as
/// StallTimer counts it, or throws Error, which names the missing rank. Only the connection
/// to rank 0 has a timeout by the clock, because to resolve a name may take seconds.
class Rendezvous {
 public:
  /// Returns when all ranks are there.
  explicit Rendezvous(const RendezvousPlan& plan);

  /// Called every millisecond while gather() waits. Must not throw.
  using Meanwhile = std::function<void()>;

  /// Every rank's blob, in rank order. Every rank must make the same number of calls.
  std::vector<Blob> gather(std::span<const std::uint8_t> mine, const Meanwhile& meanwhile = {});

  /// Ends the job: tells every rank the error, then throws it here.
  [[noreturn]] void abandon(const Error& error);

  /// Hands over the connections: on rank 0 one per rank with none for itself, on other ranks the
  /// one to rank 0.
  std::vector<std::unique_ptr<FramedStream>> release() { return std::move(streams_); }

 private:
  void admit_all();
  void seat(PendingPeer peer);
  std::string objection_to(const PendingPeer& peer) const;
  std::optional<std::uint16_t> first_missing();
  [[noreturn]] void give_up_on(std::uint16_t first_missing);
  void join();
  std::vector<Blob> collect(std::span<const std::uint8_t> mine, const Meanwhile& meanwhile);
  ControlFrame await(std::uint16_t from, ControlKind kind, const Meanwhile& meanwhile);
  std::string missing_ranks() const;

  const RendezvousPlan plan_;
  StallTimer timer_; // since the constructor or gather() began to wait
  std::vector<std::unique_ptr<FramedStream>> streams_; // by rank
  std::string last_refusal_;
};

} // namespace weir::host
