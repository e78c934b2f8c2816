// SPDX-License-Identifier: BSD-3-Clause
#include "worker/single_job.hpp"

#include "output.hpp"
#include "text/json.hpp"
#include "worker/bandwidth.hpp"
#include "worker/group_lines.hpp"
#include "worker/group_trees.hpp"
#include "worker/reduction.hpp"
#include "worker/tensor_values.hpp"
#include "worker/wrong_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>

namespace weir::app {
namespace {

constexpr auto kProgressPeriod = std::chrono::milliseconds(200);

std::string number_or_null(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "null";
}

/// Of all threads of this process, in its own code and in the kernel's for it.
std::chrono::nanoseconds cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

} // namespace

std::string_view name_of(Verification verification) {
  return verification == Verification::every_element ? "every_element" : "no";
}

SingleJob::SingleJob(const JobOptions& options, host::Group& group, CallBuffers buffers)
    : options_(options), group_(group), buffers_(buffers) {}

void SingleJob::run() {
  for (std::uint32_t repetition = 1; repetition <= options_.repetitions; ++repetition) {
    call_once(repetition);
    if (options_.verification == Verification::every_element) {
      verify(repetition);
    }
  }
}

void SingleJob::call_once(std::uint32_t repetition) {
  fill_tensor(buffers_.input, {group_.epoch(), repetition}, group_.rank(), 0, options_.call.type);
  const std::chrono::nanoseconds cpu_before = cpu_time();
  const Clock::time_point start = Clock::now();
  host::Pending pending =
      group_.start(buffers_.input.data(), buffers_.result.data(), options_.call);
  while (!pending.wait_for(kProgressPeriod)) {
    show_progress(repetition, pending.bytes_done(), start);
  }
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  cpu_seconds_ += std::chrono::duration<double>(cpu_time() - cpu_before).count();
  show_progress(repetition, bytes(), start);
}

void SingleJob::show_progress(std::uint32_t repetition, std::size_t done,
                              Clock::time_point start) const {
  if (options_.progress == Progress::quiet) {
    return;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double percent =
      bytes() == 0 ? 100 : 100.0 * static_cast<double>(done) / static_cast<double>(bytes());
  say(fmt::format("progress: rank={} repetition={}/{} percent={:.0f} bytes={} GB/s={:.3f}\n",
                  group_.rank(), repetition, options_.repetitions, percent, done,
                  static_cast<double>(done) / std::max(seconds, 1e-9) / 1e9));
}

void SingleJob::verify(std::uint32_t repetition) const {
  const Mismatches wrong =
      find_mismatches(buffers_.result, {group_.epoch(), repetition}, options_.call,
                      {group_.rank(), group_.world()}, options_.trees);
  if (wrong.count != 0) {
    throw WrongResult(fmt::format(
        "wrong result: rank {}, repetition {}, element {} of {}: expected {}, found {}{}",
        group_.rank(), repetition, wrong.first.index,
        buffers_.result.size() / element_size(options_.call.type), wrong.first.expected,
        wrong.first.found, hint_for(options_.trees)));
  }
}

/// Of the longer buffer; 0 for no bytes.
double SingleJob::cpu_per_gb() const {
  const double bytes = static_cast<double>(this->bytes()) * options_.repetitions;
  return bytes == 0 ? 0 : cpu_seconds_ / bytes * 1e9;
}

std::string SingleJob::summary() const {
  const Bandwidth bandwidth = bandwidth_of(options_.call, group_.world(), mean_seconds());
  return fmt::format(
      "result: rank={} bytes={} type={} op={} repetitions={} seconds={:.6f} algbw_GB/s={:.3f} "
      "busbw_GB/s={:.3f} cpu_s/GB={:.3f} retransmissions={} algorithm={} verified={} "
      "collective={}\n",
      group_.rank(), bytes(), name_of(options_.call.type), reduction_name(options_.call),
      options_.repetitions, mean_seconds(), bandwidth.algorithm, bandwidth.bus, cpu_per_gb(),
      retransmissions_of(group_), name_of(group_.algorithm()), name_of(options_.verification),
      name_of(options_.call.kind));
}

std::string SingleJob::json() const {
  const Bandwidth bandwidth = bandwidth_of(options_.call, group_.world(), mean_seconds());
  const host::GroupStatistics statistics = group_.statistics();
  return fmt::format(
      "{{\"rank\": {}, \"world\": {}, \"epoch\": {}, \"collective\": \"{}\", \"bytes\": {}, "
      "\"type\": \"{}\", \"op\": \"{}\", \"repetitions\": {}, \"seconds\": {:.9f}, "
      "\"algbw_gb_s\": {:.6f}, \"busbw_gb_s\": {:.6f}, \"cpu_s_per_gb\": {:.6f}, "
      "\"messages_sent\": {}, "
      "\"results_received\": {}, \"retransmissions\": {}, \"ack_timeouts\": {}, "
      "\"frames_lost_on_purpose\": {}, \"callers_turned_away\": {}, \"algorithm\": \"{}\", "
      "\"schedule\": \"{}\", "
      "\"reason\": {}, {}, \"verified\": \"{}\"}}\n",
      group_.rank(), group_.world(), group_.epoch(), name_of(options_.call.kind), bytes(),
      name_of(options_.call.type), reduction_name(options_.call), options_.repetitions,
      mean_seconds(), bandwidth.algorithm, bandwidth.bus, cpu_per_gb(), statistics.messages_sent,
      statistics.results_received, number_or_null(statistics.retransmitted_packets),
      number_or_null(statistics.ack_timeouts), statistics.frames_lost_on_purpose,
      statistics.callers_turned_away, name_of(group_.algorithm()),
      schedule_of(group_, options_.call), text::json_string(group_.fallback_reason()),
      rings_json(group_.rings(), group_.missing_rings()), name_of(options_.verification));
}

} // namespace weir::app
