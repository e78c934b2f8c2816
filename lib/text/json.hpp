// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace weir::text {

/// As a JSON string (RFC 8259 §7), with its quotation marks.
std::string json_string(std::string_view text);

} // namespace weir::text
