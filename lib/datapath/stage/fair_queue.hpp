// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "stage/token_bucket.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace weir::stage {

/// What the line of a ring group, or of a region, has and did.
struct LineCounters {
  std::uint64_t waited = 0;     // frames that had to wait
  std::uint64_t queue_full = 0; // dropped because the line was full
  std::uint64_t over_rate = 0;  // dropped as tenant_rate
};

/// Frames that wait for one worker: a line for each ring group and for each region, and one for
/// what comes to the regions from strangers. Lines are served in turn by
/// deficit round robin (Shreedhar and Varghese, SIGCOMM'95), so each gets the same share of the
/// worker's time however many frames stand in the others. A line whose tenant has spent its packets
/// per second stands aside until there is a token; the tenant's lines get tokens in turn. put() and
/// take() take a time that does not depend on the number of lines.
///
/// All lines share the room. A line is full when it has twice as many frames as there are places
/// free (Choudhury and Hahne, 1998: a dynamic threshold). So a line that floods leaves room for the
/// others, and one line alone may fill two thirds.
class FairQueue {
 public:
  /// A tenant's number. Lines of no tenant have no limit.
  static constexpr std::uint16_t kNoTenant = std::numeric_limits<std::uint16_t>::max();

  /// What a frame costs beside its bytes, in bytes that cost as much. On one lcore, frames from
  /// memory, a frame takes 190 ns and 0.095 ns for each byte (docs/lab/packet-path.md).
  /// Bytes alone would give a ring of short frames many times the time of one with long frames.
  static constexpr std::uint32_t kFrameCost = 2048;
  static constexpr std::uint64_t kBytesPerNs = 10;

  /// What a line may cost in a turn. As much as the longest frame (9216 bytes and headers), so that
  /// no turn is in vain: then a frame takes constant time.
  static constexpr std::uint32_t kQuantum = 12288;

  /// A line of a tenant with a rate is never longer than what leaves in this time: a packet that
  /// waits as long as its sender's ACK timeout is sent twice.
  static constexpr std::uint64_t kLongestWaitMs = 20;
  static constexpr std::uint64_t kShortestLine = 64; // even if it waits longer
  static constexpr std::uint64_t kBurstMs = 2;       // of the rate, that a pause saves up
  static constexpr std::uint64_t kSmallestBurst = 64;

  /// For so many frames.
  explicit FairQueue(std::uint32_t room);

  std::uint32_t room() const { return static_cast<std::uint32_t>(places_.size()); }

  std::uint32_t size() const { return size_; }

  bool is_empty() const { return size_ == 0; }

  /// Lines for the ring groups 0 .. ring groups - 1. It never has fewer than before.
  void resize(std::size_t ring_groups);

  /// Lines for the regions 0 .. regions - 1. It never has fewer than before.
  void resize_for_regions(std::size_t regions);

  std::size_t ring_groups() const { return ring_groups_; }

  std::size_t regions() const { return lines_.size() - ring_groups_ - 1; }

  /// What may stand for a ring group below, until there are more of these.
  std::uint16_t line_of_strangers() const { return static_cast<std::uint16_t>(ring_groups_); }

  /// Likewise, of a region.
  std::uint16_t line_of_region(std::size_t region) const {
    return static_cast<std::uint16_t>(ring_groups_ + 1 + region);
  }

  /// The tenant's packets per second here; 0: no limit. Call regroup() afterwards.
  void set_rate(std::uint16_t tenant, std::uint64_t rate, frame::Instant now);

  /// Call regroup() afterwards.
  void set_tenant(std::uint16_t ring_group, std::uint16_t tenant) {
    lines_[ring_group].tenant = tenant;
  }

  /// FairQueue::kNoTenant: nobody's.
  std::uint16_t tenant_of(std::uint16_t ring_group) const { return lines_[ring_group].tenant; }

  /// Somebody else has the line, without frames, from now on.
  void clear_counters(std::uint16_t ring_group) { lines_[ring_group].counters = {}; }

  /// Whether some tenant has a limit.
  bool has_rates() const { return rates_ != 0; }

  /// True if the ring group's next frame need not wait: no frame waits for its turn, none of its
  /// tenant waits for a token, and there is a token, which is then taken.
  bool passes(std::uint16_t ring_group, frame::Instant now);

