// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Text from outside, for terminals and logs. A control character can move the cursor, set a
/// window's title or begin a new line of a log; a mark of direction can turn a line around.

#include <string>
#include <string_view>

namespace weir::text {

/// Whether it is UTF-8 (RFC 3629) without control characters (C0, DEL, C1), line separators and
/// marks of direction.
bool is_printable(std::string_view text);

/// On one line: each byte of what is not printable as \xNN, all else as it is.
std::string printable(std::string_view text);

/// The same, but its lines stay lines.
std::string printable_lines(std::string_view text);

} // namespace weir::text
