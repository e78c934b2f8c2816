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

static_assert(op::row_of(Collective::all_reduce).contributes == op::Who::everybody);

/// What the message's collective makes of the children's data.
slot::Fold Reduce::fold_of(std::uint16_t ring, const wire::MessageShape& shape,
                           slot::ReductionQueue::Entry& entry) const {
  const bool is_usual = shape.collective == Collective::all_reduce &&
                        static_cast<std::size_t>(shape.data_type) < kDataTypes;
  if (is_usual) [[likely]] {
    entry.kind = slot::ReductionKind::usual;
    return {.kernel = operators_.kernel(shape.data_type, shape.operation)};
  }
  return special_fold_of(ring, shape, entry);
}

slot::Fold Reduce::special_fold_of(std::uint16_t ring, const wire::MessageShape& shape,
                                   slot::ReductionQueue::Entry& entry) const {
  entry.kind = slot::ReductionKind::usual;
  if (shape.collective == Collective::hello) {
    // Of the table of operators, which is the same in all.
    entry.kind = slot::ReductionKind::hello;
    return {.kernel = operators_.kernel(DataType::u8, Operation::bitwise_and)};
  }
  switch (op::row_of(shape.collective).contributes) {
  case op::Who::everybody:
    entry.kind = slot::ReductionKind::by_operator;
    entry.by = incarnations_.operator_named(ring, shape.operation);
    return {.kernel = entry.by->kernel()};
  case op::Who::root:
    return copy_of_root(current_->rings()[ring], shape.root);
  case op::Who::nobody:
    return {};
  }
  return {};
}

/// The data of the child that answers for the root. Where it is another switch's, the last child's
/// go up, and nobody reads them.
slot::Fold Reduce::copy_of_root(const ring::Ring& ring, std::uint16_t root) const {
  const auto child = ring.child_of_rank(root);
  const auto last = static_cast<std::uint16_t>(ring.children() - 1u);
  return slot::Fold::copy_of(child.value_or(last),
                             operators_.kernel(DataType::u8, Operation::bitwise_or));
}

void Reduce::accept(const conn::Verdict& verdict, std::uint32_t slot, frame::Instant now) {
  if (reductions_.is_full()) {
    emit_.make_room(now);
  }
  slot::SlotTable& slots = rings_[verdict.ring]->slots;
  slot::ReductionQueue::Entry& entry = reductions_.add();
  entry.ring = verdict.ring;
  entry.slot = slot;
  const auto frames = slots.frames_of(slot);
  entry.reduction.offer({.frames = frames,
                         .result = slots.result_room(slot),
                         .fold = fold_of(verdict.ring, verdict.record->shape, entry),
                         .results = frames.first(rings_[verdict.ring]->made_results),
                         .session = incarnations_.session_of(verdict.ring)});
  if (helpers_ == nullptr || !helpers_->ask(entry.reduction)) {
    entry.reduction.make();
  }
  passes<StageId::reduce, StageId::emit>();
  emit_.collect(now);
}

} // namespace weir::stage
