// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The one table of metrics. Each row takes a column of an answer (report/questions.hpp), so a
/// metric and the prompt never tell two stories.

#include "report/report.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::metrics {

enum class Kind : std::uint8_t {
  counter,   // grows from the switch's start
  gauge,     // is so now
  histogram, // rows with `from`, `to` and `count`, made from a whole table
};

/// Whether the answer is one for the switch, or one for each ring.
enum class Scope : std::uint8_t {
  whole_switch,
  each_ring,
  each_ring_below_a_switch, // the answer about another ring lacks the table
};

/// A label that all values of a row have and no column tells.
struct FixedLabel {
  std::string_view name; // empty: none
  std::string_view value;
};

struct Metric {
  std::string_view name; // with the unit; rows with one name follow each other
  std::string_view help; // a sentence
  Kind kind;
  Scope scope = Scope::whole_switch; // of any other, the label `ring` is added
  std::string_view question;         // its path on the telemetry socket
  const report::TableShape* table;
  std::string_view value;       // the column's key; a cell without a number counts as 0
  double unit = 1.0;            // what the metric's unit has of the column's
  std::string_view label;       // the key of a column whose cells are labels; empty: none
  std::string_view within = {}; // of a second such column
  FixedLabel fixed = {};
  /// All values that the label can have: one that has no row counts as 0. nullptr: as many as rows.
  std::vector<std::string> (*known)() = nullptr;
};

std::span<const Metric> catalogue();

} // namespace weir::metrics
