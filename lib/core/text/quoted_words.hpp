// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::text {

/// The words of a line that a person typed. Blanks separate them, but not between '…' or "…", which
/// may be a part of a word. Throws std::invalid_argument for a quote without its end.
std::vector<std::string> quoted_words(std::string_view line);

} // namespace weir::text
