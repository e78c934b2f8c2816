// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "region/outlet.hpp"
#include "region/region_table.hpp"
#include "stage/forward.hpp"
#include "stage/schedule.hpp"

#include <cstdint>
#include <memory>

namespace weir::stage {

class FairQueue;
class Pipeline;
class Queue;

/// Writes what a member of a region writes into the memory of all its members (docs/protocol.md
/// §13). No packet of a ring comes here.
class Region : private region::Outlet {
 public:
  explicit Region(Pipeline& pipeline);

  /// Takes a RoCE packet to the regions' address. Ends the frame, or holds it.
  void accept(frame::Frame& frame, frame::Instant now);

  /// Whose member has sent the packet, as far as its port and addresses say; nullptr: nobody's.
  const region::Region* region_of(const frame::Frame& frame) const;

  /// Takes a region that the table has made, whose members have to say hello from now on. `tenant`:
  /// whose it is, or FairQueue::kNoTenant.
  void adopt(std::unique_ptr<region::Region> made, std::uint16_t tenant, frame::Instant now);

  /// Ends one of the table's regions.
  void withdraw(region::Region& region, frame::Instant now);

  /// Acts on the regions whose time has come.
  void poll(frame::Instant now);

  region::RegionTable& table() { return table_; }

  const region::RegionTable& table() const { return table_; }

 private:
  frame::Frame* originate(std::uint32_t bytes) override;
  void send(frame::Frame& frame, const region::Region& from, std::uint16_t port,
            frame::Instant now) override;
  void consume(frame::Frame& frame) override;
  void drop(frame::Frame& frame, DropReason reason, frame::Instant now) override;

  Schedule& schedule_;
  Forward& forward_;
  FairQueue& lines_;
  Queue& queue_;
  region::RegionTable table_;
};

} // namespace weir::stage
