// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "host/collective/tensor_list.hpp"
#include "host/transport/message.hpp"
#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

inline constexpr std::size_t kShareAlignment = 8; // bytes

/// A rank's place in its ring.
struct Place {
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
};

/// A call's tensors: one buffer for each direction, or a list for an all-reduce of several.
struct CallBuffers {
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;
  const TensorList* list = nullptr; // then in and out are not used
  Owner in_owner = Owner::caller;
  Owner out_owner = Owner::caller;
  // In an all-gather's `out`: bytes from one rank's share to the next one's. 0: they touch.
  std::size_t stride = 0;
  // Bytes: where channels' shares begin is a multiple of it. Of an operator, a message's data.
  std::size_t cut = kShareAlignment;
};

/// Whose a slice's segments are.
enum class Segments : std::uint8_t {
  one,
  of_each_rank,  // segment k is rank k's data, and all keep all: an all-gather
  for_each_rank, // of all ranks' data the part that rank k keeps: a reduce-scatter by an operator
};

/// One channel's share of a call, as messages carry it: segments of equal length. A message has
/// bytes of one segment, so where packets are folded as wholes each rank's share is a tensor of its
/// own.
struct Slice {
  Call call;                                      // for errors, and for rings of hosts
  Collective collective = Collective::all_reduce; // of the messages
  DataType type = DataType::f32;
  Operation operation = Operation::sum;
  std::uint16_t rank = 0; // ours
  std::uint16_t root = 0; // of a broadcast with one segment; segment k is rank k's otherwise
  Segments kind = Segments::one;
  std::uint16_t segments = 1;    // their number
  std::size_t segment_bytes = 0; // whole elements
  std::size_t stride = 0;        // bytes from one rank's segment to the next one's, where all lie
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;      // may be `in`; the first byte that is kept goes there
  const TensorList* list = nullptr; // instead of in and out, and kept whole
  std::size_t list_begin = 0;       // the segment's place in it
  Owner in_owner = Owner::caller;   // or the list's
  Owner out_owner = Owner::caller;
  // The bytes of a segment whose result is kept: all of each segment of each_rank, and of ours.
  std::size_t keep_begin = 0;
  std::size_t keep_end = 0;

  std::size_t bytes() const { return segments * segment_bytes; }

  /// Whether the bytes lie in one place. source() gives only such.
  bool is_in_one_place(std::size_t offset, std::size_t bytes) const {
    return list == nullptr || bytes == 0 || !list->find(list_begin + offset, bytes).empty();
  }

  /// Where a part's result goes, if it goes to one place and all of it is kept. Empty otherwise.
  std::span<std::uint8_t> target(std::uint16_t segment, std::size_t offset,
                                 std::size_t bytes) const {
    if (list != nullptr) {
      return list->find_target(list_begin + offset, bytes);
    }
    if (!keeps(segment) || offset < keep_begin || offset + bytes > keep_end) {
      return {};
    }
    return {out + place_out(segment) + (offset - keep_begin), bytes};
  }

  /// Whether a segment's data is in `in`; else its place in `out`.
  bool is_ours(std::uint16_t segment) const {
    return kind != Segments::of_each_rank || segment == rank;
  }

  /// Where our data for the segment begin in `in`.
  std::size_t place_in(std::uint16_t segment) const {
    return kind == Segments::for_each_rank ? segment * stride : 0;
  }

  /// Where the segment's result begins in `out`.
  std::size_t place_out(std::uint16_t segment) const {
    return kind == Segments::of_each_rank ? segment * stride : 0;
  }

  /// Whether any of the segment's result is kept.
  bool keeps(std::uint16_t segment) const {
    return kind != Segments::for_each_rank || segment == rank;
  }

  /// One segment of so many bytes is left, and all of it is kept.
  void become_one_segment(std::size_t bytes) {
    kind = Segments::one;
    segments = 1;
    segment_bytes = bytes;
    keep_begin = 0;
    keep_end = bytes;
  }

  bool keeps_all() const { return keep_begin == 0 && keep_end == segment_bytes; }

  /// Whose data the segment's result is; in a broadcast alone.
  std::uint16_t root_of(std::uint16_t segment) const {
    return kind == Segments::of_each_rank ? segment : root;
  }

  /// Our data for a part of a segment. What is not ours in a broadcast is never looked at.
  std::span<const std::uint8_t> source(std::uint16_t segment, std::size_t offset,
                                       std::size_t bytes) const;

  /// Whose memory source() is in.
  Owner source_owner(std::uint16_t segment) const {
    return is_ours(segment) ? in_owner : out_owner;
  }

  /// Stores what it keeps of a part's result.
  void store(std::uint16_t segment, std::size_t offset, std::span<const std::uint8_t> result) const;
};

/// Whether each channel carries a part of every segment. Otherwise one carries all of them.
bool cuts_segments(const Call& call, const Place& place);

/// Bytes of the result that a rank keeps.
std::size_t kept_bytes(const Call& call, const Place& place);

/// Where the share of channel `channel` of `channels` begins in a segment of so many bytes, between
/// elements. Of the channel after the last: the segment's end.
std::size_t share_begin(std::size_t bytes, std::size_t channel, std::size_t channels,
                        std::size_t cut = kShareAlignment);

/// A segment of at most so many bytes is not cut: more messages would cost more than they save. All
/// ranks must have the same number.
inline constexpr std::size_t kUncutBytes = 8192;

/// Which part of a call is meant.
struct Share {
  std::size_t channel = 0;
  std::size_t channels = 1;
  std::uint64_t exchange = 0; // before this one in the group. Channels take uncut segments in turn
};

/// A channel's share. Segments are cut between elements. The ranks that do not keep a reduction's
/// result may have no `out`, and only the root of a broadcast needs an `in`.
Slice slice_of(const Call& call, const Place& place, const CallBuffers& buffers,
               const Share& share);

} // namespace weir::host
