// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/reasons.hpp"
#include "wire/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::stage {
enum class StageId : std::uint8_t; // stage/graph.hpp
}

namespace weir::frame {

/// What the switch did with a frame last.
enum class TraceEvent : std::uint8_t {
  forwarded,
  waits, // a hello that waits for those of other ranks
  held,
  completed,
  result,
  cached_result,
  acknowledged, // the switch has acknowledged in a receiver's name
  asked,        // the switch has asked a sender to repeat: NAK or RNR NAK
  resent,       // a result that left before
  dropped,
};

inline constexpr std::size_t kTraceEvents = 10;

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
  DropReason drop{};           // for dropped
  stage::StageId dropped_by{}; // likewise
};

std::string_view name_of(TraceEvent event);

/// The last events of one lcore; the oldest is overwritten first. Only that lcore uses it.
class Trace {
 public:
  static constexpr std::size_t kRecords = 4096;

  /// The first call allocates memory, so a switch that never traces needs none.
  void switch_on();

  void switch_off() { on_ = false; }

  bool is_on() const { return on_; }

  void add(const TraceRecord& record) { records_[next_++ % kRecords] = record; }

  /// Moves its records to `fresh`, which another thread has switched on, and goes on with the
  /// memory of `fresh`. The lcore stops for an exchange of pointers only, not for copies or
  /// allocation.
  void hand_over_to(Trace& fresh);

  /// Oldest first.
  std::vector<TraceRecord> snapshot() const;

 private:
  bool on_ = false;
  std::uint64_t next_ = 0;
  std::vector<TraceRecord> records_;
};

} // namespace weir::frame
