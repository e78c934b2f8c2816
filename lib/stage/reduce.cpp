// SPDX-License-Identifier: BSD-3-Clause
#include "stage/reduce.hpp"

#include "stage/graph_watch.hpp"

namespace weir::stage {

Reduce::Reduce(op::CpuLevel level, slot::ReductionHelpers* helpers,
               const conn::Classifier& classifier, RingStates& rings,
               slot::ReductionQueue& reductions, Emit& emit)
    : operators_(level), helpers_(helpers), classifier_(classifier), rings_(rings),
      reductions_(reductions), emit_(emit) {}

/// What the message's collective makes of the ranks' data.
slot::Fold Reduce::fold_of(const wire::MessageShape& shape) const {
  switch (shape.collective) {
  case Collective::broadcast:
    return slot::Fold::copy_of(shape.root, operators_.kernel(DataType::u8, Operation::bitwise_or));
  case Collective::barrier:
    return {};
  default:
    return {.kernel = operators_.kernel(shape.data_type, shape.operation)};
  }
}

void Reduce::accept(const conn::Verdict& verdict, std::uint32_t slot, frame::Instant now) {
  if (reductions_.is_full()) {
    emit_.make_room(now);
  }
  slot::SlotTable& slots = rings_[verdict.ring]->slots;
  slot::ReductionQueue::Entry& entry = reductions_.add();
  entry.record = ring_record(frame::TraceEvent::result, verdict);
  entry.slot = slot;
  entry.collective = verdict.record->shape.collective;
  entry.reduction.offer({.frames = slots.frames_of(slot),
                         .result = slots.result_room(slot),
                         .fold = fold_of(verdict.record->shape),
                         .session = classifier_.session_of(verdict.ring)});
  if (helpers_ == nullptr || !helpers_->ask(entry.reduction)) {
    entry.reduction.make();
  }
  passes<StageId::reduce, StageId::emit>();
  emit_.collect(now);
}

} // namespace weir::stage
