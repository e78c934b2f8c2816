// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/work.hpp"
#include "host/api/progress_threads.hpp"
#include "host/api/request.hpp"
#include "host/base/error.hpp"
#include "host/base/fork_watch.hpp"
#include "host/base/group_options.hpp"
#include "host/region/region_ends.hpp"
#include "host/region/region_link.hpp"
#include "host/region/region_plan.hpp"
#include "host/switch_rings/held_region.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::host {

class Region;

/// An immediate that a member has written.
struct RegionNotice {
  std::uint16_t rank = 0;
  std::uint32_t immediate = 0;
};

/// An immediate has 32 bits on the wire: the writer's rank, and 24 of its program's.
inline constexpr std::uint32_t kMostRegionImmediate = 0xffffff;

/// Until the switch's reason for an end has reached all: the call HoldRegion ends within two
/// seconds (docs/regions.md), and rank 0 tells the others.
inline constexpr std::chrono::seconds kRegionReasonTime{3};

/// A write or a read of a region.
struct RegionRequest {
  endpoint::SendRequest work;
  bool is_done = false; // or the region has ended. Guarded by the region
  DoneCallback on_done;
  bool has_callback = false;
};

/// As Pending, of a region's request.
class RegionPending {
 public:
  RegionPending(std::shared_ptr<Region> region, std::shared_ptr<RegionRequest> request)
      : region_(std::move(region)), request_(std::move(request)) {}

  bool test();
  void wait();
  bool wait_for(std::chrono::milliseconds timeout);
  void on_done(DoneCallback callback);
  /// True only if it is over: what is posted cannot be taken back.
  bool cancel();

  std::string waits_for() const { return {}; }

 private:
  std::shared_ptr<Region> region_;
  std::shared_ptr<RegionRequest> request_;
};

/// What a region is made of.
struct RegionParts {
  std::uint32_t number = 0; // of the group's
  std::uint16_t rank = 0;
  std::span<std::uint8_t> memory;
  MadeRegion made;
  std::uint32_t path_mtu = 1024;
  std::unique_ptr<RegionLink> link; // connected
  std::shared_ptr<RegionEnds> ends;
  std::unique_ptr<HeldRegion> held;         // on rank 0
  ProgressBy progress = ProgressBy::thread; // of the group
  std::chrono::milliseconds timeout{0};     // without progress
  std::chrono::milliseconds farewell{0};    // of close()
};

/// One member's part in a region (docs/regions.md), over a connection whose peer is the switch. A
/// thread of the process's drives it, because the switch may ask at any time. Any thread may use
/// it.
class Region : public std::enable_shared_from_this<Region>,
               private Attended,
               private RegionListener {
 public:
  /// Call begin() next.
  explicit Region(RegionParts parts);
  ~Region() override;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Says hello and waits until all members have, for `patience` at most. Throws Error.
  void begin(std::chrono::milliseconds patience);

  /// Starts a write to all members' copies at `offset`, with an immediate or none. Throws
  /// std::invalid_argument for what does not lie within the region or is no immediate, and the
  /// Error that has ended the region. So does the next one.
  RegionPending write(std::size_t offset, std::span<const std::uint8_t> data,
                      std::optional<std::uint32_t> immediate);
  /// Starts a read of the view's fold at `offset`.
  RegionPending read(std::size_t view, std::size_t offset, std::span<std::uint8_t> out);
  /// The oldest immediate that has come and was not taken. Makes a step first, unless another
  /// thread drives. Throws the Error that has ended the region when none is left.
  std::optional<RegionNotice> take_notice();

  /// False in a child made by fork, where it is kept for ever: its connections are the parent's.
  bool is_here() const { return birthplace_.is_here(); }

  /// Whether it has ended, or is about to.
  bool is_over();

  /// Ends this member's part, when `all_have_come` says so: others may need an acknowledgement
  /// until then. Waits for farewell at most.
  void close(const std::function<bool()>& all_have_come);

 private:
  friend class RegionPending;
  using Lock = std::unique_lock<std::mutex>;

  // Of requests.
  std::shared_ptr<RegionRequest> start(endpoint::SendRequest work);
  bool test(RegionRequest& request);
  bool wait_until(RegionRequest& request, Deadline deadline);
  void set_callback(RegionRequest& request, DoneCallback callback);
  void check_range(std::size_t offset, std::size_t bytes) const;
  void check_read(std::size_t view, std::size_t offset, std::size_t bytes) const;
  bool overlaps_read(const endpoint::SendRequest& write) const;
  void throw_if_failed() const;

  // Of whoever drives, with the lock.
  bool step();
  void post_waiting();
  void look_at_end(Deadline now);
  void look_at_time(Deadline now);
  void fail(const Error& error);
  Deadline due() const;
  void sleep(Lock& lock, Deadline deadline);
  void tell_end(Lock& lock);
  void call_back(Lock& lock);
  Rest attend(Wakening wakening, Deadline stay) override;
  void completed() override;
  void notified(std::uint32_t immediate) override;

  bool is_idle() const { return in_flight_.empty() && waiting_.empty(); }

  // Of others, without the lock.
  void note_end(const Error& error);
  void call_thread();
  void leave_thread();
  void drive_group();
  void visit();
  void refuse_elsewhere() const;

  const Birthplace birthplace_;
  const std::uint32_t number_;
  const std::uint16_t rank_;
  const std::span<std::uint8_t> memory_;
  const MadeRegion made_;
  const std::uint32_t path_mtu_;
  const ProgressBy group_progress_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds farewell_;
  const std::shared_ptr<RegionEnds> ends_;
  const std::unique_ptr<HeldRegion> held_;

  std::mutex mutex_; // guards the next
  std::unique_ptr<RegionLink> link_;
  std::deque<std::shared_ptr<RegionRequest>> waiting_;   // for room in the send queue
  std::deque<std::shared_ptr<RegionRequest>> in_flight_; // in the order of their completions
  std::vector<std::shared_ptr<RegionRequest>> due_;      // their callbacks are
  std::deque<RegionNotice> notices_;
  std::size_t receives_kept_ = 0; // not posted again, since nobody takes the notices
  std::optional<Error> failure_;
  std::optional<Error> link_failure_; // why it is about to end, until the reason is there
  Deadline link_failed_;              // since then
  std::uint64_t progress_ = 0;        // the link's
  Deadline moved_;                    // when that has changed, or a request has come
  bool is_calling_ = false;
  bool tells_end_ = false;          // rank 0, the others, when it has no lock
  std::condition_variable changed_; // a request is done, or a notice is there

  std::mutex ending_; // guards the next two
  std::optional<Error> end_;
  std::unique_ptr<ProgressThreads::Seat> seat_; // null: it is closed
  std::atomic<bool> has_end_ = false;
};

} // namespace weir::host
