// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/base/group_options.hpp"
#include "host/base/stream.hpp"
#include "host/region/region_link.hpp"
#include "host/transport/nic.hpp"
#include "host/transport/transport.hpp"
#include "host/transport/user_memory.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace weir::host {

class Group;

/// A device by which groups reach the network, and the callers' memory that it knows. It is opened
/// by the first that needs it; then all share it, and may outlive this object. Any thread may use
/// it.
class Device {
 public:
  /// Their device, addresses and kind of transport. They have no defect.
  explicit Device(GroupOptions options);

  const GroupOptions& options() const { return options_; }

  /// The group's options with the name of this device's NIC, if it may be shared.
  GroupOptions named_by(GroupOptions group) const;

  /// For a group with these options. Throws Error when the device refuses.
  std::unique_ptr<Transport> open_transport(const GroupOptions& group);

  /// A member's connection of a region, whose copy `memory` is, for a group with these options.
  /// Throws Error when the device refuses.
  std::unique_ptr<RegionLink> open_region_link(const GroupOptions& group,
                                               std::span<std::uint8_t> memory, std::uint32_t reads);

  /// The memory must be writable. It serves all groups over this device, also those that are formed
  /// later. Throws Error.
  std::unique_ptr<UserMemory> register_memory(std::span<std::uint8_t> bytes);
  /// The same of a dma-buf, which this process has as `mapped`.
  std::unique_ptr<UserMemory> register_dmabuf(const DmabufRange& range,
                                              std::span<std::uint8_t> mapped);

  /// Readable while the descriptor of a group that has entered is. Throws Error.
  int descriptor();
  /// A group without a thread has no descriptor, and is left out. The group stays where it is until
  /// it leaves. Throws Error.
  void enter(Group& group);
  void leave(Group& group);

 private:
  std::shared_ptr<Nic> nic();
  void watch(Group& group);
  void refuse_elsewhere() const;

  const GroupOptions options_;
  const Birthplace birthplace_;
  std::mutex mutex_;
  std::shared_ptr<Nic> nic_;   // of verbs, once somebody needed it
  std::vector<Group*> groups_; // that have entered and have descriptors
  Socket events_;              // of all of them; empty until somebody wants it
};

} // namespace weir::host
