// SPDX-License-Identifier: BSD-3-Clause
#include "stage/climb.hpp"

#include "recovery/flow.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"
#include "wire/crc32.hpp"
#include "wire/operator_table.hpp"
#include "wire/parse.hpp"

namespace weir::stage {

namespace {

constexpr std::uint64_t kUntoldInterval = 100'000'000; // ns

std::uint64_t interval_of(const conn::WaitingHello& hello) {
  const std::uint8_t ack_timeout = wire::find_ina_header(*hello.frame)->ack_timeout;
  return ack_timeout == 0 ? kUntoldInterval : recovery::keep_alive_interval(ack_timeout);
}

recovery::ResultTemplate::AckRequest ack_request_of(const frame::Frame& hello) {
  using AckRequest = recovery::ResultTemplate::AckRequest;
  const auto& bth = wire::view_as<wire::Bth>(hello.data + hello.packet.bth_offset);
  return (bth.ack_request & wire::kAckRequest) != 0 ? AckRequest::yes : AckRequest::no;
}

} // namespace

Climb::Climb(Pipeline& pipeline)
    : current_(pipeline.state.current), incarnations_(pipeline.state.incarnations),
      rings_(pipeline.state.rings), forward_(pipeline.state.forward) {}

void Climb::send(std::uint16_t ring, frame::Instant now) {
  send(ring, *incarnations_.climbing(ring), now);
}

std::uint64_t Climb::send_again(std::uint16_t ring, frame::Instant now) {
  conn::WaitingHello* last = incarnations_.climbing(ring);
  const std::uint64_t patience = current_->rings()[ring].spec().patience_ms * frame::kNsPerMs;
  if (last == nullptr || now.ns - last->arrived_ns > patience) {
    return Schedule::kNever;
  }
  if (last->climbed_ns == 0 || now.ns >= last->climbed_ns + interval_of(*last)) {
    send(ring, *last, now);
  }
  return last->climbed_ns + interval_of(*last);
}

void Climb::send(std::uint16_t ring, conn::WaitingHello& last, frame::Instant now) {
  const frame::Frame& hello = *last.frame;
  const auto child = static_cast<std::uint16_t>(current_->rings()[ring].children() - 1u);
  const recovery::ResultTemplate headers(hello, *wire::find_ina_header(hello));
  const wire::OperatorTable operators = incarnations_.climbing_operators(ring, last);
  const std::span<const std::uint8_t> table = operators.bytes();
  last.climbed_ns = now.ns;
  frame::Frame* climbing =
      forward_.originate(static_cast<std::uint32_t>(headers.most_bytes(table.size())));
  if (climbing == nullptr) {
    return;
  }
  recovery::MessageHeaders own;
  recovery::keep_headers(own, hello);
  const wire::MessageShape shape = conn::shape_of(*wire::find_ina_header(hello));
  headers.write(*climbing,
                {.headers = own,
                 .shape = shape,
                 .packets = 1,
                 .psn = hello.packet.psn,
                 .stamp = incarnations_.stamp_for({ring, child}),
                 .data = table,
                 .data_crc = wire::crc32(0, table)},
                ack_request_of(hello));
  ++rings_[ring]->counters.climbs;
  passes<StageId::climb, StageId::forward>();
  forward_.send(*climbing, frame::Departure::consumed, now,
                {.ring = ring, .child = child, .event = frame::TraceEvent::climbs},
                incarnations_.ports().receiver_port_of({ring, child}));
}

} // namespace weir::stage
