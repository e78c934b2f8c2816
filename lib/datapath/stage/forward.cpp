// SPDX-License-Identifier: BSD-3-Clause
#include "stage/forward.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::stage {

Forward::Forward(const l2::Bridge& bridge, std::vector<std::uint32_t> max_frame_bytes,
                 FrameSink& sink, frame::FrameCounters& counters, frame::Trace& trace)
    : bridge_(bridge), max_frame_bytes_(std::move(max_frame_bytes)),
      always_fits_(*std::ranges::min_element(max_frame_bytes_)), sink_(sink), counters_(counters),
      trace_(trace) {}

void Forward::set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes) {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  max_frame_bytes_.resize(std::max<std::size_t>(max_frame_bytes_.size(), port + 1u), none);
  max_frame_bytes_[port] = bytes.value_or(none);
  always_fits_ = *std::ranges::min_element(max_frame_bytes_);
}

[[gnu::always_inline]] inline void Forward::send_by(l2::PortSet wanted, frame::Frame& frame,
                                                    frame::Departure departure, frame::Instant now,
                                                    const frame::TraceRecord& record) {
  frame.departure = departure;
  const l2::PortSet ports = that_take(wanted, frame.length);
  if (ports == 0) {
    return drop<StageId::forward>(frame, DropReason::too_long, now);
  }
  note(frame, now, [&] {
    frame::TraceRecord sent = record;
    sent.egress = ports;
    return sent;
  });
  if (departure == frame::Departure::consumed) {
    frame.traffic = frame::TrafficClass::ring;
  }
  passes<StageId::forward, StageId::transmit>();
  sink_.transmit(frame, ports);
}

void Forward::send(frame::Frame& frame, frame::Departure departure, frame::Instant now,
                   const frame::TraceRecord& record, std::optional<std::uint16_t> port) {
  const l2::Egress egress = port ? l2::Bridge::egress_by(*port, frame.ingress)
                                 : bridge_.egress_of(frame.bytes(), frame.ingress, now.ms());
  if (egress.ports == 0) {
    frame.departure = departure;
    return drop<StageId::forward>(frame, egress.drop, now);
  }
  send_by(egress.ports, frame, departure, now, record);
}

void Forward::send_by(l2::PortSet ports, frame::Frame& frame, frame::Instant now) {
  send_by(ports, frame, frame::Departure::forwarded, now, kForwarded);
}

void Forward::transmit(std::span<frame::Frame* const> results,
                       std::span<const std::optional<std::uint16_t>> ports) {
  for (std::size_t place = 0; place < results.size(); ++place) {
    passes<StageId::forward, StageId::transmit>();
  }
  sink_.transmit_results(results, ports);
}

void Forward::end(frame::Frame& frame, StageId stage, DropReason reason, frame::Instant now) {
  counters_.count(reason);
  note(frame, now, [&] {
    return frame::TraceRecord{
        .event = frame::TraceEvent::dropped, .drop = reason, .dropped_by = number_of(stage)};
  });
  sink_.release(frame);
}

void Forward::write_down(const frame::Frame& frame, frame::TraceRecord record, frame::Instant now) {
  record.now_ns = now.ns;
  record.qp = frame.packet.destination_qp;
  record.psn = frame.packet.psn;
  record.length = frame.length;
  record.ingress = frame.ingress;
  record.parsed = frame.packet.parsed;
  trace_.write_down(frame, record);
}

l2::PortSet Forward::that_take(l2::PortSet ports, std::uint32_t frame_bytes) const {
  if (frame_bytes <= always_fits_) {
    return ports;
  }
  l2::for_each_port(ports, [&](std::uint16_t port) {
    if (frame_bytes > max_frame_bytes_[port]) {
      ports &= ~(l2::PortSet{1} << port);
    }
  });
  return ports;
}

} // namespace weir::stage
