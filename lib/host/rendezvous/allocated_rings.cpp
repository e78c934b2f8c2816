// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/allocated_rings.hpp"

#include "host/base/control_note.hpp"

namespace weir::host {
namespace {

// First byte of the blob.
constexpr std::uint8_t kIds = 0;
constexpr std::uint8_t kRefusal = 1;

} // namespace

Blob encode(const AllocatedRings& rings) {
  if (const auto* const refusal = std::get_if<Error>(&rings)) {
    Blob blob = encode(*refusal);
    blob.insert(blob.begin(), kRefusal);
    return blob;
  }
  Blob blob{kIds};
  for (const std::uint32_t ring : std::get<std::vector<std::uint32_t>>(rings)) {
    const wire::be32 id(ring);
    const auto bytes = bytes_of(id);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

AllocatedRings decode_allocated_rings(std::span<const std::uint8_t> blob, std::size_t rings,
                                      std::uint16_t world) {
  if (!blob.empty() && blob[0] == kRefusal) {
    return decode_error(blob.subspan(1), {0, world});
  }
  if (blob.size() != 1 + rings * sizeof(wire::be32) || blob[0] != kIds) {
    return Error(ErrorCode::transport_failure, 0, "rank 0 sent rings that cannot be read");
  }
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 1; at < blob.size(); at += sizeof(wire::be32)) {
    ids.push_back(wire::view_as<wire::be32>(blob.data() + at).get());
  }
  return ids;
}

} // namespace weir::host
