// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.hpp"
#include "host/collective/message_window.hpp"
#include "network/timed_device.hpp"
#include "scenario.hpp"
#include "world.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::fabric {

/// What a member and its neighbours know before it starts.
struct Seat {
  std::uint32_t outgoing_qp = 0;
  std::uint32_t incoming_qp = 0;
  std::uint32_t outgoing_psn = 0;
  std::uint32_t incoming_psn = 0;
  std::uint32_t inbox_key = 0;
  std::uint64_t inbox_base = 0; // any number: each host has its own address space
};

/// One run of a ring's job, shared by its members.
struct JobRun {
  const RingPlan& plan;
  std::uint16_t ring = 0; // index
  std::uint32_t generation = 0;
  std::uint32_t epoch = 0;
  std::uint32_t nonce = 0;
  std::vector<Seat> seats;                                          // by rank
  std::map<std::uint32_t, std::vector<std::uint8_t>> expected = {}; // sums by tensor

  const std::vector<std::uint8_t>& sum_of(std::uint32_t tensor);
};

/// One rank's process: a device with a queue pair to its successor and one from its predecessor, an
/// inbox, and the host library's window. Checks every result that arrives (I1).
class Member : private network::Plug {
 public:
  enum class State : std::uint8_t { working, finished, failed };

  struct Shared {
    World& world;
    Fabric& fabric;
    const Scenario& scenario;
    Coverage& coverage;
  };

  Member(const Shared& shared, JobRun& run, std::uint16_t rank);
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  bool owns(std::uint32_t queue_pair) const;

  void receive(Packet& packet);
  void timer();
  /// Does all that is possible now.
  void pump();

  /// The application computes until then; its queue pairs go on.
  void stall_until(Time time);

  State state() const { return state_; }

  const std::string& failure() const { return failure_; }

  std::uint16_t host() const { return run_.plan.hosts[rank_]; }

  std::string describe() const;

 private:
  endpoint::QueuePairConfig common_config() const;
  void connect();
  void work();
  bool take_results();
  bool take_completions();
  bool accept(std::uint32_t immediate, std::span<const std::uint8_t> message);
  void check(const host::MessageWindow::Piece& piece);
  bool begin_next_tensor();
  bool post_messages();
  void note_failure();
  void note_deadline();
  void wake_application_at(Time time);
  void fail(const std::string& text);

  Time now() const override { return shared_.world.now; }

  void send(std::span<const std::uint8_t> frame) override;
  void wake_at(Time time) override;

  Shared shared_;
  JobRun& run_;
  const std::uint16_t rank_;
  network::TimedDevice device_{*this, kMaxFrameBytes};
  endpoint::QueuePair* outgoing_ = nullptr;
  endpoint::QueuePair* incoming_ = nullptr;
  std::vector<std::uint8_t> inbox_;
  Time moved_at_; // when a result or an acknowledgement came last
  std::uint32_t slots_;
  std::uint64_t arrived_ = 0;
  host::MessageWindow window_;
  std::uint32_t next_tensor_ = 0;
  std::vector<std::uint8_t> input_;
  std::vector<std::uint8_t> output_;
  Time stalled_until_ = 0;
  Time looks_at_ = 0; // whether its deadline is over
  State state_ = State::working;
  std::string failure_;
};

} // namespace weir::fabric
