// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "host/api/membership.hpp"
#include "host/api/progress_threads.hpp"
#include "host/api/request_queue.hpp"
#include "host/base/fork_watch.hpp"
#include "host/base/stream.hpp"
#include "host/region/region_ends.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

/// Owns a group and decides which thread drives its engine: a caller that waits, or else callers
/// that look again and again, or else the process's, if the group wants one. A caller that looks
/// makes one step; all others sleep while there is nothing to do. The driving thread does not hold
/// the lock during a step, so nobody waits longer than one step; a sleep ends when another thread
/// rings.
class GroupDriver : public std::enable_shared_from_this<GroupDriver>, private Attended {
 public:
  GroupDriver(GroupOptions options, Membership membership);

  /// False in a child made by fork, where only is_here may be called.
  bool is_here() const { return birthplace_.is_here(); }

  /// Call it before the last reference goes away: requests hold references. Ends the calls that are
  /// under way, then waits for ranks that still need an acknowledgement.
  void close();
  /// For a child made by fork, which has no such thread, and whose parent owns the device.
  static void keep_for_ever(std::shared_ptr<GroupDriver> driver);

  /// Throws Error. So do the next two.
  std::shared_ptr<Request> start(std::shared_ptr<Request> request, const Call& call);
  /// True once it is done. Makes a step first, unless another thread drives; never waits for one.
  bool test(Request& request);
  /// The same without a request. Throws the Error that ended the group.
  void progress();
  /// True once it is done, false at the deadline.
  bool wait_until(Request& request, Deadline deadline);

  /// True: the request is over, now or before, and its buffers are its caller's. False: messages of
  /// it have left, and it goes on. Waits for a step at most.
  bool cancel(const std::shared_ptr<Request>& request);

  bool is_over(const Request& request) const { return requests_.is_over(request); }

  /// Has the callback called when the request is over: by the thread that has driven it to its end
  /// or by another one that drives; now, if it is over. One callback of the group at a time, in the
  /// order of the requests' ends. Throws std::invalid_argument if the request has one.
  void on_done(const std::shared_ptr<Request>& request, DoneCallback callback);

  /// Ends all calls, also those to come, at the next step at the latest.
  void abort(std::string_view why = {});

  /// Ends the rings that this rank has a switch make for the group, and leaves others to the next
  /// group. Any thread.
  void release_rings();

  /// With the rings' ids, whoever chose them.
  const GroupOptions& options() const { return options_; }

  /// Does not change.
  const std::shared_ptr<GroupHistory>& history() const { return membership_.history; }

  /// By rank, the original ranks. Does not change.
  const std::vector<std::uint16_t>& members() const { return membership_.members; }

  /// Whether the group's survivors are a group now. For who has the history's turn.
  bool is_succeeded() const { return is_succeeded_; }

  void note_succeeded() { is_succeeded_ = true; }

  /// The ring that another job has taken from this group, as far as this rank was told so.
  std::optional<std::uint32_t> taken_ring();

  const NodeMap& nodes() const { return membership_.nodes; }

  std::uint32_t epoch() const { return membership_.incarnation.epoch; }

  Algorithm algorithm() const { return membership_.algorithm; }

  /// Who folds by the options' operator of this number.
  OperatorFold fold_of_operator(std::size_t number) const {
    return membership_.fold_of_operator(number);
  }

  const std::string& fallback_reason() const { return membership_.fallback_reason; }

  const std::vector<std::uint32_t>& used_rings() const { return membership_.used_rings; }

  const std::string& missing_rings() const { return membership_.missing_rings; }

  const std::string& missing_operators() const { return membership_.missing_operators; }

  GroupStatistics statistics();

  /// Of the group's regions. May outlive it.
  const std::shared_ptr<RegionEnds>& region_ends() const { return region_ends_; }

  /// As RequestQueue::descriptor. Throws Error, and std::invalid_argument if there is no own
  /// thread.
  int descriptor();

  /// The ranks that are late. Empty: none, as far as it is known.
  std::string waits_for();

 private:
  using Lock = std::unique_lock<std::mutex>;
  class Pause;

  Rest attend(Wakening wakening, Deadline stay) override;
  bool step_and_stay(Lock& lock, Deadline stay);
  void begin_to_wait();
  Rest leave_it_to_others();
  Rest until_pause();
  bool may_hear_control();
  Rest sleep(Lock& lock);
  void end_attendance();
  void visit();
  void note_visit(Deadline now);
  bool callers_come_often() const;
  void call_back(Lock& lock);
  void call_back_while_waiting(Lock& lock);
  void end_calls(Lock& lock);
  void end_sleep();
  void hand_over();
  Deadline cut(Deadline deadline) const;
  void end_rest();
  static void give_way(Lock& lock);

  bool may_step() const {
    return !is_stepping_ && visitors_ == 0 && !requests_.has_failed() && !closing_;
  }

  /// The process's thread, after a step. A call that came during the step is not under way yet.
  bool may_sleep() const {
    return waiters_ == 0 && may_step() && !requests_.may_start() && !may_call_back();
  }

  bool may_call_back() const { return requests_.has_due() && !is_calling_; }

  /// The process's thread's, to drive or to call back.
  bool is_own_turn() const { return may_call_back() || (waiters_ == 0 && may_step()); }

  bool step(Lock& lock, Deadline deadline);
  template <typename Body>
  std::optional<Error> error_of(Body body) const;
  void note_step(const std::optional<Error>& error);
  void end_if_aborted();
  Error aborted() const;
  void refuse_elsewhere() const;
  Error closed_too_early() const;
  Error closed_with_regions() const;
  void wake();
  void tell_region_ends();
  void end_regions();

  const GroupOptions options_;
  const Birthplace birthplace_;
  Membership
      membership_; // the driving thread uses it; at other times, the thread that holds the lock

  const std::shared_ptr<RegionEnds> region_ends_ = std::make_shared<RegionEnds>();
  bool is_succeeded_ = false; // guarded by the history's turn

  std::mutex mutex_; // guards all below
  RequestQueue requests_;
  bool is_stepping_ = false;
  bool is_visited_ = false; // by a caller that makes one step
  bool is_calling_ = false; // a thread is in a callback
  unsigned visitors_ = 0;   // callers that wait for the engine to pause
  unsigned waiters_ = 0;    // callers that drive the engine themselves
  Deadline left_;           // when one did so last, or looked
  unsigned visits_ = 0;     // looks, most of them soon after the one before; up to kMostVisits
  bool closing_ = false;
  std::atomic<bool> is_aborted_ = false; // written with the lock
  std::string why_aborted_;
  bool is_staying_ = false;    // the process's thread, which may sleep within its step
  bool is_asleep_ = false;     // the process's thread, until there is work
  bool is_resting_ = false;    // the same, until somebody ends it
  bool is_pausing_ = false;    // the same, until callers come no more
  bool hears_control_ = false; // the next step reads control frames
  std::string waits_for_;
  std::condition_variable changed_; // wakes callers: something is done, or the engine is free
  std::unique_ptr<ProgressThreads::Seat> seat_; // null: callers drive, or the group is closed
};

} // namespace weir::host
