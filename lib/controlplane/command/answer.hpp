// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "report/report.hpp"

#include <string>
#include <variant>
#include <vector>

namespace weir::command {

using Words = std::vector<std::string>;

/// What a command says: lines for people, or tables.
using Answer = std::variant<std::string, report::Report>;

/// What a question takes as its last word to be answered in JSON.
inline constexpr std::string_view kJson = "json";

/// As the prompt prints it: tables as text, or as JSON if the words end so.
std::string printed(const Answer& answer, const Words& words);

} // namespace weir::command
