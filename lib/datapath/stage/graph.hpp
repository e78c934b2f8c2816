// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The way of a packet, declared once. README's picture, the stages in docs/drops.md and the test
/// of the edges that packets take all come from this table. A new stage is one file and one row.

#include "frame/trace.hpp"
#include "weir/reasons.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::stage {

enum class StageId : std::uint8_t {
  receive,
  dispatch,
  queue,
  classify,
  aggregate,
  reduce,
  emit,
  recover,
  forward,
  transmit,
};

inline constexpr std::size_t kStages = 10;

/// A set of enum values below 128, for example stages or reasons.
template <typename Enum>
struct SetOf {
  std::array<std::uint64_t, 2> words{};

  template <typename... Values>
  static constexpr SetOf of(Values... values) {
    SetOf set;
    ((set.words[word_of(values)] |= bit_of(values)), ...);
    return set;
  }

  constexpr bool has(Enum value) const { return (words[word_of(value)] & bit_of(value)) != 0; }

 private:
  static constexpr std::size_t word_of(Enum value) { return static_cast<std::size_t>(value) / 64; }

  static constexpr std::uint64_t bit_of(Enum value) {
    return std::uint64_t{1} << static_cast<unsigned>(value) % 64;
  }
};

static_assert(kDropReasons <= 128);

struct StageRow {
  StageId id{};
  std::string_view name;
  std::string_view file;  // below lib/datapath/
  std::string_view about; // what it does to a frame, in a few words
  SetOf<StageId> next;
  SetOf<DropReason> drops;
  SetOf<frame::TraceEvent> traces; // beside dropped
};

namespace rows {

using enum StageId;
using enum DropReason;
using Stages = SetOf<StageId>;
using Drops = SetOf<DropReason>;
using Event = frame::TraceEvent;
using Traces = SetOf<Event>;

inline constexpr std::array<StageRow, kStages> kGraph{{
    {receive,
     "receive",
     "stage/receive.cpp",
     "learn the source, parse the headers",
     Stages::of(dispatch),
     Drops::of(not_contiguous),
     {}},
    {dispatch,
     "dispatch",
     "stage/dispatch.cpp",
     "separate ring neighbours' packets from the rest",
     Stages::of(queue, forward),
     Drops::of(wrong_port, unannounced, worker_queue_full),
     {}},
    {queue,
     "queue",
     "stage/queue.cpp",
     "give rings equal shares of a busy worker",
     Stages::of(classify),
     Drops::of(ring_queue_full, tenant_rate),
     {}},
    {classify, "classify", "stage/classify.cpp", "find its ring, rank, message and packet",
     Stages::of(aggregate, emit, recover),
     Drops::of(fragment, ipv6_extension, length_mismatch, transport_version, bad_icrc, result_flag,
               partial_flag, reserved_bits, unsupported_collective, unsupported_pair, bad_root,
               barrier_data, bad_hello, bad_nonce, wrong_nonce, bad_ack_timeout, wrong_epoch,
               wrong_session, message_too_long, partial_element, old_epoch, retired_nonce,
               hello_elsewhere, hello_conflict, hello_displaced, hello_overtaken, hello_given_up,
               ring_draining, no_connection, unclassified, dead_connection, wrong_port,
               unsupported_request, unannounced, window_exceeded, history_conflict,
               connection_table_full, out_of_turn, stale_repeat, disagree_operation, disagree_type,
               repeat_held, ring_reset, ring_withdrawn),
     Traces::of(Event::waits, Event::begins)},
    {aggregate, "aggregate", "stage/aggregate.cpp",
     "hold it in its slot until every rank's has come", Stages::of(reduce, emit),
     Drops::of(bad_icrc, disagree_operation, disagree_type, disagree_length, disagree_collective,
               disagree_root, disagree_payload, repeat_held, stale_repeat, window_violation,
               incarnation_flush, ring_reset, ring_withdrawn),
     Traces::of(Event::held, Event::completed)},
    {reduce,
     "reduce",
     "stage/reduce.cpp",
     "fold the slot in rank order, here or on a helper",
     Stages::of(emit),
     {},
     {}},
    {emit,
     "emit",
     "stage/emit.cpp",
     "send results in order, other frames in turn after them",
     Stages::of(forward),
     {},
     Traces::of(Event::result, Event::repeated, Event::cached_result)},
    {recover, "recover", "stage/recover.cpp", "ask for what was lost, send results again",
     Stages::of(forward), Drops::of(bad_icrc, unknown_message, repeat_swallowed, nak_mended),
     Traces::of(Event::acknowledged, Event::asked, Event::resent)},
    {forward, "forward", "stage/forward.cpp", "find the egress ports", Stages::of(transmit),
     Drops::of(runt, same_port, link_local, no_egress, too_long), Traces::of(Event::forwarded)},
    {transmit,
     "transmit",
     "lcore/transmit.cpp",
     "send by traffic class, through a backlog",
     {},
     Drops::of(tx_queue_full, ring_tx_queue_full, tx_backlog_full, ring_tx_backlog_full,
               port_closed),
     {}},
}};

} // namespace rows

inline constexpr const std::array<StageRow, kStages>& kGraph = rows::kGraph;

constexpr const StageRow& row_of(StageId stage) {
  return kGraph[static_cast<std::size_t>(stage)];
}

static_assert(std::all_of(kGraph.begin(), kGraph.end(),
                          [](const StageRow& row) { return &row == &row_of(row.id); }),
              "a row stands at its stage's number");

constexpr bool is_declared(StageId from, StageId to) {
  return row_of(from).next.has(to);
}

constexpr bool is_declared(StageId stage, DropReason reason) {
  return row_of(stage).drops.has(reason);
}

/// As trace records name the stage.
constexpr frame::StageNumber number_of(StageId stage) {
  return static_cast<frame::StageNumber>(stage);
}

/// The stage that wrote the record.
constexpr StageId stage_of(const frame::TraceRecord& record) {
  if (record.event == frame::TraceEvent::dropped) {
    return static_cast<StageId>(record.dropped_by);
  }
  return std::find_if(kGraph.begin(), kGraph.end(),
                      [&](const StageRow& row) { return row.traces.has(record.event); })
      ->id;
}

constexpr bool is_of_one_stage(frame::TraceEvent event) {
  return std::count_if(kGraph.begin(), kGraph.end(),
                       [&](const StageRow& row) { return row.traces.has(event); }) == 1;
}

constexpr bool has_one_stage_for_each_event() {
  for (std::size_t event = 0; event < frame::kTraceEvents; ++event) {
    const auto named = static_cast<frame::TraceEvent>(event);
    if (is_of_one_stage(named) == (named == frame::TraceEvent::dropped)) {
      return false;
    }
  }
  return true;
}

static_assert(has_one_stage_for_each_event());

} // namespace weir::stage
