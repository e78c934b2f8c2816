// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/outside.hpp"
#include "jobs/site.hpp"
#include "placement/place.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <weir/v1/fabric_records.pb.h>

namespace weir::jobs {

class FoundJob; // found_job.hpp

struct LeaderTerm {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
};

// Kinds of what the loop puts right.
inline constexpr const char* kRingMissing = "ring_missing";
inline constexpr const char* kRingUnknown = "ring_unknown";

/// Where a store's content comes from.
enum class Origin : std::uint8_t {
  managers,
  backup, // ids may have been given that it does not know
};

struct Caller {
  std::string name; // of its certificate; empty: by a Unix socket, or without one
  bool is_operator = false;
  bool is_scheduler = false;
  std::uint64_t allocation = 0; // by whose token it asks; 0: none
  v1::TokenRecord token{};      // the token
};

// How long things may take, in milliseconds.
inline constexpr Time kPlacingPatience = 10'000; // until all switches have the rings
inline constexpr Time kOwnerReturns = 30'000;    // for a job that a new leader finds placing
inline constexpr Time kOwnerAway = 60'000;       // of a job that runs
inline constexpr Time kSilence = 30'000;         // of all its members, then
inline constexpr Time kBeatLost = 3'000;         // then a switch is suspect
inline constexpr Time kClaimAgain = 1'000;
inline constexpr Time kLinkDown = 2'000; // then the owner is told
inline constexpr Time kReadAgain = 500;  // a store that was lost

/// A leading manager: it compares what the store wishes with what the switches say, and gives the
/// orders that make them alike. Each step may be done twice. No clock, no I/O but by the store and
/// by Outside, no threads.
class Loop {
 public:
  struct Identity {
    std::string manager; // for people
    LeaderTerm term;
  };

  /// All outlive it.
  Loop(const Site& site, store::Store& store, Outside& outside, Identity identity);

  /// Reads the store. Afterwards any event may come. `now` never goes back. Of a backup it gives no
  /// order before claim().
  void begin(Time now, Origin origin = Origin::managers);

  // Events.

  void on_claimed(SwitchIndex at, const Outcome& outcome, const v1::ClaimFabricResponse& answer,
                  Time now);
  /// Of an order to make or withdraw rings.
  void on_ordered(SwitchIndex at, std::uint64_t number, const Outcome& outcome, Time now);
  void on_seen(SwitchIndex at, const v1::SwitchSeen& seen, Time now);
  void on_watch_ended(SwitchIndex at, const Outcome& outcome, Time now);
  void on_hold(CallId call, const Caller& caller, const v1::HoldJobRequest& request, Time now);
  /// The owner's call broke, or he cancelled it.
  void on_call_ended(CallId call, Time now);
  void on_time(Time now);

  // What callers ask or order. Each may throw a Refused.

  void end_job(const Caller& caller, std::uint64_t job, const std::string& why, Time now);
  std::vector<std::uint64_t> drain(const Caller& caller, const v1::DrainRequest& request, Time now);
  void undrain(const Caller& caller, const v1::UndrainRequest& request, Time now);
  /// Stores a higher epoch than all that are known, and ids that were never given. It leads no more
  /// then: who begins next has the epoch.
  v1::ClaimResponse claim(const Caller& caller, Time now);
  /// The same; who begins next takes over the jobs that only switches know. At a manager that does
  /// so it changes which switches it waits for.
  v1::ClaimResponse adopt(const Caller& caller, const v1::AdoptRequest& request, Time now);
  /// Returns the allocation's number.
  std::uint64_t grant(const Caller& caller, const v1::GrantAllocationRequest& request, Time now);
  /// Returns its jobs, which end.
  std::vector<std::uint64_t> end_allocation(const Caller& caller, const std::string& name,
                                            Time now);
  /// `token` is one for the caller, a host, from now on. Returns the allocation's number.
  std::uint64_t issue_token(const Caller& caller, const std::string& name,
                            const std::string& token);
  std::vector<v1::Allocation> allocations(const Caller& caller) const;
  /// The caller as somebody who has an allocation's token, and may no more than that.
  Caller bearer_of(const Caller& caller, std::uint64_t allocation, const std::string& token) const;
  v1::PlanJobResponse plan(const Caller& caller, const v1::PlanJobRequest& request);
  std::vector<v1::Job> jobs(const Caller& caller) const;
  v1::FabricPicture picture(const Caller& caller) const;
  std::string explain(const Caller& caller, const std::string& name) const;
  /// A sentence: why what it answers may be old, or why it gives no orders. Empty: it leads, and
  /// its store answers.
  std::string doubt() const;

  class Refused : public std::runtime_error {
   public:
    Refused(Code code, const std::string& words) : std::runtime_error(words), code_(code) {}

    Code code() const { return code_; }

   private:
    Code code_;
  };

  /// From 0 on, since nobody notices the first of a kind that was not there before.
  struct Counts {
    Counts();

    std::map<std::string, std::uint64_t> requests; // by answer
    std::map<std::string, std::uint64_t> refusals; // by what was short
    std::map<std::string, std::uint64_t> drift;    // by kind: what the loop has put right
    double last_decision_s = 0;
  };

