// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/work.hpp"
#include "host/base/error.hpp"
#include "host/base/stream.hpp"
#include "host/region/region_plan.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace weir::host {

/// Events of a region's connection.
class RegionListener {
 public:
  virtual ~RegionListener() = default;
  /// The oldest request has been done: it was a write, and is in all members' memory, or a read,
  /// and its data are there.
  virtual void completed() = 0;
  /// A write with an immediate is in this member's copy. It has taken a receive.
  virtual void notified(std::uint32_t immediate) = 0;
};

/// What a member's connection to the switch is opened with.
struct RegionLinkPlan {
  std::span<std::uint8_t> memory; // the member's copy
  std::uint32_t path_mtu = 1024;
  std::uint32_t reads = 1;       // of max_rd_atomic and max_dest_rd_atomic
  std::uint32_t send_depth = 64; // requests posted and not completed
  std::uint32_t receive_depth = 256;
  std::chrono::nanoseconds ack_timeout{0};
  std::uint8_t ack_timeout_exponent = 0;
  std::uint8_t retry_count = 7;
};

/// A member's reliable connection, whose peer is the switch, which WRITEs to the member's copy and
/// READs it (docs/protocol.md §13). Throws Error when the device fails. One thread at a time.
class RegionLink {
 public:
  virtual ~RegionLink() = default;

  virtual RegionMember member() const = 0;
  /// Call it once. `window` is the region's.
  virtual void connect(const MadeRegion& region, const RegionEnd& end) = 0;

  /// Of writes and reads; at the region's addresses, with its keys. False when the send queue is
  /// full of requests that are not completed.
  virtual bool post(const endpoint::SendRequest& request) = 0;
  /// For an immediate more.
  virtual void post_receive() = 0;
  /// Moves frames and reports events; true when there were any.
  virtual bool poll(RegionListener& listener) = 0;
  /// Why the connection has failed.
  virtual std::optional<Error> failure() const = 0;
  /// When it returns, nobody reads or writes memory by it any more. Does not throw.
  virtual void close() = 0;
  /// Changes as packets are acknowledged or come.
  virtual std::uint64_t progress() const = 0;

  /// Readable when poll() has work.
  virtual int descriptor() const = 0;
  /// Call it before sleeping on the descriptor. False: poll again first.
  virtual bool arm() = 0;
  /// When poll() has work even if nothing comes.
  virtual Deadline due() const = 0;
};

} // namespace weir::host
