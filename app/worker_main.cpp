// SPDX-License-Identifier: BSD-3-Clause

/// weir-worker: one rank of a job.

#include "host/api/group.hpp"
#include "host/collective/ring_blocks.hpp"
#include "host/transport/host_eal.hpp"
#include "last_words.hpp"
#include "worker_options.hpp"
#include "worker_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using app::WorkerOptions;
using Clock = std::chrono::steady_clock;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr auto kProgressPeriod = std::chrono::milliseconds(200);
constexpr double kGiga = 1e9;

/// A result that is not the reduction of the ranks' tensors.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Algorithm and bus bandwidth in GB/s, as nccl-tests define them (its doc/PERFORMANCE.md).
struct Timing {
  host::CallKind kind{};
  std::uint64_t bytes = 0; // of one call
  std::uint32_t repetitions = 0;
  double seconds = 0; // of all of them, without verification
  std::uint16_t world = 0;

  double mean() const { return seconds / repetitions; }

  double algorithm_bandwidth() const {
    return static_cast<double>(bytes) / std::max(mean(), 1e-9) / kGiga;
  }

  double bus_bandwidth() const { return algorithm_bandwidth() * bus_share(); }

 private:
  /// What a link of the best algorithm without a switch carries, for each byte of the call.
  double bus_share() const {
    const double others = static_cast<double>(world - 1) / world;
    switch (kind) {
    case host::CallKind::all_reduce:
      return 2 * others;
    case host::CallKind::all_gather:
    case host::CallKind::reduce_scatter:
      return others;
    default:
      return 1;
    }
  }
};

std::string known_or(const std::optional<std::uint64_t>& count, std::string_view otherwise) {
  return count ? std::to_string(*count) : std::string(otherwise);
}

std::unique_ptr<host::Group> open_group(const WorkerOptions& options) {
  if (options.devargs.empty()) {
    return std::make_unique<host::Group>(options.group);
  }
  auto frames = host::open_ethdev(options.devargs, options.group.timeout);
  return std::make_unique<host::Group>(options.group, std::move(frames));
}

app::CallBuffers buffers_of(const WorkerOptions& options) {
  try {
    return {
        options.call, {options.group.rank, options.group.world}, options.placement, options.bytes};
  } catch (const std::exception&) { // std::bad_alloc, std::length_error
    throw std::runtime_error(
        fmt::format("--size: no memory for a tensor of {} bytes", options.bytes));
  }
}

class Rank {
 public:
  explicit Rank(const WorkerOptions& options)
      : options_(options), buffers_(buffers_of(options)), group_(open_group(options)) {}

  void run() {
    greet();
    for (std::uint32_t repetition = 1; repetition <= options_.repetitions; ++repetition) {
      call_once(repetition);
    }
    report();
  }

 private:
  Timing timing() const {
    const std::uint64_t bytes = options_.call.kind == host::CallKind::barrier ? 0 : options_.bytes;
    return {options_.call.kind, bytes, options_.repetitions, seconds_, group_->world()};
  }

  void greet() const {
    fmt::print("weir-worker: rank={} world={} epoch={} algorithm={}{}\n", group_->rank(),
               group_->world(), group_->epoch(), name_of(group_->algorithm()), explanation());
    std::fflush(stdout);
  }

  std::string explanation() const {
    return schedule().empty()
               ? ""
               : fmt::format(" schedule={} reason=\"{}\"", schedule(), group_->fallback_reason());
  }

  /// How the hosts' ring reduces this type. Empty when the switch reduces.
  std::string_view schedule() const {
    return group_->algorithm() == host::Algorithm::ring
               ? name_of(host::ring_schedule(options_.call.type))
               : std::string_view();
  }

  void call_once(std::uint32_t repetition) {
    const app::TensorId id{group_->epoch(), repetition};
    app::fill_tensor(buffers_.input(), id, group_->rank(), 0, options_.call.type);
    const Clock::time_point start = Clock::now();
    host::Pending pending =
        group_->start(buffers_.input().data(), buffers_.result().data(), options_.call);
    while (!pending.wait_for(kProgressPeriod)) {
      show_progress(repetition, pending.bytes_done(), start);
    }
    seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
    show_progress(repetition, options_.bytes, start);
    if (options_.verification == app::Verification::every_element) {
      verify(id);
    }
  }

