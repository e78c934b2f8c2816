// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What can be asked of the switch, once: the prompt, its `json` and the telemetry socket are views
/// of this table, and the load test holds the switch to its `stops`.

#include "control/switch.hpp"
#include "report/report.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::report {

/// A value that a question or another command of the prompt is told.
struct Argument {
  std::string_view placeholder; // stands for it in the grammar: "<id|all>"
  std::string_view what;        // "id"
  std::string_view fallback;    // for a question asked without it; empty: none
  /// All that it may be.
  std::vector<std::string> (*values)(const control::Switch& weir);
};

/// The argument whose placeholder is in `grammar`; null: it has none.
const Argument* argument_in(std::string_view grammar);

/// How often all lcores stand still for one answer.
enum class Stops : std::uint8_t {
  none,
  one,
  one_for_each_part, // of a table too long for one; its rows are not one moment's
};

struct Question {
  std::string_view grammar;   // at the prompt: "show ring <id> stuck"
  std::string_view telemetry; // on the telemetry socket: "/weir/ring/stuck"
  std::string_view help;      // what the answer tells, without a full stop
  Stops stops;
  Report (*answer)(control::Switch& weir, std::string_view argument);

  /// An empty `argument` is the argument's fallback. Throws UnknownName for one that names nothing.
  Report ask(control::Switch& weir, std::string_view argument) const;
};

/// In the order of the prompt's `help`.
std::span<const Question> questions();

} // namespace weir::report
