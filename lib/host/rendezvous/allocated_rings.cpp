// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/allocated_rings.hpp"

#include "host/base/control_note.hpp"

namespace weir::host {
namespace {

// First byte of the blob.
constexpr std::uint8_t kIds = 0;
constexpr std::uint8_t kRefusal = 1;
// Behind it of kIds: their number, the ids, and the shortage.
constexpr std::size_t kIdsBegin = 1 + sizeof(wire::be32);

void append(Blob& blob, std::uint32_t number) {
  const wire::be32 value(number);
  const auto bytes = bytes_of(value);
  blob.insert(blob.end(), bytes.begin(), bytes.end());
}

} // namespace

Blob encode(const AllocatedRings& rings) {
  if (const auto* const refusal = std::get_if<Error>(&rings)) {
    Blob blob = encode(*refusal);
    blob.insert(blob.begin(), kRefusal);
    return blob;
  }
  const auto& made = std::get<MadeRings>(rings);
  Blob blob{kIds};
  append(blob, static_cast<std::uint32_t>(made.ids.size()));
  for (const std::uint32_t ring : made.ids) {
    append(blob, ring);
  }
  blob.insert(blob.end(), made.shortage.begin(), made.shortage.end());
  return blob;
}

AllocatedRings decode_allocated_rings(std::span<const std::uint8_t> blob, RingCount count,
                                      std::uint16_t world) {
  if (!blob.empty() && blob[0] == kRefusal) {
    return decode_error(blob.subspan(1), {0, world});
  }
  const std::size_t ids =
      blob.size() < kIdsBegin ? 0 : wire::view_as<wire::be32>(blob.data() + 1).get();
  const std::size_t end = kIdsBegin + ids * sizeof(wire::be32);
  if (ids < count.least || ids > count.most || blob[0] != kIds || blob.size() < end) {
    return Error(ErrorCode::transport_failure, 0, "rank 0 sent rings that cannot be read");
  }
  MadeRings made{.ids = {},
                 .shortage = {blob.begin() + static_cast<std::ptrdiff_t>(end), blob.end()}};
  for (std::size_t at = kIdsBegin; at < end; at += sizeof(wire::be32)) {
    made.ids.push_back(wire::view_as<wire::be32>(blob.data() + at).get());
  }
  return made;
}

} // namespace weir::host
