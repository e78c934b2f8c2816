// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/frame_seal.hpp"
#include "host/base/stream.hpp"
#include "host/node/node_memory.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// How the ranks of a node get its descriptors: from the leader, by a Unix socket that is a name in
/// the network namespace and no file. Both ends look who the other is: the kernel says which user.
/// A rank must also know the token that the leader has drawn, which it learns where the ranks meet.

/// Called again and again while a rank waits. What it throws ends the wait.
using NodeMeanwhile = std::function<void()>;

struct NodeWait {
  Deadline deadline;
  NodeMeanwhile meanwhile;
  std::uint16_t leader = 0; // ranks, for errors
  std::uint16_t rank = 0;
};

/// The leader's end.
class NodeDoor {
 public:
  /// Throws Error.
  explicit NodeDoor(std::uint16_t leader);

  /// What the others must know, for Rendezvous::gather.
  std::vector<std::uint8_t> invitation() const;

  /// Hands the descriptors to every other rank of the node, `ranks` by place. Strangers are turned
  /// away. Throws Error, also about a rank that has not come by the deadline.
  void hand_out(const NodeDescriptors& descriptors, const std::vector<std::uint16_t>& ranks,
                const NodeWait& wait) const;

 private:
  static constexpr std::size_t kNameBytes = 16;

  std::array<std::uint8_t, kNameBytes> name_;
  Mac token_;
  Socket socket_;
};

/// The other ranks'. `place` is ours in a node of so many ranks. Throws Error, also when the leader
/// is another user's.
NodeDescriptors come_to_node(std::span<const std::uint8_t> invitation, std::uint16_t place,
                             std::uint16_t ranks, const NodeWait& wait);

} // namespace weir::host
