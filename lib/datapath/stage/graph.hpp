// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The way of a packet, declared once. README's picture, the stages in docs/drops.md, the members
/// of stage::Pipeline and the test of the edges that packets take all come from these tables. A new
/// stage is its two files, one row, and the call of the stage before it; CONTRIBUTING.md shows one.

#include "frame/trace.hpp"
#include "weir/reasons.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace weir::stage {

// Of each stage: its name, its class, its file below lib/datapath/, what it does to a frame, the
// stages that it hands frames on to, the reasons under which it drops them, and what it records of
// them beside that it dropped them. In the order of a packet's way.

/// The first stages of an lcore.
#define WEIR_STAGES_BEFORE_WORKER(X)                                                               \
  X(receive, Receive, "stage/receive.cpp", "learn the source, parse the headers",                  \
    Stages::of(dispatch), Drops::of(not_contiguous), Traces())                                     \
  X(dispatch, Dispatch, "stage/dispatch.cpp", "separate ring neighbours' packets from the rest",   \
    Stages::of(queue, forward),                                                                    \
    Drops::of(wrong_port, unannounced, partial_of_unknown_ring, worker_queue_full, not_bridged,    \
              tied_elsewhere, loop_probe, region_impostor, region_unknown),                        \
    Traces())

/// The stages of a worker. stage::Pipeline makes and wires them.
#define WEIR_WORKER_STAGES(X)                                                                      \
  X(queue, Queue, "stage/queue.cpp", "give rings and regions equal shares of a busy worker",       \
    Stages::of(classify, region), Drops::of(ring_queue_full, region_queue_full, tenant_rate),      \
    Traces())                                                                                      \
  X(classify, Classify, "stage/classify.cpp", "find its ring, rank, message and packet",           \
    Stages::of(aggregate, emit, recover, climb, queue),                                            \
    Drops::of(fragment, ipv6_extension, length_mismatch, transport_version, bad_icrc, result_flag, \
              partial_flag, raw_from_switch, raw_from_parent, queue_pair_untold, ring_differs,     \
              range_differs, operator_tables_differ, operator_not_granted, operator_disagrees,     \
              total_without_set, partial_of_unknown_ring, reserved_bits, unsupported_collective,   \
              unsupported_pair, bad_root, barrier_data, bad_hello, bad_nonce, wrong_nonce,         \
              bad_ack_timeout, wrong_epoch, wrong_session, message_too_long, partial_element,      \
              old_epoch, retired_nonce, hello_elsewhere, hello_conflict, hello_displaced,          \
              hello_overtaken, hello_given_up, ring_draining, no_connection, unclassified,         \
              dead_connection, wrong_port, unsupported_request, unannounced, window_exceeded,      \
              history_conflict, connection_table_full, out_of_turn, stale_repeat,                  \
              disagree_operation, disagree_type, repeat_held, ring_reset, ring_withdrawn),         \
    Traces::of(Event::waits, Event::begins))                                                       \
  X(aggregate, Aggregate, "stage/aggregate.cpp",                                                   \
    "hold it in its slot until every rank's has come", Stages::of(reduce, emit),                   \
    Drops::of(bad_icrc, disagree_operation, disagree_type, disagree_length, disagree_collective,   \
              disagree_root, disagree_payload, repeat_held, stale_repeat, window_violation,        \
              total_early, incarnation_flush, ring_reset, operator_disagrees, ring_withdrawn),     \
    Traces::of(Event::held, Event::completed, Event::total))                                       \
  X(reduce, Reduce, "stage/reduce.cpp", "fold the slot in rank order, here or on a helper",        \
    Stages::of(emit), Drops(), Traces())                                                           \
  X(emit, Emit, "stage/emit.cpp", "send results in order, other frames in turn after them",        \
    Stages::of(forward), Drops(),                                                                  \
    Traces::of(Event::partial_sum, Event::result, Event::repeated, Event::cached_result))          \
  X(recover, Recover, "stage/recover.cpp", "ask for what was lost, send results again",            \
    Stages::of(forward),                                                                           \
    Drops::of(bad_icrc, wrong_port, unknown_message, repeat_swallowed, nak_mended),                \
    Traces::of(Event::acknowledged, Event::asked, Event::told, Event::resent))                     \
  X(climb, Climb, "stage/climb.cpp", "say hello to the switch above, for all children",            \
    Stages::of(forward), Drops(), Traces::of(Event::climbs))                                       \
  X(region, Region, "stage/region.cpp", "write it into the memory of a region's members",          \
    Stages::of(forward),                                                                           \
    Drops::of(fragment, ipv6_extension, length_mismatch, transport_version, bad_icrc,              \
              region_unknown, region_elsewhere, region_early, region_gap, region_repeat,           \
              region_window, region_request, region_key, region_ghost, region_response,            \
              region_ended),                                                                       \
    Traces())

