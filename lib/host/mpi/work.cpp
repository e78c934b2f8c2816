// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/work.hpp"

#include "host/mpi/job.hpp"
#include "host/mpi/truths.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace weir::mpi {
namespace {

constexpr std::size_t kMostPacked = std::numeric_limits<int>::max();

/// Of a homogeneous job, where packed data are the elements' bytes one after the other.
std::vector<std::byte> packed(const void* from, MPI_Count count, MPI_Datatype type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(type));
  int position = 0;
  PMPI_Pack(from, static_cast<int>(count), type, bytes.data(), static_cast<int>(bytes.size()),
            &position, MPI_COMM_WORLD);
  return bytes;
}

void unpack(const std::vector<std::byte>& bytes, void* to, MPI_Count count, MPI_Datatype type) {
  int position = 0;
  PMPI_Unpack(bytes.data(), static_cast<int>(bytes.size()), &position, to, static_cast<int>(count),
              type, MPI_COMM_WORLD);
}

std::byte* behind(void* address, std::size_t bytes) {
  return static_cast<std::byte*>(address) + bytes;
}

std::size_t extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return static_cast<std::size_t>(extent);
}

bool is_reduce_scatter(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

bool is_reduction(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         is_reduce_scatter(collective);
}

bool has_part_for_each(Collective collective) {
  return collective == Collective::all_gather || is_reduce_scatter(collective);
}

} // namespace

Plan plan_of(const Call& call, int size, std::size_t threshold) {
  if (call.collective == Collective::barrier) {
    return {.way = Way::weir};
  }
  if (call.count < 0 || call.root < 0 || call.root >= size) { // MPI says what is wrong
    return {.way = call.count == kUnequalParts ? Way::unequal_parts : Way::wrong_arguments};
  }
  const std::size_t parts = has_part_for_each(call.collective) ? static_cast<std::size_t>(size) : 1;
  Plan plan{.way = Way::weir,
            .bytes = static_cast<std::size_t>(call.count) * size_of(call.type) * parts};
  if (is_reduction(call.collective)) {
    const auto reduction = reduction_of(call.type, call.operation);
    if (const auto* const why = std::get_if<Way>(&reduction); why != nullptr) {
      plan.way = *why;
      return plan;
    }
    plan.reduction = std::get<Reduction>(reduction);
    if (plan.reduction.form == Form::packed && job().operators() == nullptr) {
      plan.way = Way::operation;
      return plan;
    }
  } else if (plan.bytes > kMostPacked) { // some rank may have to pack it
    plan.way = Way::too_large;
  }
  if (plan.bytes < std::max<std::size_t>(threshold, 1)) {
    plan.way = Way::below_threshold;
  }
  return plan;
}

Work::Work(const Call& call, const Plan& plan, int rank, int size)
    : call_(call), plan_(plan), rank_(rank), size_(size) {}

void Work::release() {
  if (unpacked_as_ != MPI_DATATYPE_NULL) {
    PMPI_Type_free(&unpacked_as_);
  }
}

const void* Work::input() const {
  return call_.in == MPI_IN_PLACE ? call_.out : call_.in;
}

weir_status Work::start(weir_group* group, weir_request** request) {
  const Reduction& reduction = plan_.reduction;
  if (reduction.form != Form::same) {
    return start_reformed(group, request);
  }
  const std::size_t elements = static_cast<std::size_t>(call_.count) * reduction.elements;
  switch (call_.collective) {
  case Collective::all_reduce:
    return weir_start_all_reduce(group, input(), call_.out, elements, reduction.type,
                                 reduction.operation, request);
  case Collective::reduce:
    return weir_start_reduce(group, input(), rank_ == call_.root ? call_.out : nullptr, elements,
                             reduction.type, reduction.operation,
                             static_cast<std::uint16_t>(call_.root), request);
  case Collective::broadcast:
    return start_broadcast(group, request);
  case Collective::all_gather:
    return start_all_gather(group, request);
  case Collective::reduce_scatter:
  case Collective::reduce_scatter_block:
    return start_reduce_scatter(group, request);
  case Collective::barrier:
    break;
  }
  return weir_start_barrier(group, request);
}

