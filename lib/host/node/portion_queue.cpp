// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/portion_queue.hpp"

#include <algorithm>
#include <cassert>

namespace weir::host {

void PortionQueue::add(const Slice& slice) {
  const std::uint64_t per_segment =
      slice.collective == Collective::barrier
          ? 1
          : (slice.segment_bytes + portion_bytes_ - 1) / portion_bytes_;
  const std::uint64_t first = end_;
  end_ += slice.segments * per_segment;
  slices_.push_back({slice, per_segment, first, end_});
}

Portion PortionQueue::portion_of(const Entry& entry, std::uint64_t number) const {
  assert(entry.first <= number && number < entry.end);
  const std::uint64_t index = number - entry.first;
  const std::size_t offset = static_cast<std::size_t>(index % entry.per_segment) * portion_bytes_;
  return {.slice = &entry.slice,
          .segment = static_cast<std::uint16_t>(index / entry.per_segment),
          .offset = offset,
          .bytes = std::min(portion_bytes_, entry.slice.segment_bytes - offset)};
}

Portion PortionQueue::portion(std::uint64_t number) const {
  const auto entry = std::ranges::upper_bound(slices_, number, {}, &Entry::end);
  assert(entry != slices_.end());
  return portion_of(*entry, number);
}

void PortionQueue::finish_before(std::uint64_t number) {
  while (!slices_.empty() && slices_.front().end <= number) {
    slices_.pop_front();
    ++finished_;
  }
}

/// Segments have equal lengths, and the last portion of each may be shorter.
std::size_t PortionQueue::bytes_before(std::uint64_t number) const {
  if (slices_.empty() || number <= slices_.front().first) {
    return 0;
  }
  const Portion next = portion_of(slices_.front(), number);
  return next.segment * next.slice->segment_bytes + next.offset;
}

} // namespace weir::host
