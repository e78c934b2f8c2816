// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "region/outlet.hpp"
#include "region/pull_table.hpp"
#include "region/requester.hpp"
#include "region/responder.hpp"
#include "region/spec.hpp"
#include "region/speech.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::region {

enum class State : std::uint8_t {
  forming, // not all members have said hello
  open,
  ended, // members are told when they ask
};

/// Why a region has ended.
enum class End : std::uint8_t {
  withdrawn,  // whoever made it wants so
  superseded, // a queue pair of its members has said hello to a newer region
  silent,     // a member owes an acknowledgement for longer than patience
  refused,    // a member's queue pair has failed, or its memory is gone
  broken,     // a member has sent what no region takes
  unformed,   // a member has not said hello in time
};

inline constexpr std::size_t kEnds = static_cast<std::size_t>(End::unformed) + 1;

struct Counters {
  std::uint64_t accepted = 0;   // packets of sources
  std::uint64_t copies = 0;     // sent, again or not
  std::uint64_t again = 0;      // of these
  std::uint64_t answers = 0;    // ACKs, NAKs and RNR NAKs
  std::uint64_t asked = 0;      // NAKs and RNR NAKs of these, for what was lost
  std::uint64_t congested = 0;  // notifications of congestion by targets
  std::uint64_t suppressed = 0; // those of them that nobody was told of
  std::uint64_t notified = 0;   // notifications sent to sources
  std::uint64_t reads = 0;      // READs of readers, repeats not counted
  std::uint64_t folds = 0;      // packets that answer these, again or not
  std::uint64_t folds_again = 0;
  std::uint64_t member_reads = 0; // READs to members, again or not
  std::uint64_t member_reads_again = 0;
};

/// A region: the switch's ends of its members' connections, and the packets held for them
/// (docs/protocol.md §13). One lcore uses it.
class Region {
 public:
  /// What its copies took, of all members.
  using Storage = std::vector<endpoint::FixedQueue<Copy>>;

  /// The spec has no defect. `outlet` outlives the region.
  Region(RegionSpec spec, RegionBirth birth, Outlet& outlet);
  Region(const Region&) = delete; // its members refer to its spec
  Region& operator=(const Region&) = delete;
  ~Region() = default;

  /// Whether the frame comes from where this member is.
  bool is_from(const frame::Frame& frame, std::uint16_t number) const;

  /// A packet for the switch's queue pair of this member, which parse() called transport or
  /// message.
  void accept(frame::Frame& frame, std::uint16_t number, frame::Instant now);

  /// Opens when all members have said hello: a step of its own, because the last hello may be a
  /// late one, of a queue pair that is another region's by now.
  void open_if_complete(frame::Instant now);

  /// From now on its members have `forming_ms` to say hello. Before it is called they have for
  /// ever.
  void await_hellos(frame::Instant now);

  /// From now on it takes nothing. What it holds goes in pieces, with the next polls, so that
  /// nobody waits for long. `culprit`: the member that is to blame.
  void end(End why, frame::Instant now, std::optional<std::uint16_t> culprit = {});

  /// The same, and says nothing more: its queue pairs have new owners.
  void silence(frame::Instant now);

  /// Acts on the timers that are due.
  void poll(frame::Instant now);

  /// When poll() is worth calling, in ns.
  std::uint64_t next_timer() const { return next_timer_; }

  /// For any thread: what else changes is its lcore's.
  State state() const { return state_.load(std::memory_order_relaxed); }

  /// Likewise: it has ended and holds nothing.
  bool has_let_go() const { return has_let_go_.load(std::memory_order_relaxed); }

  /// Where its packets wait for their turn: a number that no other region of its table has.
  std::uint16_t line() const { return line_; }

  void take_line(std::uint16_t line) { line_ = line; }

  std::optional<End> why_ended() const { return why_ended_; }

  /// Of a region that has ended: memory that it needs no more, for the caller to free when he has
  /// time.
  Storage give_storage();

  /// A member that has said hello is behind this port, and the region has not ended.
  bool speaks_by(std::uint16_t port) const;

  /// The member that is to blame for its end, if one is.
  std::optional<std::uint16_t> culprit() const { return culprit_; }

  /// It has ended so long ago that no member asks any more, and holds nothing.
  bool is_over(frame::Instant now) const {
    return has_let_go() && now.ns >= ended_ns_ + patience_ns();
  }

  /// Whether the member has said hello.
  bool has_heard(std::uint16_t number) const { return !members_[number].speech.is_empty(); }

  /// Whether a member that has said hello is the queue pair of `other`'s member, which has too: the
  /// same address and number, by the same port.
  bool has_heard_same(const Region& other, std::uint16_t number) const;

  const RegionSpec& spec() const { return spec_; }

  const RegionBirth& birth() const { return birth_; }

  const Counters& counters() const { return counters_; }

  /// Frames of sources, and of members' answers to READs.
  std::uint64_t held() const { return held_ + table_.held(); }

  /// Packets of READs that are gathered now.
  std::uint32_t entries_used() const { return table_.used(); }

