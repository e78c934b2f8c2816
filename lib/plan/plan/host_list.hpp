// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plan {

/// Names as schedulers write them: "a[1-2,7],rack[0-1]n[08-09],login" → a1, a2, a7, rack0n08,
/// rack0n09, rack1n08, rack1n09, login. A number has as many digits at least as the range's first.
/// Each name once, at its first place. nullopt: brackets that are not so, a name that is empty or
/// longer than 255 bytes, more than `most` names, each counted as often as it is written, or more
/// than 64 KiB of text.
std::optional<std::vector<std::string>> names_in(std::string_view list, std::size_t most);

} // namespace weir::plan
