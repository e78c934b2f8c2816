// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/principal.hpp"
#include "program/digest.hpp"
#include "report/report.hpp"

#include <string>
#include <string_view>

namespace weir::control {
class OperatorAdmin;
class Switch;
struct OperatorSeen;
} // namespace weir::control

namespace weir::report {

/// The operators that the principal may see, with price, rings, packets and flags.
Report show_operators(const control::Switch& weir, const control::Principal& principal);

/// Of a digest, its first eight digits or more, or a name, one operator that the principal sees.
/// Throws control::NoSuchOperator.
program::Digest operator_named(const control::OperatorAdmin& operators, std::string_view word,
                               const control::Principal& principal);

/// From a file of this machine: "clipped-i8-sum: loaded; digest …; at most … ns for a KiB and
/// rank". Throws UnknownName if it cannot be read; control::OperatorError names the file.
std::string load_operator(control::Switch& weir, const std::string& file);

/// What the operator makes of packets, one in each of the files of this machine, whose names are
/// separated by commas: 32 bytes of the result in a line, in hexadecimal.
std::string test_operator(const control::Switch& weir, std::string_view word,
                          std::string_view files, const control::Principal& principal);

} // namespace weir::report
