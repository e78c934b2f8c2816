// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/rendezvous.hpp"
#include "weir/communicator.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// What a rank brings to the rendezvous.
struct Introduction {
  std::uint32_t epoch = 0;
  Blob address; // the transport's
};

/// Our own options and address as a blob for Rendezvous::gather.
Blob introduce(const CommunicatorOptions& options, std::uint32_t epoch,
               std::span<const std::uint8_t> address);

/// Every rank's introduction, by rank. Throws weir::Error (mismatch) that names the first rank
/// whose options differ from ours, the option and both values.
std::vector<Introduction> agree(const CommunicatorOptions& options, const std::vector<Blob>& blobs);

} // namespace weir::host