  void show_progress(std::uint32_t repetition, std::size_t done, Clock::time_point start) const {
    if (options_.progress == app::Progress::quiet) {
      return;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double percent = options_.bytes == 0 ? 100
                                               : 100.0 * static_cast<double>(done) /
                                                     static_cast<double>(options_.bytes);
    fmt::print("progress: rank={} repetition={}/{} percent={:.0f} bytes={} GB/s={:.3f}\n",
               group_->rank(), repetition, options_.repetitions, percent, done,
               static_cast<double>(done) / std::max(seconds, 1e-9) / kGiga);
    std::fflush(stdout);
  }

  void verify(const app::TensorId& id) {
    const auto mismatch =
        app::find_mismatch(buffers_.result(), id, options_.call, {group_->rank(), group_->world()});
    if (mismatch) {
      throw WrongResult(fmt::format(
          "wrong result: rank {}, repetition {}, element {} of {}: expected {}, found {}",
          group_->rank(), id.repetition, mismatch->index,
          buffers_.result().size() / element_size(options_.call.type), mismatch->expected,
          mismatch->found));
    }
  }

  void report() const {
    const Timing timing = this->timing();
    const host::GroupStatistics statistics = group_->statistics();
    const std::string_view verified =
        options_.verification == app::Verification::every_element ? "every_element" : "no";
    fmt::print("result: rank={} bytes={} type={} op={} repetitions={} seconds={:.6f} "
               "algbw_GB/s={:.3f} busbw_GB/s={:.3f} retransmissions={} algorithm={} verified={} "
               "collective={}\n",
               group_->rank(), timing.bytes, name_of(options_.call.type),
               name_of(options_.call.operation), timing.repetitions, timing.mean(),
               timing.algorithm_bandwidth(), timing.bus_bandwidth(),
               known_or(statistics.retransmitted_packets, "unknown"), name_of(group_->algorithm()),
               verified, name_of(timing.kind));
    std::fflush(stdout);
    if (!options_.json.empty()) {
      write_json(timing, statistics, verified);
    }
  }

  void write_json(const Timing& timing, const host::GroupStatistics& statistics,
                  std::string_view verified) const {
    std::ofstream file(options_.json);
    file << fmt::format(
        "{{\"rank\": {}, \"world\": {}, \"epoch\": {}, \"collective\": \"{}\", \"bytes\": {}, "
        "\"type\": \"{}\", "
        "\"op\": \"{}\", \"repetitions\": {}, \"seconds\": {:.9f}, \"algbw_gb_s\": {:.6f}, "
        "\"busbw_gb_s\": {:.6f}, \"messages_sent\": {}, \"results_received\": {}, "
        "\"retransmissions\": {}, \"ack_timeouts\": {}, \"frames_lost_on_purpose\": {}, "
        "\"algorithm\": \"{}\", \"schedule\": \"{}\", \"reason\": \"{}\", "
        "\"verified\": \"{}\"}}\n",
        group_->rank(), group_->world(), group_->epoch(), name_of(timing.kind), timing.bytes,
        name_of(options_.call.type), name_of(options_.call.operation), timing.repetitions,
        timing.mean(), timing.algorithm_bandwidth(), timing.bus_bandwidth(),
        statistics.messages_sent, statistics.results_received,
        known_or(statistics.retransmitted_packets, "null"),
        known_or(statistics.ack_timeouts, "null"), statistics.frames_lost_on_purpose,
        name_of(group_->algorithm()), schedule(), group_->fallback_reason(), verified);
    file.flush();
    if (!file) {
      throw std::runtime_error(fmt::format("--json {}: cannot be written", options_.json));
    }
  }

  const WorkerOptions& options_;
  app::CallBuffers buffers_;
  std::unique_ptr<host::Group> group_; // destroyed before its buffers
  double seconds_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  app::name_fatal_signals("weir-worker");
  try {
    const WorkerOptions options = app::parse_worker_options(argc, argv);
    std::optional<host::HostEal> eal; // outlives the port
    if (!options.devargs.empty()) {
      eal.emplace();
    }
    Rank rank(options);
    rank.run();
    return EXIT_SUCCESS;
  } catch (const app::UsageError& error) {
    fmt::print(stderr, "weir-worker: {}\n", error.what());
    return kExitUsage;
  } catch (const host::Error& error) {
    fmt::print(stderr, "weir-worker: {}: {}\n", name_of(error.code()), error.what());
    return kExitFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weir-worker: {}\n", error.what());
    return kExitFailure;
  }
}
