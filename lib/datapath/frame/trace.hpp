// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "weir/reasons.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::frame {

/// What the switch did with a frame last.
enum class TraceEvent : std::uint8_t {
  forwarded,
  waits,  // a hello that waits for those of other ranks
  climbs, // a hello for the switch above, which stands for those of all children
  begins, // a hello that nobody waits for any more: the ring's incarnation begins
  held,
  completed,
  partial_sum, // of the children, for the switch above
  total,       // the sum of all ranks, from the switch above
  result,
  repeated, // a repeat, which the cached result answers
  cached_result,
  acknowledged, // the switch has acknowledged in a receiver's name
  asked,        // the switch has asked a sender to repeat: NAK or RNR NAK
  told,         // the switch has told a sender that its run is over
  resent,       // a result that left before
  dropped,
};

inline constexpr std::size_t kTraceEvents = 16;

/// The number of the stage that acted on a frame. What stages there are, only their callers know.
enum class StageNumber : std::uint8_t {};

struct TraceRecord {
  std::uint64_t now_ns = 0;
  std::uint64_t message = 0; // for ring events
  std::uint64_t egress = 0;  // set of ports, for events that send
  std::uint32_t qp = 0;
  std::uint32_t psn = 0;
  std::uint32_t packet = 0; // k
  std::uint32_t length = 0;
  std::uint16_t ingress = 0;
  std::uint16_t ring = 0;
  std::uint16_t child = 0;
  wire::Parsed parsed{};
  TraceEvent event{};
  DropReason drop{};        // for dropped
  StageNumber dropped_by{}; // likewise
};

std::string_view name_of(TraceEvent event);

/// Whether the record names a ring and a child.
constexpr bool names_a_ring(TraceEvent event) {
  return event != TraceEvent::forwarded && event != TraceEvent::dropped;
}

/// Whether the record names a message and a packet as well.
constexpr bool names_a_slot(TraceEvent event) {
  return names_a_ring(event) && event != TraceEvent::waits && event != TraceEvent::climbs &&
         event != TraceEvent::begins && event != TraceEvent::acknowledged &&
         event != TraceEvent::asked && event != TraceEvent::told;
}

class CaptureTap; // frame/capture_tap.hpp

/// What becomes of the frames of one lcore, for those who have asked: it keeps the last events, of
/// which the oldest is overwritten first, and gives a capture a copy of each frame. Only that lcore
/// uses it.
class Trace {
 public:
  static constexpr std::size_t kRecords = 4096;

  /// Keeps events from now on. The first call allocates memory, so a switch that never traces needs
  /// none.
  void switch_on();

  /// The same with the memory of `fresh`, which another thread has switched on.
  void switch_on_with(Trace& fresh);

  void switch_off();

  /// From now on `tap` gets each frame; nullptr: nobody does.
  void copy_to(CaptureTap* tap);

  /// Whether anybody has asked.
  bool is_on() const { return is_on_; }

  void write_down(const Frame& frame, const TraceRecord& record);

  void add(const TraceRecord& record) { records_[next_++ % kRecords] = record; }

  /// Moves its records to `fresh`, which another thread has switched on, and goes on with the
  /// memory of `fresh`. The lcore stops for an exchange of pointers only, not for copies or
  /// allocation.
  void hand_over_to(Trace& fresh);

  /// Oldest first.
  std::vector<TraceRecord> snapshot() const;

 private:
  bool is_on_ = false; // keeps_ or tap_
  bool keeps_ = false;
  CaptureTap* tap_ = nullptr;
  std::uint64_t next_ = 0;
  std::vector<TraceRecord> records_;
};

} // namespace weir::frame
