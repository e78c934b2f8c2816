// SPDX-License-Identifier: BSD-3-Clause
#include "command/answer.hpp"

namespace weir::command {

std::string printed(const Answer& answer, const Words& words) {
  if (const auto* text = std::get_if<std::string>(&answer)) {
    return *text;
  }
  const auto& report = std::get<report::Report>(answer);
  return words.back() == kJson ? to_json(report) : to_text(report);
}

} // namespace weir::command
