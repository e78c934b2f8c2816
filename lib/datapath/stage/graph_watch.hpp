// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A stage calls one of these where it hands a frame on or drops it, and a shortcut where it takes
/// one. An edge that the graph does not declare does not compile. In the build for tests/graph
/// (WEIR_WATCH_GRAPH) each crossing is also counted; in other builds the calls are empty.

#include "stage/graph.hpp"

namespace weir::stage {

#ifdef WEIR_WATCH_GRAPH
void count_edge(StageId from, StageId to);
void count_drop(StageId stage, DropReason reason);
void count_taken(ShortcutId shortcut);
#else
inline void count_edge(StageId /*from*/, StageId /*to*/) {}

inline void count_drop(StageId /*stage*/, DropReason /*reason*/) {}

inline void count_taken(ShortcutId /*shortcut*/) {}
#endif

template <StageId kFrom, StageId kTo>
inline void passes() {
  static_assert(is_declared(kFrom, kTo), "add the edge to the stage's row in stage/graph.hpp");
  count_edge(kFrom, kTo);
}

} // namespace weir::stage
