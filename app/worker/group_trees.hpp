// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "worker/fold_tree.hpp"

#include <string_view>
#include <vector>

namespace weir::app {

/// In which order the group's sums are folded, part by part of each call: `trees`, of which each
/// ring of the group's options has one, without those of the rings that are left out. Hosts that
/// reduce fold as one switch does.
std::vector<FoldTree> trees_in_use(const host::Group& group, const std::vector<FoldTree>& trees);

/// What a user may have forgotten when a result is wrong; empty if nothing.
std::string_view hint_for(const std::vector<FoldTree>& trees);

} // namespace weir::app
