// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/operators.hpp"
#include "stage/emit.hpp"

namespace weir::stage {

class Pipeline;

/// Starts the reduction of a complete slot: by a helper that has time, else at once on this lcore.
class Reduce {
 public:
  explicit Reduce(Pipeline& pipeline);

  /// The slot is that of `verdict`'s packet, with every child's frame in it.
  void accept(const conn::Verdict& verdict, std::uint32_t slot, frame::Instant now);

 private:
  slot::Fold fold_of(std::uint16_t ring, const wire::MessageShape& shape,
                     slot::ReductionQueue::Entry& entry) const;
  [[gnu::noinline]] slot::Fold special_fold_of(std::uint16_t ring, const wire::MessageShape& shape,
                                               slot::ReductionQueue::Entry& entry) const;
  slot::Fold copy_of_root(const ring::Ring& ring, std::uint16_t root) const;

  const ring::CurrentRings& current_;
  op::Operators operators_;
  slot::ReductionHelpers* helpers_;
  const conn::Incarnations& incarnations_;
  RingStates& rings_;
  slot::ReductionQueue& reductions_;
  Emit& emit_;
};

} // namespace weir::stage
