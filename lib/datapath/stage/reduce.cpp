// SPDX-License-Identifier: BSD-3-Clause
#include "stage/reduce.hpp"

#include "op/collectives.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

namespace weir::stage {

Reduce::Reduce(Pipeline& pipeline)
    : current_(pipeline.state.current), operators_(pipeline.state.level),
      helpers_(pipeline.state.helpers), incarnations_(pipeline.state.incarnations),
      rings_(pipeline.state.rings), reductions_(pipeline.state.reductions), emit_(pipeline.emit) {}

/// What the message's collective makes of the children's data.
slot::Fold Reduce::fold_of(std::uint16_t ring, const wire::MessageShape& shape) const {
  switch (op::row_of(shape.collective).contributes) {
  case op::Who::everybody:
    return {.kernel = operators_.kernel(shape.data_type, shape.operation)};
  case op::Who::root:
    if (const auto root = current_->rings()[ring].child_of_rank(shape.root)) {
      return slot::Fold::copy_of(*root, operators_.kernel(DataType::u8, Operation::bitwise_or));
    }
    return {};
  case op::Who::nobody:
    return {};
  }
  return {};
}

void Reduce::accept(const conn::Verdict& verdict, std::uint32_t slot, frame::Instant now) {
  if (reductions_.is_full()) {
    emit_.make_room(now);
  }
  slot::SlotTable& slots = rings_[verdict.ring]->slots;
  slot::ReductionQueue::Entry& entry = reductions_.add();
  entry.ring = verdict.ring;
  entry.slot = slot;
  entry.collective = verdict.record->shape.collective;
  entry.reduction.offer({.frames = slots.frames_of(slot),
                         .result = slots.result_room(slot),
                         .fold = fold_of(verdict.ring, verdict.record->shape),
                         .session = incarnations_.session_of(verdict.ring)});
  if (helpers_ == nullptr || !helpers_->ask(entry.reduction)) {
    entry.reduction.make();
  }
  passes<StageId::reduce, StageId::emit>();
  emit_.collect(now);
}

} // namespace weir::stage