/// A reduce-scatter's parts each for itself: an operator's end where a packet ends.
weir_status Work::start_reformed(weir_group* group, weir_request** request) {
  const auto* const elements = static_cast<const std::byte*>(input());
  const std::size_t parts = is_reduce_scatter(call_.collective) ? size_ : 1;
  packed_in_.clear();
  for (std::size_t part = 0; part < parts; ++part) {
    const auto bytes = reformed(elements + part * call_.count * extent_of(call_.type));
    packed_in_.insert(packed_in_.end(), bytes.begin(), bytes.end());
  }
  packed_out_.resize(packed_in_.size() / parts);
  const Reduction& reduction = plan_.reduction;
  switch (call_.collective) {
  case Collective::reduce:
    return weir_start_reduce(group, packed_in_.data(), packed_out_.data(), packed_out_.size(),
                             reduction.type, reduction.operation,
                             static_cast<std::uint16_t>(call_.root), request);
  case Collective::reduce_scatter:
  case Collective::reduce_scatter_block:
    return weir_start_reduce_scatter(group, packed_in_.data(), packed_out_.data(),
                                     packed_out_.size(), reduction.type, reduction.operation,
                                     request);
  default:
    return weir_start_all_reduce(group, packed_in_.data(), packed_out_.data(), packed_out_.size(),
                                 reduction.type, reduction.operation, request);
  }
}

std::vector<std::byte> Work::reformed(const std::byte* elements) const {
  const auto count = static_cast<std::size_t>(call_.count);
  return plan_.reduction.form == Form::truths
             ? truths_of(elements, count, size_of(call_.type))
             : job().operators()->packed(plan_.reduction.by, elements, count, call_.type);
}

void Work::put_back() {
  if (call_.collective == Collective::reduce && rank_ != call_.root) {
    return;
  }
  if (plan_.reduction.form == Form::truths) {
    put_truths(packed_out_, static_cast<std::byte*>(call_.out), size_of(call_.type));
    return;
  }
  job().operators()->unpack(plan_.reduction.by, packed_out_, call_.out,
                            static_cast<std::size_t>(call_.count), call_.type);
}

weir_status Work::start_broadcast(weir_group* group, weir_request** request) {
  void* data = call_.out;
  if (!is_contiguous(call_.type)) {
    if (rank_ == call_.root) {
      packed_out_ = packed(call_.out, call_.count, call_.type);
    } else {
      packed_out_.resize(plan_.bytes);
      PMPI_Type_dup(call_.type, &unpacked_as_);
    }
    data = packed_out_.data();
  }
  return weir_start_broadcast(group, data, plan_.bytes, WEIR_U8,
                              static_cast<std::uint16_t>(call_.root), request);
}

weir_status Work::start_all_gather(weir_group* group, weir_request** request) {
  const std::size_t part = plan_.bytes / static_cast<std::size_t>(size_);
  const auto own = static_cast<std::size_t>(rank_);
  const bool is_straight = is_contiguous(call_.type);
  void* out = call_.out;
  if (!is_straight) {
    packed_out_.resize(plan_.bytes);
    PMPI_Type_dup(call_.type, &unpacked_as_);
    out = packed_out_.data();
  }
  const void* in = call_.in;
  if (call_.in == MPI_IN_PLACE) {
    in = behind(out, own * part);
    if (!is_straight) {
      const std::size_t stride = static_cast<std::size_t>(call_.count) * extent_of(call_.type);
      const auto mine = packed(behind(call_.out, own * stride), call_.count, call_.type);
      std::ranges::copy(mine, behind(out, own * part));
    }
  } else if (!is_contiguous(call_.in_type)) {
    packed_in_ = packed(call_.in, call_.in_count, call_.in_type);
    in = packed_in_.data();
  }
  return weir_start_all_gather(group, in, out, part, WEIR_U8, request);
}

weir_status Work::start_reduce_scatter(weir_group* group, weir_request** request) {
  const Reduction& reduction = plan_.reduction;
  const std::size_t elements = static_cast<std::size_t>(call_.count) * reduction.elements;
  void* out = call_.out;
  if (call_.in == MPI_IN_PLACE) { // MPI wants the part at the buffer's beginning
    packed_out_.resize(plan_.bytes / static_cast<std::size_t>(size_));
    out = packed_out_.data();
  }
  return weir_start_reduce_scatter(group, input(), out, elements, reduction.type,
                                   reduction.operation, request);
}

void Work::finish() {
  if (plan_.reduction.form != Form::same) {
    put_back();
  } else if (unpacked_as_ != MPI_DATATYPE_NULL) {
    const bool is_gathered = call_.collective == Collective::all_gather;
    unpack(packed_out_, call_.out, call_.count * (is_gathered ? size_ : 1), unpacked_as_);
  } else if (call_.in == MPI_IN_PLACE && !packed_out_.empty()) {
    std::memcpy(call_.out, packed_out_.data(), packed_out_.size());
  }
}

} // namespace weir::mpi
