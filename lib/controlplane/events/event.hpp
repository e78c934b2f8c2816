// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What an operator wants to know of without asking: one line for each, none for a packet.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::events {

/// The levels of RFC 5424 §6.2.1 that are used.
enum class Severity : std::uint8_t { error = 3, warning = 4, notice = 5 };

enum class EventKind : std::uint8_t {
  job_began,
  job_reset,
  mac_not_pinned,
  operator_missing,
  hello_missing,
  hello_refused,
  hello_stray,
  straggler,
  straggler_came,
  ring_reclaimed,
  ring_cut_off,
  region_began,
  region_ended,
  region_cut_off,
  stop_waits,
  loss,
  ring_drops,
  port_down,
  port_up,
  tree_link_down,
  tree_link_up,
  port_loop,
  port_loop_over,
  wrong_cable,
  buffers_low,
  buffers_back,
  neighbours_short,
  lcore_hangs,
  service_waits,
  gate,
  gate_killed,
  gate_ended,
  setting_refused,
  numa_crossing,
  reloaded,
  reload_refused,
  terminal_gone,
  lines_left_out,
};

inline constexpr std::size_t kEventKinds = static_cast<std::size_t>(EventKind::lines_left_out) + 1;

/// How many lines of a kind there may be.
enum class Pace : std::uint8_t {
  limited, // ten in a minute about one ring, region or port
  all,     // somebody has asked for each of them
};

struct EventRow {
  EventKind kind{};
  std::string_view name; // in the line's brackets and in journald's WEIR_EVENT
  Severity severity{};
  std::string_view about;
  Pace pace = Pace::limited;
};

/// All kinds, in the enum's order. docs/operating.md lists them.
inline constexpr std::array<EventRow, kEventKinds> kEvents{{
    {EventKind::job_began, "job_began", Severity::notice, "all ranks of a ring have said hello"},
    {EventKind::job_reset, "job_reset", Severity::notice, "a ring has given up its job"},
    {EventKind::mac_not_pinned, "mac_not_pinned", Severity::warning,
     "a rank's MAC address was heard at another port too, so its job does not pin it"},
    {EventKind::operator_missing, "operator_missing", Severity::warning,
     "a job names an operator that this switch does not have, or not for its ring, so no switch "
     "folds by it"},
    {EventKind::hello_missing, "hello_missing", Severity::warning,
     "some ranks have said hello, and others have not for 3 s"},
    {EventKind::hello_refused, "hello_refused", Severity::warning,
     "another switch of a tree has a ring otherwise than this one; the line says in what"},
    {EventKind::hello_stray, "hello_stray", Severity::warning,
     "a hello of a tree's ring was refused at a port where the ring has nobody; once a minute for "
     "the port"},
    {EventKind::straggler, "straggler", Severity::warning,
     "a ring has waited 10 s for the same packets"},
    {EventKind::straggler_came, "straggler_came", Severity::notice, "such a ring goes on"},
    {EventKind::ring_reclaimed, "ring_reclaimed", Severity::notice,
     "a ring has gone by itself, or was reset; the field `reason` says why"},
    {EventKind::ring_cut_off, "ring_cut_off", Severity::warning,
     "the switch has stopped in the middle of a ring's collective"},
    {EventKind::region_began, "region_began", Severity::notice,
     "all members of a region have said hello"},
    {EventKind::region_ended, "region_ended", Severity::notice,
     "a region has ended; the field `reason` says why"},
    {EventKind::region_cut_off, "region_cut_off", Severity::warning,
     "the switch has stopped while a region held packets"},
    {EventKind::stop_waits, "stop_waits", Severity::notice,
     "the switch is to stop and lets running collectives and regions end"},
    {EventKind::loss, "loss", Severity::warning,
     "packets between a rank and the switch were lost or late, and are repeated; once a minute"},
    {EventKind::ring_drops, "ring_drops", Severity::warning,
     "a ring's packets were dropped for a reason that is not a repeat; once a minute"},
    {EventKind::port_down, "port_down", Severity::error, "a port's link is down"},
    {EventKind::port_up, "port_up", Severity::notice, "it is up again, or has another speed"},
    {EventKind::tree_link_down, "tree_link_down", Severity::error,
     "a port to another switch of a tree has no link; the line names the rings"},
    {EventKind::tree_link_up, "tree_link_up", Severity::notice,
     "it is up again, or its rings are gone"},
    {EventKind::port_loop, "port_loop", Severity::error,
     "a loop leads through two ports that bridge: one is closed for 30 s, but for rings"},
    {EventKind::port_loop_over, "port_loop_over", Severity::notice, "it bridges again"},
    {EventKind::wrong_cable, "wrong_cable", Severity::warning,
     "a loop probe has come by a port with bridge: no, so a port that bridges is at the other end; "
     "or a hello of a tree's ring by another port than its sender's"},
    {EventKind::buffers_low, "buffers_low", Severity::warning,
     "less than a twentieth of the packet buffers is free"},
    {EventKind::buffers_back, "buffers_back", Severity::notice, "a tenth is free again"},
    {EventKind::neighbours_short, "neighbours_short", Severity::warning,
     "a tenant, or all rings, have left four fifths of the neighbours that the switch remembers"},
    {EventKind::lcore_hangs, "lcore_hangs", Severity::error,
     "an lcore does not stop for a question; systemd restarts the switch"},
    {EventKind::service_waits, "service_waits", Severity::warning,
     "metrics or the control service cannot listen yet"},
    {EventKind::gate, "gate", Severity::warning,
     "what stands between the network and the control service does not start, or a certificate is "
     "none"},
    {EventKind::gate_killed, "gate_killed", Severity::warning,
     "a client by the network took more memory than it may, or a fault: its process was killed"},
    {EventKind::gate_ended, "gate_ended", Severity::warning,
     "the process that accepts clients by the network has ended, and is started again"},
    {EventKind::setting_refused, "setting_refused", Severity::warning,
     "a port works without a setting: its driver refuses it, or an lcore lacks a queue"},
    {EventKind::numa_crossing, "numa_crossing", Severity::warning,
     "at start: a port, what works for it, and its memory are on several NUMA nodes", Pace::all},
    {EventKind::reloaded, "reloaded", Severity::notice,
     "after SIGHUP: what the file has changed; a line for each change", Pace::all},
    {EventKind::reload_refused, "reload_refused", Severity::warning,
     "after SIGHUP: why nothing has changed, or not all", Pace::all},
    {EventKind::terminal_gone, "terminal_gone", Severity::notice,
     "the prompt's terminal hung up; the switch goes on without a prompt"},
    {EventKind::lines_left_out, "lines_left_out", Severity::notice,
     "there were more lines of a kind than ten in a minute, or the log took none for so long that "
     "a thousand waited"},
}};

static_assert(std::ranges::is_sorted(kEvents, {}, &EventRow::kind));

inline constexpr const EventRow& row_of(EventKind kind) {
  return kEvents[static_cast<std::size_t>(kind)];
}

struct Field {
  std::string_view name; // lower case
  std::string value;     // of line_of(): a blank, and what is not printable, as \xNN
};

struct Event {
  EventKind kind{};
  std::string text; // a sentence without its full stop: "ring 7: rank 3 is late"
  std::vector<Field> fields;
};

/// "ring 7: rank 3 is late [straggler ring=7 rank=3]". On one line, whatever the texts hold.
std::string line_of(const Event& event);

} // namespace weir::events
