// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/slice.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weir::host {
namespace {

/// Bytes from `begin` to before `end`.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A call as it is cut for any channel.
struct Parts {
  Segments kind = Segments::one;
  std::uint16_t segments = 1;
  std::size_t rank_bytes = 0;    // of one rank's share
  std::size_t segment_bytes = 0; // a share, or all ranks' shares in one
  Range kept;                    // by this rank, of a segment of which it keeps something
};

/// Each rank's share is broadcast for itself if all get those of all. An operator folds whole
/// packets, and no packet of its may have bytes of two shares.
Segments segments_of(const CallRow& row, DataType type) {
  if (row.gets == Amount::share_of_each) {
    return Segments::of_each_rank;
  }
  return row.brings == Amount::share_of_each && type == kAsOperator ? Segments::for_each_rank
                                                                    : Segments::one;
}

Parts parts_of(const CallRow& row, const Call& call, const Place& place) {
  const std::size_t share =
      row.brings == Amount::nothing ? 0 : call.count * bytes_of_element(call.type);
  Parts parts{.kind = segments_of(row, call.type),
              .rank_bytes = share,
              .segment_bytes = share,
              .kept = {0, share}};
  if (parts.kind != Segments::one) {
    parts.segments = place.world;
  } else if (row.brings == Amount::share_of_each) {
    parts.segment_bytes = share * place.world;
    parts.kept = {place.rank * share, (place.rank + std::size_t{1}) * share};
  }
  if (row.receives == op::Who::root && place.rank != call.root) {
    parts.kept = {};
  }
  return parts;
}

/// The part of a segment that a channel carries.
Range part_of(std::size_t bytes, const Share& share, std::size_t cut) {
  const auto& [channel, channels, exchange] = share;
  if (channels == 1) {
    return {0, bytes};
  }
  if (bytes <= kUncutBytes) {
    return {0, exchange % channels == channel ? bytes : 0};
  }
  return {share_begin(bytes, channel, channels, cut),
          share_begin(bytes, channel + 1, channels, cut)};
}

} // namespace

std::size_t kept_bytes(const Call& call, const Place& place) {
  const Parts parts = parts_of(call.row(), call, place);
  return (parts.kind == Segments::of_each_rank ? place.world : 1) *
         (parts.kept.end - parts.kept.begin);
}

std::size_t share_begin(std::size_t bytes, std::size_t channel, std::size_t channels,
                        std::size_t cut) {
  return channel == channels ? bytes : bytes / channels * channel / cut * cut;
}

Slice slice_of(const Call& call, const Place& place, const CallBuffers& buffers,
               const Share& share) {
  const CallRow& row = call.row();
  const Parts parts = parts_of(row, call, place);
  const Range part = part_of(parts.segment_bytes, share, buffers.cut);
  const Range& kept = parts.kept;
  const Range ours{std::clamp(kept.begin, part.begin, part.end),
                   std::clamp(kept.end, part.begin, part.end)};
  const bool is_others = row.contributes == op::Who::root && place.rank != call.root;
  Slice slice{.call = call,
              .collective = row.collective,
              .type = call.type,
              .operation = call.operation,
              .rank = place.rank,
              .root = row.contributes == op::Who::root ? call.root : std::uint16_t{0},
              .kind = parts.kind,
              .segments = parts.segments,
              .segment_bytes = part.end - part.begin,
              .stride = buffers.stride != 0 ? buffers.stride : parts.rank_bytes,
              .list = buffers.list,
              .list_begin = part.begin,
              .in_owner = is_others ? buffers.out_owner : buffers.in_owner,
              .out_owner = buffers.out_owner,
              .keep_begin = ours.begin - part.begin,
              .keep_end = ours.end - part.begin};
  assert(slice.keep_begin <= slice.keep_end && slice.keep_end <= slice.segment_bytes);
  if (const std::uint8_t* source = is_others ? buffers.out : buffers.in; source != nullptr) {
    slice.in = source + part.begin;
  }
  if (buffers.out != nullptr && ours.begin != ours.end) {
    slice.out = buffers.out + (ours.begin - kept.begin);
  }
  return slice;
}

bool cuts_segments(const Call& call, const Place& place) {
  const Share second_of_two{.channel = 1, .channels = 2}; // whose turn it is not
  return slice_of(call, place, {}, second_of_two).segment_bytes != 0;
}

std::span<const std::uint8_t> Slice::source(std::uint16_t segment, std::size_t offset,
                                            std::size_t bytes) const {
  assert(offset + bytes <= segment_bytes && segment < segments);
  if (list != nullptr) {
    return list->find(list_begin + offset, bytes);
  }
  const std::uint8_t* data = is_ours(segment) ? in + place_in(segment) : out + place_out(segment);
  return bytes == 0 ? std::span<const std::uint8_t>() : std::span(data + offset, bytes);
}

void Slice::store(std::uint16_t segment, std::size_t offset,
                  std::span<const std::uint8_t> result) const {
  if (list != nullptr) {
    list->scatter(list_begin + offset, result);
    return;
  }
  assert(offset + result.size() <= segment_bytes && segment < segments);
  const std::size_t begin = std::clamp(offset, keep_begin, keep_end);
  const std::size_t end = std::clamp(offset + result.size(), keep_begin, keep_end);
  if (begin != end && keeps(segment)) {
    std::memcpy(out + place_out(segment) + (begin - keep_begin), result.data() + (begin - offset),
                end - begin);
  }
}

} // namespace weir::host
