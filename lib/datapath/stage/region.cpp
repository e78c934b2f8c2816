// SPDX-License-Identifier: BSD-3-Clause
#include "stage/region.hpp"

#include "conn/classifier.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

#include <utility>

namespace weir::stage {

Region::Region(Pipeline& pipeline)
    : schedule_(pipeline.state.schedule), forward_(pipeline.state.forward), table_(*this) {}

void Region::accept(frame::Frame& frame, frame::Instant now) {
  if (frame.packet.parsed == wire::Parsed::malformed) {
    return drop(frame, conn::reason_for(frame.packet.defect), now);
  }
  schedule_.hurry(table_.accept(frame, now));
}

void Region::adopt(std::unique_ptr<region::Region> made, frame::Instant now) {
  table_.adopt(std::move(made)).await_hellos(now);
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

void Region::send(frame::Frame& frame, std::uint16_t port, frame::Instant now) {
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
