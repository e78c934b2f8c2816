// SPDX-License-Identifier: BSD-3-Clause
#include "stage/region.hpp"

#include "conn/classifier.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

#include <utility>

namespace weir::stage {

Region::Region(Pipeline& pipeline)
    : schedule_(pipeline.state.schedule), forward_(pipeline.state.forward),
      lines_(pipeline.state.lines), queue_(pipeline.queue), table_(*this) {}

void Region::accept(frame::Frame& frame, frame::Instant now) {
  if (frame.packet.parsed == wire::Parsed::malformed) {
    return drop(frame, conn::reason_for(frame.packet.defect), now);
  }
  schedule_.hurry(table_.accept(frame, now));
}

const region::Region* Region::region_of(const frame::Frame& frame) const {
  return frame.packet.parsed == wire::Parsed::malformed ? nullptr : table_.region_of(frame);
}

void Region::adopt(std::unique_ptr<region::Region> made, std::uint16_t tenant, frame::Instant now) {
  region::Region& region = table_.adopt(std::move(made));
  queue_.follow_region(region.line(), tenant);
  region.await_hellos(now);
  schedule_.hurry(table_.next_timer());
}

void Region::withdraw(region::Region& region, frame::Instant now) {
  region.end(region::End::withdrawn, now);
  schedule_.hurry(table_.next_timer());
}

void Region::poll(frame::Instant now) {
  table_.poll(now);
  schedule_.hurry(table_.next_timer());
}

frame::Frame* Region::originate(std::uint32_t bytes) {
  return forward_.originate(bytes);
}

/// A copy costs the worker about as much as a frame that comes.
void Region::send(frame::Frame& frame, const region::Region& from, std::uint16_t port,
                  frame::Instant now) {
  lines_.charge_work(lines_.line_of_region(from.line()),
                     (frame.length + FairQueue::kFrameCost) / FairQueue::kBytesPerNs);
  passes<StageId::region, StageId::forward>();
  forward_.send(frame, frame::Departure::forwarded, now, Forward::kForwarded, port);
}

void Region::consume(frame::Frame& frame) {
  forward_.consume(frame);
}

void Region::drop(frame::Frame& frame, DropReason reason, frame::Instant now) {
  forward_.drop<StageId::region>(frame, reason, now);
}

} // namespace weir::stage
