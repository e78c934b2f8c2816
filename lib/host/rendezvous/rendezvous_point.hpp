// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Where rank 0 listens, told to all ranks by an all-gather that they have already: an MPI
/// communicator's, a key-value store's. So no address and port must be agreed before.

#include "host/base/group_options.hpp"
#include "host/base/stream.hpp"
#include "host/rendezvous/handshake.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

struct RendezvousPoint {
  std::vector<Endpoint> endpoints; // one of them suits a rank that can reach rank 0 at all
  std::string secret;              // drawn for this group
};

/// What each rank puts into the all-gather.
inline constexpr std::size_t kMeetingNoteBytes = 1024;

/// Calls the all-gather once, as every rank must. `own` is what rank 0 says, and unused elsewhere.
/// Returns rank 0's. Throws Error: about the rank that could not come, or that the all-gather
/// failed or has mixed up the ranks.
RendezvousPoint share_rendezvous_point(const AllGather& all_gather, const Claim& claim,
                                       const RendezvousPoint& own);

/// Calls it once, to tell the others that this rank cannot come. Ignores what they say, and whether
/// they can be told.
void share_failure(const AllGather& all_gather, const Claim& claim, std::string_view why);

} // namespace weir::host
