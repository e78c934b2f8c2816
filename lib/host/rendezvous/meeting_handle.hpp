// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Where rank 0 listens, as bytes that a program hands to the other ranks in its own way: NCCL's
/// connect handles, MPI's modex. They hold a secret.
///
///      0  magic "WEIR", version 1, number of addresses, port
///      8  check: the first bytes of an HMAC-SHA256 of all other bytes, with the secret
///     16  secret
///     48  addresses, best first: 4 or 6, and as many bytes as such an address has
///         0 to the end

#include "host/rendezvous/rendezvous_point.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::host {

inline constexpr std::size_t kHandleBytes = 128;

using MeetingHandle = std::array<std::uint8_t, kHandleBytes>;

/// With as many of the endpoints as there is room for: four at least. They are numbers, and have
/// one port. Throws std::runtime_error when there is none that others can use.
MeetingHandle make_handle(const RendezvousPoint& point);

/// Throws std::invalid_argument, which says what is wrong with the bytes.
RendezvousPoint read_handle(std::string_view bytes);

} // namespace weir::host
