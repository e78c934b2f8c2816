// SPDX-License-Identifier: BSD-3-Clause
#include "worker/sweep.hpp"

#include "worker/group_trees.hpp"
#include "worker/tensor_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace weir::app {

Sweep::Sweep(const SweepOptions& options, RankCalls& ranks, TensorMemory& memory,
             SweepWatcher& watcher)
    : options_(options), ranks_(ranks), memory_(memory), watcher_(watcher) {}

std::vector<SweepRow> Sweep::run() {
  std::vector<SweepRow> rows;
  for (const host::Call& call : options_.calls) {
    SweepRow row{.call = call};
    row.out_of_place = measured_if_possible(call, Placement::out_of_place);
    row.in_place = measured_if_possible(call, Placement::in_place);
    watcher_.row_is_done(row);
    rows.push_back(row);
  }
  return rows;
}

std::optional<Measurement> Sweep::measured_if_possible(const host::Call& call,
                                                       Placement placement) {
  const bool is_wanted =
      std::ranges::find(options_.placements, placement) != options_.placements.end();
  if (!is_wanted || (placement == Placement::out_of_place && !can_be_out_of_place(call))) {
    return std::nullopt;
  }
  return measure(call, placement);
}

Measurement Sweep::measure(const host::Call& call, Placement placement) {
  const CallBuffers buffers = memory_.buffers_of(call, placement);
  const std::uint32_t calls = options_.warm_ups + options_.iterations;
  std::vector<std::uint64_t> times;
  std::uint64_t wrong = 0;
  for (std::uint32_t iteration = 1; iteration <= calls; ++iteration) {
    watcher_.call_begins(call, placement, iteration);
    const std::uint64_t nanoseconds = timed_call(call, buffers);
    if (iteration > options_.warm_ups) {
      times.push_back(nanoseconds);
    }
    if (iteration > calls - options_.checked) {
      wrong += wrong_elements(call, placement, buffers.result);
    }
  }
  own_wrong_ += wrong;
  combine(times, Operation::max);
  combine({&wrong, 1}, Operation::sum);
  return {latencies_of(std::move(times)),
          options_.checked == 0 ? std::nullopt : std::optional(wrong)};
}

std::uint64_t Sweep::timed_call(const host::Call& call, const CallBuffers& buffers) {
  using Clock = std::chrono::steady_clock;
  fill_tensor(buffers.input, {ranks_.epoch(), ++calls_}, ranks_.place().rank, 0, call.type);
  ranks_.make(nullptr, nullptr, {.kind = host::CallKind::barrier});
  const Clock::time_point start = Clock::now();
  ranks_.make(buffers.input.data(), buffers.result.data(), call);
  const std::chrono::nanoseconds duration = Clock::now() - start;
  return static_cast<std::uint64_t>(duration.count());
}

std::uint64_t Sweep::wrong_elements(const host::Call& call, Placement placement,
                                    std::span<const std::byte> result) {
  const Mismatches wrong =
      find_mismatches(result, {ranks_.epoch(), calls_}, call, ranks_.place(), options_.trees);
  if (wrong.count != 0) {
    watcher_.result_is_wrong(
        fmt::format("wrong result: rank {}, {}, {}: {} of {} elements; the first is {}: expected "
                    "{}, found {}{}",
                    ranks_.place().rank, host::describe(call), name_of(placement), wrong.count,
                    result.size() / element_size(call.type), wrong.first.index,
                    wrong.first.expected, wrong.first.found, hint_for(options_.trees)));
  }
  return wrong.count;
}

void Sweep::combine(std::span<std::uint64_t> numbers, Operation operation) {
  ranks_.make(numbers.data(), numbers.data(),
              {.count = numbers.size(), .type = DataType::u64, .operation = operation});
}

} // namespace weir::app
