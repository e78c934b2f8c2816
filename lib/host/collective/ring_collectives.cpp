// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/ring_collectives.hpp"

#include <algorithm>

namespace weir::host {
namespace {

/// An all-reduce of as many bytes or elements. Memory that is not the slice's is the library's.
Slice all_reduce_of(const Slice& slice, const std::uint8_t* in, std::uint8_t* out,
                    std::size_t bytes) {
  Slice reduction = slice;
  reduction.collective = Collective::all_reduce;
  reduction.become_one_segment(bytes);
  reduction.in_owner = in == slice.in ? slice.in_owner : Owner::library;
  reduction.out_owner = out == slice.out ? slice.out_owner : Owner::library;
  reduction.in = in;
  reduction.out = out;
  reduction.list = nullptr;
  return reduction;
}

} // namespace

void RingCollectives::begin(const Slice& slice) {
  slices_.push_back(slice);
  if (slices_.size() == 1) {
    begin_first();
    go_on();
  }
}

void RingCollectives::begin_first() {
  whole_.clear();
  if (slices_.front().collective == Collective::all_reduce) {
    begin_reduction(slices_.front());
  } else {
    begin_gathering(slices_.front());
  }
}

void RingCollectives::begin_reduction(const Slice& slice) {
  const bool has_place = slice.keeps_all() && slice.list == nullptr;
  if (!has_place) {
    whole_.resize(slice.bytes());
  }
  if (slice.list != nullptr) {
    slice.list->gather(slice.list_begin, whole_);
  }
  const std::uint8_t* const in = slice.list != nullptr ? whole_.data() : slice.in;
  std::uint8_t* const out = has_place ? slice.out : whole_.data();
  reducer_.begin(all_reduce_of(slice, in, out, slice.bytes()));
}

void RingCollectives::begin_gathering(const Slice& slice) {
  whole_.resize(std::max<std::size_t>(slice.bytes(), 1));
  for (std::uint16_t segment = 0; segment < slice.segments; ++segment) {
    if (slice.root_of(segment) == slice.rank) {
      std::ranges::copy(slice.source(segment, 0, slice.segment_bytes),
                        whole_.begin() +
                            static_cast<std::ptrdiff_t>(segment * slice.segment_bytes));
    }
  }
  Slice bytes = all_reduce_of(slice, whole_.data(), whole_.data(), whole_.size());
  bytes.type = DataType::u8;
  bytes.operation = Operation::bitwise_or;
  reducer_.begin(bytes);
}

Arrival RingCollectives::accept(const IncomingMessage& message) {
  reducer_.accept(message);
  go_on();
  return Arrival::taken;
}

void RingCollectives::complete() {
  reducer_.complete();
  go_on();
}

/// Ends the first slice if it is done, and begins the next.
void RingCollectives::go_on() {
  while (!slices_.empty() && reducer_.is_idle()) {
    deliver(slices_.front());
    slices_.pop_front();
    ++finished_;
    if (!slices_.empty()) {
      begin_first();
    }
  }
}

void RingCollectives::deliver(const Slice& slice) {
  if (whole_.empty()) {
    return; // it is in its place
  }
  for (std::uint16_t segment = 0; segment < slice.segments; ++segment) {
    slice.store(segment, 0,
                std::span(whole_).subspan(segment * slice.segment_bytes, slice.segment_bytes));
  }
}

} // namespace weir::host
