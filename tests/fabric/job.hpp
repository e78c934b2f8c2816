// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "member.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::fabric {

/// The state of hosts. Dead and stopped ones start nothing.
struct HostState {
  bool is_alive = true;
  Time frozen_until = 0;
};

/// Queue pair numbers, each once. Strangers take theirs from kStrangerQueuePair on.
class QueuePairNumbers {
 public:
  std::uint32_t draw(Dice& dice) {
    next_ += static_cast<std::uint32_t>(dice.between(1, 64));
    return next_;
  }

 private:
  std::uint32_t next_ = 0x100;
};

inline constexpr std::uint32_t kStrangerQueuePair = 0x800000;

/// A ring's job with its operator. It starts the members, starts all again with a larger epoch when
/// one fails, and reports the end.
class Job {
 public:
  enum class State : std::uint8_t {
    starting,  // members start
    running,   //
    failing,   // members stop
    finished,  //
    abandoned, // failed, and not started again
  };

  Job(const Member::Shared& shared, const RingPlan& plan, std::uint16_t ring,
      const std::vector<HostState>& hosts, QueuePairNumbers& numbers);

  void schedule_epoch(Time time);
  void start_epoch();
  void start_member(std::uint16_t rank, std::uint32_t generation);
  void stop_member(std::uint16_t rank, std::uint32_t generation);
  void host_died(std::uint16_t host);
  /// The rank's application computes until then, if it runs.
  void stall_member(std::uint16_t rank, Time until);

  /// Something happens to the calls that the members run.
  void note_calls(CallEvent event) const;

  /// After an event that a job need not survive: a failure is no violation from now on.
  void excuse() { is_excused_ = true; }

  /// Kills a rank's process. The job is started again at once or later.
  void kill_member(std::uint16_t rank);

  /// A switch's ring has this incarnation. If it is not this run's any more, the run may fail.
  void notice_incarnation(std::uint16_t node, std::uint32_t nonce);

  /// Checks whether members have failed or finished.
  void review();

  /// nullptr when it does not exist (any more).
  Member* member(std::uint16_t rank, std::uint32_t generation);
  Member* member_with(std::uint16_t host, std::uint32_t queue_pair);

  const RingPlan& plan() const { return plan_; }

  State state() const { return state_; }

  /// When it finished or was abandoned.
  Time ended_at() const { return ended_at_; }

  /// Whether it has a host in common with the other, and so that host's links.
  bool shares_links_with(const Job& other) const;

  bool must_finish() const { return plan_.role == RingRole::sound; }

  std::uint32_t epoch() const { return next_epoch_; }

  std::string describe() const;

 private:
  Seat draw_seat(const Seat* old);
  std::uint32_t draw_epoch();
  bool hosts_are_ready() const;
  void let_former_go_on(std::uint16_t rank);
  void review_former();
  bool has_lost_answer() const;
  void fail(const std::string& cause);
  void finish();
  void check_quest() const;
  void note_attacked(Row row) const;

  Member::Shared shared_;
  const RingPlan& plan_;
  const std::uint16_t ring_;
  const std::vector<HostState>& hosts_;
  QueuePairNumbers& numbers_;
  std::unique_ptr<JobRun> run_;
  std::vector<std::unique_ptr<JobRun>> old_runs_; // their members may still run
  std::vector<std::unique_ptr<Member>> members_;  // by rank
  std::vector<std::unique_ptr<Member>> former_;   // by rank, of a run that nobody has stopped
  std::vector<std::uint32_t> generations_;        // of the members
  State state_ = State::starting;
  std::uint32_t generation_ = 0;
  std::uint32_t next_epoch_;
  std::uint32_t jobs_done_ = 0;
  Time ended_at_ = 0;
  bool is_excused_ = false;     // an operator or a dead host has ended the run
  std::uint64_t has_begun_ = 0; // the incarnation of this run: a set of switches
  std::string last_failure_;
};

} // namespace weir::fabric
