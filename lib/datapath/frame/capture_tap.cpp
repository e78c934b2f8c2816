// SPDX-License-Identifier: BSD-3-Clause
#include "frame/capture_tap.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace weir::frame {
namespace {

bool has(std::uint64_t ports, std::uint16_t port) {
  return port != kNoPort && (ports >> port & 1) != 0;
}

/// Whether the frame was held, and the verdict on its arrival was another one.
bool was_given_up(DropReason reason) {
  switch (reason) {
  case DropReason::hello_displaced:
  case DropReason::hello_overtaken:
  case DropReason::hello_given_up:
  case DropReason::incarnation_flush:
  case DropReason::ring_reset:
  case DropReason::operator_disagrees:
  case DropReason::ring_withdrawn:
    return true;
  default:
    return false;
  }
}

/// Whether this is the verdict on a frame that has just come in. There is one for each.
bool is_arrival(const Frame& frame, const TraceRecord& record) {
  constexpr std::uint64_t hellos = 0; // their message; they have arrived before it begins
  switch (record.event) {
  case TraceEvent::forwarded:
  case TraceEvent::waits:
  case TraceEvent::begins:
  case TraceEvent::repeated:
    return true;
  case TraceEvent::held:
  case TraceEvent::completed:
    return record.message != hellos;
  case TraceEvent::dropped:
    return record.egress == 0 && frame.departure != Departure::consumed &&
           !was_given_up(record.drop);
  default:
    return false;
  }
}

} // namespace

std::uint32_t CapturedFrame::packets() const {
  const int sides = (inbound == kNoPort ? 0 : 1) + std::popcount(outbound);
  return static_cast<std::uint32_t>(std::max(sides, 1));
}

CaptureTap::CaptureTap(CaptureFilter filter, std::size_t frames, std::uint32_t most_bytes)
    : filter_(std::move(filter)), most_bytes_(most_bytes), frames_(frames),
      bytes_(frames * most_bytes) {}

std::span<std::uint8_t> CaptureTap::room_of(std::uint64_t number) {
  return {bytes_.data() + number % frames_.size() * most_bytes_, most_bytes_};
}

/// Whether one of the filter's ports has to do with a frame that was dropped between its ports.
bool CaptureTap::concerns(const Frame& frame, const TraceRecord& record) const {
  if (record.egress != 0) {
    return (record.egress & filter_.ports) != 0;
  }
  return frame.ingress == kNoPort ? filter_.ports == UINT64_MAX : has(filter_.ports, frame.ingress);
}

std::optional<CapturedFrame> CaptureTap::places_of(const Frame& frame,
                                                   const TraceRecord& record) const {
  CapturedFrame captured{.record = record, .kept = std::min(frame.length, most_bytes_)};
  const bool arrives = is_arrival(frame, record);
  if (record.event == TraceEvent::dropped && !arrives) {
    return concerns(frame, record) ? std::optional(captured) : std::nullopt;
  }
  if (arrives && has(filter_.ports, frame.ingress)) {
    captured.inbound = frame.ingress;
  }
  captured.outbound = record.egress & filter_.ports;
  const bool is_nowhere = captured.inbound == kNoPort && captured.outbound == 0;
  return is_nowhere ? std::nullopt : std::optional(captured);
}

void CaptureTap::take(const Frame& frame, const TraceRecord& record) {
  if (filter_.takes && !filter_.takes(frame, record)) {
    return;
  }
  if (const auto captured = places_of(frame, record)) {
    push(*captured, frame.data);
  }
}

void CaptureTap::push(const CapturedFrame& captured, const std::uint8_t* bytes) {
  const std::uint64_t number = tail_.load(std::memory_order_relaxed);
  if (number - head_.load(std::memory_order_acquire) == frames_.size()) {
    left_out_ += captured.packets();
    return;
  }
  assert(captured.kept <= most_bytes_);
  frames_[number % frames_.size()] = captured;
  std::copy_n(bytes, captured.kept, room_of(number).begin());
  tail_.store(number + 1, std::memory_order_release);
}

} // namespace weir::frame
