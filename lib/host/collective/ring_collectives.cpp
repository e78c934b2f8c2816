// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/ring_collectives.hpp"

#include <algorithm>

namespace weir::host {
namespace {

/// An all-reduce of as many bytes or elements.
Slice all_reduce_of(const Slice& slice, const std::uint8_t* in, std::uint8_t* out,
                    std::size_t bytes) {
  Slice reduction = slice;
  reduction.collective = Collective::all_reduce;
  reduction.segments = 1;
  reduction.segment_bytes = reduction.keep_end = bytes;
  reduction.keep_begin = 0;
  reduction.in = in;
  reduction.out = out;
  return reduction;
}

} // namespace

void RingCollectives::begin(const Slice& slice) {
  slice_ = slice;
  whole_.clear();
  if (slice.collective == Collective::all_reduce) {
    begin_reduction();
  } else {
    begin_gathering();
  }
  deliver_if_done();
}

void RingCollectives::begin_reduction() {
  if (!slice_.keeps_all()) {
    whole_.resize(slice_.bytes());
  }
  std::uint8_t* const out = slice_.keeps_all() ? slice_.out : whole_.data();
  reducer_.begin(all_reduce_of(slice_, slice_.in, out, slice_.bytes()));
}

void RingCollectives::begin_gathering() {
  whole_.resize(std::max<std::size_t>(slice_.bytes(), 1));
  for (std::uint16_t segment = 0; segment < slice_.segments; ++segment) {
    if (slice_.root_of(segment) == slice_.rank) {
      std::ranges::copy(slice_.source(segment, 0, slice_.segment_bytes),
                        whole_.begin() +
                            static_cast<std::ptrdiff_t>(segment * slice_.segment_bytes));
    }
  }
  Slice bytes = all_reduce_of(slice_, whole_.data(), whole_.data(), whole_.size());
  bytes.type = DataType::u8;
  bytes.operation = Operation::bitwise_or;
  reducer_.begin(bytes);
}

void RingCollectives::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  reducer_.accept(immediate, message);
  deliver_if_done();
}

void RingCollectives::complete() {
  reducer_.complete();
  deliver_if_done();
}

void RingCollectives::deliver_if_done() {
  if (whole_.empty() || !reducer_.is_idle()) {
    return;
  }
  for (std::uint16_t segment = 0; segment < slice_.segments; ++segment) {
    slice_.store(segment, 0,
                 std::span(whole_).subspan(segment * slice_.segment_bytes, slice_.segment_bytes));
  }
  whole_.clear();
}

} // namespace weir::host
