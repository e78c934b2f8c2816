// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// What became of a rank's hellos, by ring: none where a switch has answered, otherwise why not.
using HelloOutcomes = std::vector<std::optional<Error>>;

/// For Rendezvous::gather. Long texts are cut where there are many rings.
Blob encode(const HelloOutcomes& outcomes);

/// What a rank sent of `rings` rings. For bytes that cannot be read, an Error (transport_failure)
/// about the rank for each ring.
HelloOutcomes decode_hello_outcomes(std::span<const std::uint8_t> blob, std::size_t rings,
                                    const Sender& sender);

/// A ring whose hello a rank has no answer to.
struct MissingRing {
  std::size_t place = 0; // among the group's rings
  Error why;             // of the ranks' errors the gravest
};

/// What the ranks make of all outcomes, the same on each.
struct RingChoice {
  std::vector<std::size_t> kept; // places of the rings that have answered all ranks; they ascend
  std::vector<MissingRing> missing;
};

/// `outcomes` by rank, each of as many rings.
RingChoice choose_rings(const std::vector<HelloOutcomes>& outcomes);

/// Whether the hosts can reduce among themselves after this error: no switch aggregates, or none
/// answers.
bool hosts_may_reduce(ErrorCode code);

/// "ring 2 is left out: …; the group goes on with ring 1". Empty when all are kept. `rings` are
/// the group's ids.
std::string describe_missing(const RingChoice& choice, std::span<const std::uint32_t> rings);

/// Why the group cannot have all of its rings. Of a group with one ring that ring's error;
/// otherwise it names those that are missing.
Error shortage(const RingChoice& choice, std::span<const std::uint32_t> rings);

} // namespace weir::host
