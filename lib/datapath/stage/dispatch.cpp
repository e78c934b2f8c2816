// SPDX-License-Identifier: BSD-3-Clause
#include "stage/dispatch.hpp"

#include "stage/graph_watch.hpp"

namespace weir::stage {

Dispatch::Dispatch(const ring::CurrentRings& current, const conn::MagicRule::Settings& magic_rule,
                   Forward& forward, WorkerSink& workers)
    : current_(current), magic_rule_(magic_rule), forward_(forward), workers_(workers) {}

void Dispatch::accept(frame::Frame& frame, frame::Instant now) {
  if (frame.pair == 0) {
    return forward_foreign(frame, now);
  }
  if (!current_->may_enter(frame.pair, frame.ingress)) {
    return forward_.drop<StageId::dispatch>(frame, DropReason::wrong_port, now);
  }
  passes<StageId::dispatch, StageId::queue>();
  workers_.to_worker(frame, current_->ring_group_of_pair(frame.pair), now);
}

void Dispatch::forward_foreign(frame::Frame& frame, frame::Instant now) {
  if (frame.packet.parsed != wire::Parsed::other) {
    if (const auto reason = magic_rule_.why_not_forwarded(frame, now.ms())) {
      return forward_.drop<StageId::dispatch>(frame, *reason, now);
    }
  }
  passes<StageId::dispatch, StageId::forward>();
  forward_.send(frame, frame::Departure::forwarded, now);
}

} // namespace weir::stage
