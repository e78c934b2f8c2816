// SPDX-License-Identifier: BSD-3-Clause
#include "worker/sparse_job.hpp"

#include "worker/group_lines.hpp"
#include "worker/reduction.hpp"
#include "worker/wrong_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

namespace weir::app {
namespace {

using Clock = std::chrono::steady_clock;

} // namespace

void SparseJob::run() {
  for (std::uint32_t repetition = 1; repetition <= options_.repetitions; ++repetition) {
    call_once(repetition);
  }
}

void SparseJob::call_once(std::uint32_t repetition) {
  const SparseValues own{
      .id = {group_.epoch(), repetition}, .call = options_.call, .density = options_.density};
  const std::vector<std::int64_t> indices = own.indices_of(group_.rank());
  const std::vector<std::byte> values = own.values_of(group_.rank(), indices);
  group_.start(nullptr, nullptr, {.kind = host::CallKind::barrier}).wait(); // drawing takes long
  const Clock::time_point start = Clock::now();
  host::Group::SparseCall call =
      group_.start_sparse({.count = options_.call.count,
                           .block = options_.call.block,
                           .indices = indices,
                           .values = reinterpret_cast<const std::uint8_t*>(values.data())},
                          options_.call);
  call.pending.wait();
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  const host::SparseResult& result = call.result->result();
  own_units_ = indices.size();
  blocks_ = result.indices.size();
  block_ = result.block;
  exchanged_bytes_ = result.exchanged_bytes;
  form_ = result.form;
  if (options_.verification == Verification::every_element) {
    verify(result, own);
  }
}

void SparseJob::verify(const host::SparseResult& result, const SparseValues& values) const {
  const std::string wrong = find_sparse_mismatch(result, values, options_.trees.front());
  if (!wrong.empty()) {
    throw WrongResult(fmt::format("wrong result: rank {}, repetition {}, {}", group_.rank(),
                                  values.id.repetition, wrong));
  }
}

std::string SparseJob::summary() const {
  return fmt::format(
      "result: rank={} bytes={:.0f} type={} op={} repetitions={} seconds={:.6f} density={} "
      "block={} blocks={} form={} exchanged_bytes={} of_dense={:.4f} retransmissions={} "
      "algorithm={} verified={} collective={}\n",
      group_.rank(), dense_bytes(), name_of(options_.call.type), reduction_name(options_.call),
      options_.repetitions, mean_seconds(), options_.density, block_, blocks_, name_of(form_),
      exchanged_bytes_, static_cast<double>(exchanged_bytes_) / std::max(dense_bytes(), 1.0),
      retransmissions_of(group_), name_of(group_.algorithm()), name_of(options_.verification),
      name_of(options_.call.kind));
}

std::string SparseJob::json() const {
  return fmt::format(
      "{{\"rank\": {}, \"world\": {}, \"epoch\": {}, \"collective\": \"{}\", \"bytes\": {:.0f}, "
      "\"type\": \"{}\", \"op\": \"{}\", \"repetitions\": {}, \"seconds\": {:.9f}, "
      "\"density\": {}, \"own_units\": {}, \"block\": {}, \"blocks\": {}, \"form\": \"{}\", "
      "\"exchanged_bytes\": {}, \"algorithm\": \"{}\", {}, \"verified\": \"{}\"}}\n",
      group_.rank(), group_.world(), group_.epoch(), name_of(options_.call.kind), dense_bytes(),
      name_of(options_.call.type), reduction_name(options_.call), options_.repetitions,
      mean_seconds(), options_.density, own_units_, block_, blocks_, name_of(form_),
      exchanged_bytes_, name_of(group_.algorithm()),
      rings_json(group_.rings(), group_.missing_rings()), name_of(options_.verification));
}

} // namespace weir::app
