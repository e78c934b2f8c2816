// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace weir::host {

/// What rank 0 tells the others of the rings that it had a switch make: their ids, or why there are
/// none.
using AllocatedRings = std::variant<std::vector<std::uint32_t>, Error>;

/// For Rendezvous::gather.
Blob encode(const AllocatedRings& rings);

/// What rank 0 of `world` sent. Error (transport_failure) for bytes that are neither `rings` ids
/// nor an error.
AllocatedRings decode_allocated_rings(std::span<const std::uint8_t> blob, std::size_t rings,
                                      std::uint16_t world);

} // namespace weir::host