  const Counts& counts() const { return counts_; }

  const std::map<std::uint64_t, v1::JobRecord>& records() const { return records_; }

 private:
  enum class Reach : std::uint8_t { unreached, claiming, claimed, serving, refused };

  struct Order {
    std::uint64_t number = 0;
    bool is_apply = false;
    std::string boot; // of the switch, for which it is meant
    std::vector<std::uint32_t> rings;
    std::set<std::uint64_t> jobs;
  };

  struct SwitchState {
    Reach reach = Reach::unreached;
    std::string why; // not serving
    std::string boot;
    std::uint64_t next_order = 1;
    std::optional<Order> under_way;
    std::uint64_t settled_order = 0; // the highest whose answer has come
    Time claim_at = 0;
    Time beat_at = 0;
    bool is_suspect = false;
    std::size_t one_by_one =
        0;                 // so many orders have one job each, since one of several was refused
    v1::SwitchSeen seen;   // the last that is not older than settled_order
    bool is_fresh = false; // seen is there
    std::map<std::uint32_t, v1::FabricLabel> labels;
    std::map<std::uint32_t, v1::Ring> rings; // that have labels; for adoption alone
    std::map<std::string, Time> down_since;  // ports
    bool has_taken = false;                  // this term, once
    bool has_told = false;                   // whom it obeys, or is not reached
    v1::ClaimFabricResponse holder;          // whom it obeyed, while the manager waits for a claim
    Time held_at = 0;                        // when it said so
  };

  /// What is known of a job beside its record. A new leader has none of it.
  struct Care {
    std::optional<CallId> call;
    std::optional<Time> owner_gone_at;
    Time placing_since = 0;
    bool is_found = false;                      // a new leader has found it placing
    std::map<SwitchIndex, std::string> made_at; // that have said so, and their boots
    std::set<SwitchIndex> gone_at;              // that have said so
    std::set<std::string> troubles;             // that the owner was told of
    bool was_told = false;                      // that it is placed
  };

  struct Waiter {
    CallId call = 0;
    Caller caller;
    v1::HoldJobRequest request;
    Time since = 0;
    std::uint32_t place = 0;
  };

  struct Decision {
    std::string request; // hexadecimal
    std::string name;
    std::string words;
  };

  // Steps.
  void step(Time now);
  void look_at_lead(Time now);
  void let_callers_go(const std::string& why, Time now);
  void lose_owner(std::uint64_t job, Time now);
  void pass_ids_at(const SwitchState& state);
  void look_for_strange_jobs(SwitchIndex at, Time now);
  void look_at_store(Time now);
  void look_at_ids();
  void look_at_switch(SwitchIndex at, Time now);
  void note_boot(SwitchIndex at, const std::string& boot);
  void compare(SwitchIndex at, Time now);
  void look_at_job(std::uint64_t id, Time now);
  void look_at_owner(v1::JobRecord& record, Care& care, Time now);
  void look_for_trouble(const v1::JobRecord& record, Care& care, Time now);
  void look_at_waiters(Time now);

  // Before a claim.
  void await_claim(const std::string& why, Time now);
  void ask_who_leads(Time now);
  void note_holder(SwitchIndex at, const Outcome& outcome, const v1::ClaimFabricResponse& answer,
                   Time now);
  void check_is_free(SwitchIndex at, Time now) const;
  v1::FabricRecord claimed_record(Time now) const;
  void require_claimable() const;
  v1::ClaimResponse take_fabric(const Caller& caller, const v1::FabricRecord& next);
  static v1::ClaimResponse claim_response(const v1::FabricRecord& next,
                                          const std::vector<std::string>& unheard);
  std::vector<std::string> unheard() const;
  bool has_taken_any() const;
  bool is_idle() const;
  std::string why_idle() const;
  std::string why_waiting() const;
  void require_lead() const;

  // Adoption.
  bool is_adopting() const { return fabric_.adopts(); }

  void check_without(const v1::AdoptRequest& request) const;
  std::vector<std::string> unseen() const;
  static bool has_told_rings(const SwitchState& state);
  std::string why_adopting() const;
  void look_at_adoption(Time now);

  /// How many switches' parts have the number of a ring of a job's, by whose they are.
  struct Traces {
    unsigned own = 0;
    unsigned of_others = 0;
    unsigned unseen = 0; // their switches have not spoken
  };

  bool drop_outdated();
  Traces traces_of(const v1::JobRecord& record) const;
  std::vector<FoundJob> found_jobs() const;
  const v1::JobRecord* record_of(const v1::FabricLabel& label) const;
  bool settle(const v1::JobRecord& stored, const FoundJob& found);
  static bool is_of(const v1::FabricLabel& label, const v1::JobRecord& record);
  bool adopt_job(const FoundJob& found);

  // Orders.
  struct Due;
  v1::FabricLabel label_of(const v1::JobRecord& record) const;
  void give_orders(SwitchIndex at);
  void collect(SwitchIndex at, std::uint64_t id, const v1::JobRecord& record, Due& due);
  bool collect_unknown(SwitchIndex at, Due& due);
  void number(SwitchIndex at, Order order, v1::FabricOrder& message);
  void order_removal(SwitchIndex at, const Due& due);
  void order_rings(SwitchIndex at, Due& due);

