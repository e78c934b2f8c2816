// SPDX-License-Identifier: BSD-3-Clause
#include "plan/ring_pass.hpp"

#include <cassert>

namespace weir::plan {

void add_ring_pass(ScheduleBuilder& builder, Router& router, const RingPass& pass) {
  const auto length = static_cast<std::uint32_t>(pass.line.size());
  assert(length >= 2 && pass.chunks.count % length == 0);
  const std::uint32_t piece_chunks = pass.chunks.count / length;
  for (std::uint32_t from = 0; from < length; ++from) {
    const VertexId sender = pass.line[from];
    const VertexId receiver = pass.line[(from + 1) % length];
    const std::vector<LinkId> route = router.route(sender, receiver);
    for (Step step = 1; step < length; ++step) {
      const auto add = [&](Operation operation, std::uint32_t piece, Step when) {
        builder.add({operation,
                     pass.first_flow + piece,
                     sender,
                     receiver,
                     when,
                     {pass.chunks.first + piece * piece_chunks, piece_chunks},
                     {}},
                    route);
      };
      // Piece i starts at the node after line[i], reaches line[i] last, then starts there again.
      add(Operation::reduce, (from + length - step) % length, pass.steps_before + step);
      add(Operation::gather, (from + length + 1 - step) % length,
          pass.steps_before + length - 1 + step);
    }
  }
}

} // namespace weir::plan
