// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/base/group_options.hpp"
#include "host/base/residence.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// One run of the job (docs/protocol.md §2a).
struct Incarnation {
  std::uint32_t epoch = 0;
  std::uint32_t nonce = 0; // not 0
};

/// Where the rings come from. Rank 0's word counts.
enum class RingSource : std::uint8_t {
  configuration, // the switch has them
  made_now,      // rank 0 has a switch make them, and tells how that ended
};

/// A rank's contribution to the rendezvous.
struct Introduction {
  Incarnation incarnation; // that the rank suggests
  RingSource ring_source = RingSource::configuration;
  Residence residence;
  Blob address; // of the transport
};

/// Makes a blob of our options and what else we say for Rendezvous::gather.
Blob introduce(const GroupOptions& options, const Introduction& own);

/// Returns every rank's introduction, by rank. Throws Error (mismatch) with the first rank
/// whose options differ from ours, the option and both values.
std::vector<Introduction> agree(const GroupOptions& options, const std::vector<Blob>& blobs);

} // namespace weir::host