  // Records.
  bool commit(const std::vector<store::Change>& changes);
  bool save(const std::vector<store::Change>& changes);
  bool save(const v1::JobRecord& record);
  bool save(const v1::AllocationRecord& record, const v1::FabricRecord& fabric,
            std::optional<std::uint64_t> replaced = std::nullopt);
  bool read_store(Time now);
  void take_up(std::uint64_t id, Time now);
  void fence(const std::string& why);
  void lose_store(const std::string& why);
  void begin_end(std::uint64_t id, const std::string& why, Time now);
  void tell_end(Care& care, const std::string& why);
  void finish(std::uint64_t id);

  // Allocations.
  void require_scheduler(const Caller& caller) const;
  const v1::AllocationRecord* allocation_named(const std::string& name) const;
  const v1::AllocationRecord& allocation_of(const Caller& caller, const std::string& name) const;
  v1::AllocationRecord allocation_of(const v1::FabricLabel& label,
                                     const v1::JobRecord& record) const;
  std::vector<std::string> hosts_in(const std::string& list) const;
  void check_tenant_has(const Caller& caller, const std::string& name,
                        const std::vector<std::string>& hosts) const;
  void check_allocation_has(const Caller& caller, int rank, const std::string& host) const;
  v1::HoldJobRequest as_of(const Caller& caller, v1::HoldJobRequest request) const;
  std::vector<std::uint64_t> end_jobs_of(const Caller& caller, const v1::AllocationRecord& ended,
                                         Time now);
  bool has_lost_allocation(const v1::JobRecord& record) const;

  // Decisions.
  struct Wish {
    placement::Request request;
    std::vector<std::string> addresses; // by rank
    std::vector<std::string> hosts;     // by rank
  };

  void check(const Caller& caller, const v1::HoldJobRequest& request) const;
  Wish wish_of(const Caller& caller, const v1::HoldJobRequest& request) const;
  placement::Usage usage(std::uint64_t but = 0) const;
  v1::JobRecord decide(const Caller& caller, const v1::HoldJobRequest& request,
                       const placement::Usage& usage);
  std::string words_of(const placement::Refusal& refusal, const Wish& wish) const;
  std::vector<std::string> holders_at(SwitchIndex at) const;
  v1::RingRecord ring_record(const placement::Tree& tree, const placement::Placement& placement,
                             const Wish& wish, const v1::HoldJobRequest& request,
                             std::uint32_t id) const;
  void hold(CallId call, const Caller& caller, const v1::HoldJobRequest& request, Time now);
  void hold_again(CallId call, const v1::JobRecord& record, Time now);
  bool place(CallId call, const Caller& caller, const v1::HoldJobRequest& request, Time until);
  void tell_placed(const v1::JobRecord& record, Care& care);
  void note_decision(const v1::HoldJobRequest& request, const std::string& words);

  // The picture.
  void draw_switches(const placement::Usage& used, v1::FabricPicture& picture) const;
  void draw_hosts(v1::FabricPicture& picture) const;
  void draw_links(const Caller& caller, const placement::Usage& used,
                  v1::FabricPicture& picture) const;

  bool is_out(SwitchIndex at, std::string* why = nullptr) const;
  bool is_shut(plan::LinkId link, std::string* why = nullptr) const;
  std::optional<std::string> cut_of(plan::LinkId link) const;
  std::optional<std::string> link_mark(plan::LinkId link) const;
  std::vector<SwitchIndex> switches_of(const v1::JobRecord& record) const;
  v1::Job job_of(const v1::JobRecord& record) const;
  void require_operator(const Caller& caller) const;
  static bool is_owner(const Caller& caller, const v1::JobRecord& record);
  std::optional<std::string> mark(const std::string& kind, const std::string& name) const;

  const Site& site_;
  store::Store& store_;
  Outside& outside_;
  const Identity identity_;
  placement::Placer placer_;
  bool is_over_ = false;
  bool is_in_doubt_ = false;       // whether it leads
  bool is_lost_ = true;            // the store was not read since it was last lost
  std::string awaits_claim_;       // why it gives no order before a claim; empty: it does
  bool has_told_adoption_ = false; // for which switches it waits
  Time read_at_ = 0;
  Time begun_at_ = 0;
  Time last_now_ = 0;
  v1::FabricRecord fabric_;
  bool ids_are_stored_ = true;                     // fabric_ is as the store has it
  std::map<std::uint64_t, v1::JobRecord> records_; // as the store has them
  std::map<std::uint64_t, Care> care_;
  std::map<std::string, v1::MarkRecord> marks_; // by "switch/NAME"
  std::map<std::uint64_t, v1::AllocationRecord> allocations_;
  std::vector<SwitchState> switches_;
  std::deque<Waiter> waiters_;
  std::deque<Decision> decisions_;
  std::map<CallId, std::uint64_t> job_of_call_;
  Counts counts_;
};

} // namespace weir::jobs
