// SPDX-License-Identifier: BSD-3-Clause

/// What others would use for the same bytes, in this process: ISA-L's CRC for the check of a frame,
/// a parameter server's loop for the sum of eight ranks. rivals.py has the other programs.

#include "frame_places.hpp"
#include "frame_work.hpp"
#include "measurement.hpp"
#include "op/kernel.hpp"
#include "openmp_sum.hpp"
#include "parameter_server.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "rivals";
constexpr unsigned kRanks = ServerBuffers::kRanks;

/// Groups of frames whose payloads are as many bytes as a server's buffers in cache, and how often
/// they are gone through until a slice is long enough.
constexpr std::size_t kGroupsInCache = ServerBuffers::kInCache / FramePlaces::kPayload;
constexpr unsigned kPasses = 16;

/// Seconds of a piece of work, by the clock or of this thread's computing.
using Stopwatch = double (*)(const std::function<void()>&);

double by_the_clock(const std::function<void()>& work) {
  return seconds_of(work);
}

double of_computing(const std::function<void()>& work) {
  return cpu_seconds_of(work);
}

struct Comparison {
  Case parameters;
  Rate weir;
  Rate rival;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    add_checks();
    add_sums();
  }

  void run() {
    for (unsigned round = 0; round < options_.rounds; ++round) {
      tell_progress(kPart, round, options_);
      for (const Comparison& comparison : comparisons_) {
        measure(comparison, round);
      }
    }
  }

 private:
  void add(const Case& parameters, Rate weir, Rate rival) {
    if (parameters.is_wanted(options_)) {
      comparisons_.push_back({parameters, std::move(weir), std::move(rival)});
    }
  }

  static Case case_of(std::string_view about, std::string_view work, std::string_view rival,
                      From from) {
    return Case()
        .with("about", about)
        .with("work", work)
        .with("rival", rival)
        .with("from", name_of(from));
  }

  /// Of frames one after the other; from memory each has its lines asked for by the same distance.
  void add_checks() {
    for (const From from : {From::cache, From::memory}) {
      const Ahead ahead = from == From::cache ? Ahead::nothing : Ahead::next_frames;
      const Rate isal = walking(isal_crc(places_, ahead), from);
      add(case_of("check", "verify", "ISA-L's CRC", from),
          walking(verification(places_, ahead), from), isal);
      add(case_of("check", "verify+sum+recompute", "ISA-L's CRC", from),
          walking(slot_arithmetic(places_, sum_, ahead), from), isal);
    }
  }

  void add_sums() {
    const unsigned cores = openmp_cpus();
    if (cores == 0 || best_ < op::CpuLevel::avx2) {
      fmt::print(stderr, "rivals: no parameter server's sum: {}\n",
                 cores == 0 ? "the compiler has no OpenMP" : "the CPU has no AVX2");
      return;
    }
    add_sums_beside(1, of_computing);
    if (cores > 1) {
      add_sums_beside(cores, by_the_clock);
    }
  }

  /// Weir's sums are one lcore's in any case.
  void add_sums_beside(unsigned threads, Stopwatch stopwatch) {
    const std::string rival = fmt::format("OpenMP, {} thread{}", threads, threads == 1 ? "" : "s");
    for (const From from : {From::cache, From::memory}) {
      const Ahead ahead = from == From::cache ? Ahead::nothing : Ahead::next_frames;
      const Rate server = adding(threads, from, stopwatch);
      add(case_of("sum", "sum", rival, from), going(reduction(places_, sum_), from, stopwatch),
          server);
      add(case_of("sum", "verify+sum+recompute", rival, from),
          going(slot_arithmetic(places_, sum_, ahead), from, stopwatch), server);
    }
  }

  Rate walking(Work work, From from) {
    return [this, work = std::move(work), from] {
      const Groups groups = walk_.next(kRanks, from);
      return groups.payload_bytes() / cpu_seconds_of([&] { work(groups); });
    };
  }

  /// Through as much memory as the server's buffers.
  Rate going(Work work, From from, Stopwatch stopwatch) {
    return [this, work = std::move(work), from, stopwatch] {
      const Groups groups = from == From::cache ? Groups{0, kRanks, kGroupsInCache, kRanks}
                                                : walk_.next(kRanks, from);
      const unsigned passes = from == From::cache ? kPasses : 1;
      const double seconds = stopwatch([&] {
        for (unsigned pass = 0; pass < passes; ++pass) {
          work(groups);
        }
      });
      return passes * groups.payload_bytes() / seconds;
    };
  }

  Rate adding(unsigned threads, From from, Stopwatch stopwatch) {
    return [this, threads, from, stopwatch] {
      const bool is_cached = from == From::cache;
      const std::size_t bytes = is_cached ? ServerBuffers::kInCache : ServerBuffers::kPartition;
      const std::size_t first = is_cached ? 0 : buffers_.next_partitions();
      const unsigned passes = is_cached ? kPasses : 1;
      const double seconds = stopwatch([&] {
        for (unsigned pass = 0; pass < passes; ++pass) {
          buffers_.add_all(first, bytes, threads);
        }
      });
      return static_cast<double>(passes * kRanks * bytes) / seconds;
    };
  }

  void measure(const Comparison& comparison, unsigned round) {
    const Medians medians = measured_in_turn(comparison.weir, comparison.rival);
    report(
        kPart, comparison.parameters, round,
        {{"weir", medians.first / 1e9, "GB/s", "rival"}, {"rival", medians.second / 1e9, "GB/s"}});
  }

  const Options options_;
  const op::CpuLevel best_ = op::best_cpu_level();
  const op::ReduceKernel sum_ = op::find_kernel(DataType::f32, Operation::sum, best_);
  const FramePlaces places_;
  ServerBuffers buffers_;
  Walk walk_{places_.size()};
  std::vector<Comparison> comparisons_;
};

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  Bench(read_options(argc, argv, {kPart}, {.full = 9, .quick = 3})).run();
  return 0;
}
