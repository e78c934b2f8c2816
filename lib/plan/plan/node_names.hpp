// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plan {

/// "n[0-3]" → n0, n1, n2, n3. A text without brackets is one name. nullopt: brackets that are not
/// [A-B] with A ≤ B, or more than `most` names.
std::optional<std::vector<std::string>> expand_names(std::string_view pattern, std::size_t most);

} // namespace weir::plan
