// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What the ranks of a group keep for the day on which one of them dies (docs/host.md, "When a rank
/// has died"). Each rank listens at addresses that all know. Until the group shrinks, callers are
/// closed there; but the kernel answers, and so tells whether the process lives.

#include "host/base/stream.hpp"
#include "host/rendezvous/handshake.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace weir::host {

/// A group that was formed, and all that it has been shrunk to since. Here a rank always has the
/// number that it had in the group that was formed: its original rank.
struct GroupHistory {
  Claim self;              // the original rank and world
  Credentials credentials; // no other group's, so that its ranks count as strangers
  std::chrono::milliseconds keep_alive{};
  Socket listener;
  std::vector<std::vector<Endpoint>> endpoints; // by original rank, where it may be reached

  std::mutex turn;                  // one shrink at a time; guards all below
  std::uint32_t epoch = 0;          // the latest of its groups
  std::set<std::uint16_t> left_out; // did not answer when the others went on; they may be alive
};

/// Opens this rank's listener at the address that its connections have, and learns the others'.
/// Every rank calls it once. Throws Error.
std::shared_ptr<GroupHistory> begin_history(Rendezvous& rendezvous, const RendezvousPlan& plan);

} // namespace weir::host
