// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "call_memory.hpp"
#include "fabric.hpp"
#include "host/collective/switch_reducer.hpp"
#include "job_run.hpp"
#include "network/timed_device.hpp"
#include "scenario.hpp"
#include "world.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace weir::fabric {

/// One rank's process: a device with a queue pair to its successor and one from its predecessor, an
/// inbox, and the host library's reducer. It queues calls. Checks every result that arrives, and
/// its memory after every call (I1).
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

  /// Something happens to the calls that run.
  void note_calls(CallEvent event) const;

  State state() const { return state_; }

  const std::string& failure() const { return failure_; }

  std::uint32_t generation() const { return run_.generation; }

  /// Whether the switch has said that another run has begun on the ring (docs/protocol.md §2a).
  bool was_told_of_another() const;

  /// Packets that its queue pair has sent again.
  std::uint64_t repeats() const { return outgoing_->statistics().packets_retransmitted; }

  std::uint16_t host() const { return run_.plan.hosts[rank_]; }

  std::string describe() const;

  /// Whether its receiver has taken a former run's answer to a hello. On a queue pair that is used
  /// again, with the same PSNs, nothing tells it from the own one, which then comes in vain.
  bool has_lost_answer() const { return has_lost_answer_; }

 private:
  /// A call that has begun and is not finished.
  struct RunningCall {
    RunningCall(const CallPlan& with_plan, const host::Place& place,
                std::span<const std::uint8_t> given)
        : plan(with_plan), memory(plan, place, given) {}

    const CallPlan& plan;
    CallMemory memory;
    std::uint32_t number = 0;
    std::uint64_t lost_before = 0; // packets of the ring
  };

  host::Place place() const { return {rank_, run_.plan.spec.world()}; }

  endpoint::QueuePairConfig common_config() const;
  void connect();
  void post_receive();
  void work();
  bool take_results();
  bool take_completions();
  bool accept(std::uint32_t immediate, std::span<const std::uint8_t> message);
  void check_operators();
  void check_arrival(std::uint64_t number, std::span<const std::uint8_t> message);
  bool begin_calls();
  void begin_call();
  bool finish_calls();
  void finish_call(const RunningCall& call);
  void check_memory(const RunningCall& call);
  void cover(const RunningCall& call) const;
  bool post_messages();
  endpoint::SendKind carrier_of(std::uint64_t message) const;
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
  bool has_lost_answer_ = false;
  Time moved_at_; // when a result or an acknowledgement came last
  std::uint32_t slots_;
  std::uint64_t arrived_ = 0;
  std::uint64_t received_ = 0;     // buffers posted for messages
  std::uint64_t acknowledged_ = 0; // messages
  host::SwitchReducer reducer_;
  std::uint32_t next_call_ = 0;
  std::deque<RunningCall> calls_; // that run
  Time stalled_until_ = 0;
  Time looks_at_ = 0; // whether its deadline is over
  State state_ = State::working;
  std::string failure_;
};

} // namespace weir::fabric
