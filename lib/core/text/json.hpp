// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace weir::text {

/// As a JSON string (RFC 8259 §7), with its quotation marks. Characters that are not printable are
/// escaped; a byte that is no UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

} // namespace weir::text
