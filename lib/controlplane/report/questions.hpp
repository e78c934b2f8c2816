// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The one table of questions that the switch answers. The prompt, its `json` and the telemetry
/// socket are views of it. The load test checks that each answer stops the lcores as often as
/// `stops` says.

#include "report/report.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {
class Switch;
struct Principal;
} // namespace weir::control

namespace weir::report {

/// The argument of a question, or of another command of the prompt.
struct Argument {
  std::string_view placeholder; // its place in the grammar: "<id|all>"
  std::string_view what;        // "id"
  std::string_view fallback;    // used when the argument is missing; empty: none
  /// All that this principal may name.
  std::vector<std::string> (*values)(const control::Switch& weir,
                                     const control::Principal& principal);
};

/// The argument whose placeholder is in `grammar`; null when there is none.
const Argument* argument_in(std::string_view grammar);

/// How often all lcores stop for one answer.
enum class Stops : std::uint8_t {
  none,
  one,
  one_at_most,       // none while there is nothing to tell
  one_for_each_part, // of a table too long for one stop; its rows may be from different moments
};

struct Question {
  std::string_view grammar;   // at the prompt: "show ring <id> stuck"
  std::string_view telemetry; // on the telemetry socket: "/weir/ring/stuck"
  std::string_view help;      // what the answer shows, without a full stop
  Stops stops;
  /// The tables of the answer, in order. A question about all rings has only the first.
  std::span<const TableShape* const> tables;
  Report (*answer)(control::Switch& weir, std::string_view argument,
                   const control::Principal& principal);

  /// An empty `argument` means the argument's fallback. Throws UnknownName for an unknown value,
  /// and std::logic_error if the answer's tables are not those of the row.
  Report ask(control::Switch& weir, std::string_view argument,
             const control::Principal& principal) const;
};

/// In the order of the prompt's `help`.
std::span<const Question> questions();

} // namespace weir::report