/// The last stages of an lcore.
#define WEIR_STAGES_BEHIND_WORKER(X)                                                               \
  X(forward, Forward, "stage/forward.cpp", "find the egress ports", Stages::of(transmit),          \
    Drops::of(runt, same_port, link_local, no_egress, not_bridged, too_long),                      \
    Traces::of(Event::forwarded))                                                                  \
  X(transmit, Transmitter, "lcore/transmit.cpp", "send by traffic class, through a backlog",       \
    Stages(),                                                                                      \
    Drops::of(tx_queue_full, ring_tx_queue_full, tx_backlog_full, ring_tx_backlog_full,            \
              port_closed),                                                                        \
    Traces())

#define WEIR_STAGES(X)                                                                             \
  WEIR_STAGES_BEFORE_WORKER(X) WEIR_WORKER_STAGES(X) WEIR_STAGES_BEHIND_WORKER(X)

/// Ways beside the stages, for packets that these would only hand on. Of each: its name, its file
/// below lib/datapath/, which packets take it, and the stages that it stands for, whose first and
/// last it joins.
#define WEIR_SHORTCUTS(X)                                                                          \
  X(l2_fast_path, "stage/l2_fast_path.cpp", "frames of no ring between known stations",            \
    Way::of(receive, dispatch, forward, transmit))                                                 \
  X(cached_path, "stage/cached_path.cpp", "packets that their ring expects",                       \
    Way::of(receive, dispatch, queue, classify, aggregate))

enum class StageId : std::uint8_t {
#define WEIR_ID(name, ...) name,
  WEIR_STAGES(WEIR_ID)
};

enum class ShortcutId : std::uint8_t { WEIR_SHORTCUTS(WEIR_ID) };
#undef WEIR_ID

#define WEIR_ID(name, ...) StageId::name,
inline constexpr std::size_t kStages = std::initializer_list<StageId>{WEIR_STAGES(WEIR_ID)}.size();
#undef WEIR_ID
#define WEIR_ID(name, ...) ShortcutId::name,
inline constexpr std::size_t kShortcuts =
    std::initializer_list<ShortcutId>{WEIR_SHORTCUTS(WEIR_ID)}.size();
#undef WEIR_ID

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

/// Stages in the order in which a packet goes through them.
struct Way {
  std::array<StageId, kStages> stages{};
  std::size_t size = 0;

  template <typename... Stages>
  static constexpr Way of(Stages... stages) {
    return {{stages...}, sizeof...(stages)};
  }

  constexpr StageId first() const { return stages[0]; }

  constexpr StageId last() const { return stages[size - 1]; }
};

struct ShortcutRow {
  ShortcutId id{};
  std::string_view name;
  std::string_view file;  // below lib/datapath/
  std::string_view about; // which packets take it
  Way way;                // that the packets would take otherwise
};

namespace rows {

using enum StageId;
using enum DropReason;
using Stages = SetOf<StageId>;
using Drops = SetOf<DropReason>;
using Event = frame::TraceEvent;
using Traces = SetOf<Event>;

#define WEIR_ROW(id, Class, file, about, next, drops, traces)                                      \
  StageRow{StageId::id, #id, file, about, next, drops, traces},
inline constexpr std::array<StageRow, kStages> kGraph{{WEIR_STAGES(WEIR_ROW)}};
#undef WEIR_ROW

#define WEIR_ROW(id, file, about, way) ShortcutRow{ShortcutId::id, #id, file, about, way},
inline constexpr std::array<ShortcutRow, stage::kShortcuts> kShortcutRows{
    {WEIR_SHORTCUTS(WEIR_ROW)}};
#undef WEIR_ROW

} // namespace rows

inline constexpr const std::array<StageRow, kStages>& kGraph = rows::kGraph;
inline constexpr const std::array<ShortcutRow, kShortcuts>& kShortcutRows = rows::kShortcutRows;

constexpr const StageRow& row_of(StageId stage) {
  return kGraph[static_cast<std::size_t>(stage)];
}

constexpr bool is_declared(StageId from, StageId to) {
  return row_of(from).next.has(to);
}

constexpr bool is_declared(StageId stage, DropReason reason) {
  return row_of(stage).drops.has(reason);
}

constexpr bool goes_by_declared_edges(const Way& way) {
  for (std::size_t place = 1; place < way.size; ++place) {
    if (!is_declared(way.stages[place - 1], way.stages[place])) {
      return false;
    }
  }
  return way.size > 2;
}

static_assert(std::all_of(kShortcutRows.begin(), kShortcutRows.end(),
                          [](const ShortcutRow& row) { return goes_by_declared_edges(row.way); }),
              "a shortcut stands for stages that hand on to one another");

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
