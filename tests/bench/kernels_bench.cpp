// SPDX-License-Identifier: BSD-3-Clause

/// Bytes of payload per second that each kernel reduces, that the ICRC check handles, and that both
/// together do. Plain reading of payloads in the same memory is measured in turn with them.

#include "frame_places.hpp"
#include "frame_work.hpp"
#include "measurement.hpp"
#include "op/kernel.hpp"

#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "kernels";

struct Measured {
  Case parameters;
  unsigned ranks = 0;
  From from = From::cache;
  Work work;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) { add_cases(); }

  void run() {
    for (unsigned round = 0; round < options_.rounds; ++round) {
      tell_progress(kPart, round, options_);
      for (const Measured& measured : cases_) {
        measure(measured, round);
      }
    }
  }

 private:
  void add(Case parameters, unsigned ranks, From from, Work work) {
    parameters.with("ranks", ranks).with("from", name_of(from));
    if (parameters.is_wanted(options_)) {
      cases_.push_back({std::move(parameters), ranks, from, std::move(work)});
    }
  }

  void add_both(const Case& parameters, unsigned ranks, const Work& work) {
    add(parameters, ranks, From::cache, work);
    add(parameters, ranks, From::memory, work);
  }

  void add_reduction(DataType type, Operation operation, op::CpuLevel level, unsigned ranks) {
    Case parameters;
    parameters.with("about", "kernels")
        .with("work", name_of(operation))
        .with("type", name_of(type));
    parameters.with("level", level == best_ ? "best" : name_of(level));
    add_both(parameters, ranks, reduction(places_, op::find_kernel(type, operation, level)));
  }

  void add_every_pair() {
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t o = 0; o < kOperations; ++o) {
        const auto type = static_cast<DataType>(t);
        const auto operation = static_cast<Operation>(o);
        if (is_reducible(type, operation)) {
          add_reduction(type, operation, best_, 8);
        }
      }
    }
  }

  void add_sums_by_ranks() {
    for (const DataType type :
         {DataType::f32, DataType::f16, DataType::bf16, DataType::f8e4m3, DataType::i32}) {
      for (const unsigned ranks : {2U, 4U, 16U, 32U, 64U}) {
        add_reduction(type, Operation::sum, best_, ranks);
      }
    }
  }

  void add_sums_by_level() {
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t level = 0; level < static_cast<std::size_t>(best_); ++level) {
        add_reduction(static_cast<DataType>(t), Operation::sum, static_cast<op::CpuLevel>(level),
                      8);
      }
    }
  }

  void add_bound_of_f8_sums() {
    const Case parameters =
        Case().with("about", "bound").with("work", "4 shifts or masks, 4 additions of f32");
    add_both(parameters, 8, addition_of_quarters(places_));
  }

  static Case icrc_case(std::string_view work) {
    return Case().with("about", "icrc").with("work", work);
  }

  void add_icrc() {
    const op::ReduceKernel sum = op::find_kernel(DataType::f32, Operation::sum, best_);
    for (const unsigned ranks : {2U, 8U, 64U}) {
      const Case verifying = icrc_case("verify");
      add_both(verifying, ranks, verification(places_, Ahead::nothing));
      const Case slot = icrc_case("verify+sum+recompute");
      add_both(slot, ranks, slot_arithmetic(places_, sum, Ahead::nothing));
    }
    for (const unsigned ranks : {2U, 8U, 64U}) {
      add(icrc_case("verify, lines ahead"), ranks, From::memory,
          verification(places_, Ahead::next_frames));
      add(icrc_case("verify+sum+recompute, lines ahead"), ranks, From::memory,
          slot_arithmetic(places_, sum, Ahead::next_frames));
    }
  }

  void add_cases() {
    add_icrc();
    add_every_pair();
    add_bound_of_f8_sums();
    if (options_.effort == Effort::full) {
      add_sums_by_ranks();
      add_sums_by_level();
    }
  }

  void measure(const Measured& measured, unsigned round) {
    const auto rate_of = [&](const Work& work) {
      const Groups groups = walk_.next(measured.ranks, measured.from);
      return groups.payload_bytes() / cpu_seconds_of([&] { work(groups); });
    };
    const Medians medians =
        measured_in_turn([&] { return rate_of(measured.work); }, [&] { return rate_of(reading_); });
    report(kPart, measured.parameters, round,
           {{"rate", medians.first / 1e9, "GB/s", "reading"},
            {"reading", medians.second / 1e9, "GB/s"}});
  }

  const Options options_;
  const op::CpuLevel best_ = op::best_cpu_level();
  const FramePlaces places_;
  const Work reading_ = reading(places_);
  Walk walk_{places_.size()};
  std::vector<Measured> cases_;
};

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  Bench(read_options(argc, argv, {kPart}, {.full = 9, .quick = 3})).run();
  return 0;
}