  std::uint64_t unanswered_reads_of(std::uint16_t number) const {
    return members_[number].asked.unanswered_reads();
  }

  std::uint64_t held_of(std::uint16_t number) const { return members_[number].asked.held(); }

  std::uint64_t unacknowledged_by(std::uint16_t number) const {
    return members_[number].told.unacknowledged();
  }

  /// For how many ns the member has given no sign of life while it owes an acknowledgement.
  std::uint64_t waits_for(std::uint16_t number, frame::Instant now) const {
    const std::uint64_t since = members_[number].told.waits_since();
    return since < now.ns ? now.ns - since : 0;
  }

 private:
  struct Member {
    Member(const RegionSpec& spec, const MemberSpec& member, const MemberBirth& birth);

    std::optional<std::uint16_t> port;
    Speech speech; // empty before the hello
    Responder asked;
    Requester told;
    wire::NakCode farewell = wire::NakCode::remote_operational;
    bool has_repeat_answered = false; // of the pass that it is in
    // Behind the response that has ended its READ too early, because the region has ended.
    std::optional<std::uint32_t> cut_off_at;
    std::uint64_t congested_until = 0; // what it says of congestion is passed on from then
    std::uint64_t notified_until = 0;  // it is told of congestion again from then
  };

  std::uint64_t patience_ns() const { return spec_.patience_ms * frame::kNsPerMs; }

  void accept_request(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void accept_while_forming(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void accept_while_open(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void accept_when_ended(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void tell_end(const frame::Frame& frame, std::uint16_t number, frame::Instant now);
  bool is_hello(const frame::Frame& frame, std::uint16_t number) const;
  void accept_answer(frame::Frame& frame, std::uint16_t number, frame::Instant now);

  Responder::Verdict judge(const frame::Frame& frame, std::uint16_t number) const;

  // Pull (region_pull.cpp).
  void pull(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void repeat_pull(const frame::Frame& frame, std::uint16_t number, frame::Instant now);
  void take_back(std::uint16_t reader, std::optional<std::uint32_t> kept);
  void gather(frame::Instant now);
  void give_entries(frame::Instant now);
  void read_from(std::uint16_t member, frame::Instant now);
  void send_read(std::uint16_t target, const Requester::Due& due, frame::Instant now);
  void accept_response(frame::Frame& frame, std::uint16_t number, frame::Instant now);
  bool answer_read(std::uint16_t reader, frame::Instant now);
  void respond(std::uint16_t reader, const Answer& answer, std::uint32_t message_sequence,
               frame::Instant now);
  void fold(const Answer& answer, std::uint16_t reader, std::uint8_t* out);
  void cut_off(std::uint16_t reader, std::uint32_t psn, frame::Instant now);
  void drop_entries(std::size_t most, frame::Instant now);

  void multicast(frame::Frame& frame, std::uint16_t source, frame::Instant now);
  void send_copies(std::uint16_t target, frame::Instant now);
  void send_copy(std::uint16_t target, const Requester::Due& due, frame::Instant now);
  void pass_congestion_on(std::uint16_t target, frame::Instant now);
  void notify_congestion(std::uint16_t source, frame::Instant now);
  void count_off(const Copy& copy);
  void answer_freed(frame::Instant now);
  void answer(std::uint16_t number, frame::Instant now);
  void answer_repeat(std::uint16_t number, frame::Instant now);
  void ask(std::uint16_t number, frame::Instant now);
  void break_off(frame::Frame& frame, std::uint16_t number, Responder::Verdict verdict,
                 frame::Instant now);
  void acknowledge(std::uint16_t number, frame::Instant now);
  void say(std::uint16_t number, std::uint8_t syndrome, std::uint32_t psn, frame::Instant now);
  void drop_some(frame::Instant now);
  bool is_silent(const Member& member, frame::Instant now) const;
  void poll(std::uint16_t number, frame::Instant now);
  std::uint64_t timer_of(const Member& member) const;
  void expect(const Member& member);

  std::uint16_t members() const { return static_cast<std::uint16_t>(members_.size()); }

  const RegionSpec spec_;
  const RegionBirth birth_;
  Outlet& outlet_;
  std::vector<Member> members_;
  PullTable table_;
  std::vector<op::ReduceKernel> kernels_;     // by view
  std::vector<const std::byte*> inputs_;      // of the fold that is made
  std::uint16_t turn_ = 0;                    // the reader that may have an entry next
  bool is_table_changed_ = false;             // entries are free, or wanted, since gather()
  std::atomic<State> state_ = State::forming; // the lcore writes it, and the next one
  std::atomic<bool> has_let_go_ = false;
  std::optional<End> why_ended_;
  std::optional<std::uint16_t> culprit_;
  std::uint64_t formed_by_ns_ = kNever;
  bool is_silenced_ = false;
  std::uint64_t ended_ns_ = 0;
  std::vector<std::uint16_t> freed_; // sources of what the last answer freed
  std::uint64_t held_ = 0;
  std::uint64_t next_timer_ = kNever;
  std::uint16_t line_ = 0;
  Counters counters_;
};

} // namespace weir::region
