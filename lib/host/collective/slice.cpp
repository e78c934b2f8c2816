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

/// Bytes of a share, in a call that has data.
std::size_t share_bytes(const Call& call) {
  return call.has_data() ? call.count * bytes_of_element(call.type) : 0;
}

/// Each rank's share is broadcast for itself if all get those of all. An operator folds whole
/// packets, and no packet of its may have bytes of two shares.
Segments segments_of(const Call& call) {
  if (call.row().gets == Amount::share_of_each) {
    return Segments::of_each_rank;
  }
  const bool has_shares = call.row().brings == Amount::share_of_each;
  return has_shares && call.type == kAsOperator ? Segments::for_each_rank : Segments::one;
}

std::uint16_t number_of(Segments kind, const Place& place) {
  return kind == Segments::one ? std::uint16_t{1} : place.world;
}

/// Of a segment with all ranks' shares.
bool has_all_shares(const Call& call) {
  return call.row().brings == Amount::share_of_each && segments_of(call) == Segments::one;
}

/// What this rank keeps of the result of a segment, if it keeps any.
Range kept_of(const Call& call, const Place& place, std::size_t rank_bytes) {
  if (call.row().receives == op::Who::root && place.rank != call.root) {
    return {};
  }
  const std::size_t before = has_all_shares(call) ? place.rank : 0;
  return {before * rank_bytes, (before + 1) * rank_bytes};
}

} // namespace

std::size_t kept_bytes(const Call& call, const Place& place) {
  const Range kept = kept_of(call, place, share_bytes(call));
  const bool keeps_each = segments_of(call) == Segments::of_each_rank;
  return (keeps_each ? place.world : 1) * (kept.end - kept.begin);
}

std::size_t share_begin(std::size_t bytes, std::size_t channel, std::size_t channels,
                        std::size_t cut) {
  return channel == channels ? bytes : bytes / channels * channel / cut * cut;
}

Slice slice_of(const Call& call, const Place& place, const CallBuffers& buffers,
               std::size_t channel, std::size_t channels) {
  const CallRow& row = call.row();
  const std::size_t rank_bytes = share_bytes(call);
  const Segments kind = segments_of(call);
  const std::size_t segment_bytes = has_all_shares(call) ? rank_bytes * place.world : rank_bytes;
  const Range share{share_begin(segment_bytes, channel, channels, buffers.cut),
                    share_begin(segment_bytes, channel + 1, channels, buffers.cut)};
  const Range kept = kept_of(call, place, rank_bytes);
  const Range ours{std::clamp(kept.begin, share.begin, share.end),
                   std::clamp(kept.end, share.begin, share.end)};
  const bool is_others = row.contributes == op::Who::root && place.rank != call.root;
  Slice slice{.call = call,
              .collective = row.collective,
              .type = call.type,
              .operation = call.operation,
              .rank = place.rank,
              .root = row.contributes == op::Who::root ? call.root : std::uint16_t{0},
              .kind = kind,
              .segments = number_of(kind, place),
              .segment_bytes = share.end - share.begin,
              .stride = buffers.stride != 0 ? buffers.stride : rank_bytes,
              .list = buffers.list,
              .list_begin = share.begin,
              .in_owner = is_others ? buffers.out_owner : buffers.in_owner,
              .out_owner = buffers.out_owner,
              .keep_begin = ours.begin - share.begin,
              .keep_end = ours.end - share.begin};
  assert(slice.keep_begin <= slice.keep_end && slice.keep_end <= slice.segment_bytes);
  if (const std::uint8_t* source = is_others ? buffers.out : buffers.in; source != nullptr) {
    slice.in = source + share.begin;
  }
  if (buffers.out != nullptr && ours.begin != ours.end) {
    slice.out = buffers.out + (ours.begin - kept.begin);
  }
  return slice;
}

std::span<const std::uint8_t> Slice::source(std::uint16_t segment, std::size_t offset,
                                            std::size_t bytes) const {
  assert(offset + bytes <= segment_bytes && segment < segments);
  if (list != nullptr) {
    return list->find(list_begin + offset, bytes);
  }
  if (bytes == 0) {
    return {};
  }
  const std::size_t before = kind == Segments::for_each_rank ? segment * stride : 0;
  const std::uint8_t* data = is_ours(segment) ? in + before : place_of(segment);
  return {data + offset, bytes};
}

std::span<std::uint8_t> Slice::target(std::uint16_t segment, std::size_t offset,
                                      std::size_t bytes) const {
  if (list != nullptr) {
    return list->find_target(list_begin + offset, bytes);
  }
  if (!keeps(segment) || offset < keep_begin || offset + bytes > keep_end) {
    return {};
  }
  return {place_of(segment) + (offset - keep_begin), bytes};
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
    std::memcpy(place_of(segment) + (begin - keep_begin), result.data() + (begin - offset),
                end - begin);
  }
}

} // namespace weir::host