  /// Whether the worker may send something again for the ring group: always while no frame waits,
  /// except that a tenant's packets per second count; otherwise until the ring group owes a turn.
  /// Where a token is lacking, the ring group stands aside like a line that has frames, and keeps
  /// the token that it gets in its turn.
  bool may_send_again(std::uint16_t ring_group, frame::Instant now);

  /// The worker has sent a frame of so many bytes again for the ring group. Its line pays where
  /// others wait, from its next turns.
  void charge(std::uint16_t ring_group, std::uint32_t bytes);

  /// The worker has spent so many ns on the ring group beside what its frames usually take. Its
  /// line pays likewise.
  void charge_work(std::uint16_t ring_group, std::uint64_t ns);

  /// Puts the frame at the end of its line. Otherwise the reason to drop it.
  std::optional<DropReason> put(frame::Frame& frame, std::uint16_t ring_group);

  /// Fills the front of `frames` with those whose turn it is; returns how many.
  unsigned take(std::span<frame::Frame*> frames, frame::Instant now);

  /// Groups have new numbers or other tenants. Frames go to the line that `ring_group_of` gives for
  /// them; those of one line stay in order.
  void regroup(const std::function<std::uint16_t(const frame::Frame&)>& ring_group_of);

  /// Takes out any frame, without turns; nullptr when there is none.
  frame::Frame* take_any();

  std::uint32_t waiting(std::uint16_t ring_group) const {
    return ring_group < lines_.size() ? lines_[ring_group].frames : 0;
  }

  /// The packets per second of the ring group's tenant; 0: no limit.
  std::uint64_t rate_of(std::uint16_t ring_group) const;

  LineCounters counters_of(std::uint16_t ring_group) const {
    return ring_group < lines_.size() ? lines_[ring_group].counters : LineCounters{};
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// A place for a frame. It is in a line, or free.
  struct Place {
    frame::Frame* frame = nullptr;
    std::uint32_t next = kNone;
    std::uint32_t cost = 0; // here, because the frame is in no cache any more when its turn comes
  };

  /// First in, first out. While it has frames or a debt, or wants a token, it is in the circle of
  /// lines to be served, or it stands aside with others of its tenant.
  struct Line {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t frames = 0;
    std::uint32_t deficit = 0;  // what its turn may still cost
    std::uint32_t debt = 0;     // what was sent again for it cost, and it has not paid
    std::uint32_t next = kNone; // line in the circle, or aside
    std::uint16_t tenant = kNoTenant;
    bool wants_token = false;     // to send something again
    bool has_kept_token = false;  // the same, and has got it
    bool kept_last_token = false; // and so its frames come next
    LineCounters counters;

    bool is_nowhere() const { return frames == 0 && debt == 0 && !wants_token; }
  };

  /// Lines one after another.
  struct Row {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;

    bool is_empty() const { return first == kNone; }
  };

  struct Tenant {
    std::optional<TokenBucket> bucket; // none: no limit
    Row aside;                         // lines that wait for a token
  };

  void insert_lines(std::size_t place, std::size_t count);
  const Tenant* limited_tenant_of(const Line& line) const;
  Tenant* limited_tenant_of(const Line& line);
  bool has_token(const Line& line) const;
  std::uint64_t longest(const Line& line) const;
  void push(Row& row, std::uint32_t ring_group);
  std::uint32_t pop(Row& row);
  void append(frame::Frame& frame, std::uint32_t ring_group);
  frame::Frame* pop(Line& line);
  frame::Frame* take_any_of(Row& row);
  void pay(Line& line) const;
  void wait_for_token(std::uint16_t ring_group, Tenant& tenant);
  void call_back(frame::Instant now);
  void give_token(Tenant& tenant);
  unsigned serve_first(std::span<frame::Frame*> frames);
  void join(std::uint32_t ring_group);

  std::vector<Place> places_;
  std::uint32_t free_ = kNone; // first free place
  std::uint32_t size_ = 0;
  std::size_t ring_groups_ = 0;
  std::vector<Line> lines_{1};  // by ring group, then the strangers', then by region
  Row circle_;                  // lines whose turn will come; the first one's has come
  bool in_turn_ = false;        // the first line has got its quantum
  std::vector<Tenant> tenants_; // by number
  std::size_t rates_ = 0;       // tenants with a limit
};

} // namespace weir::stage
