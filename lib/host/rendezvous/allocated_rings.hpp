// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace weir::host {

struct MadeRings {
  std::vector<std::uint32_t> ids;
  std::string shortage; // why the switch made fewer than it offers; empty if it did not
};

/// What rank 0 tells the others of the rings that it had a switch make, or why there are none.
using AllocatedRings = std::variant<MadeRings, Error>;

/// For Rendezvous::gather.
Blob encode(const AllocatedRings& rings);

/// How many ids may come.
struct RingCount {
  std::size_t least;
  std::size_t most;
};

/// What rank 0 of `world` sent. Error (transport_failure) for bytes that are neither so many rings
/// nor an error.
AllocatedRings decode_allocated_rings(std::span<const std::uint8_t> blob, RingCount count,
                                      std::uint16_t world);

} // namespace weir::host
