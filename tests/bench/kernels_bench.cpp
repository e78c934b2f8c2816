// SPDX-License-Identifier: BSD-3-Clause

/// Bytes of payload per second that each kernel reduces, that the ICRC check handles, and that both
/// together do. Plain reading of payloads in the same memory is measured in turn with them; beside
/// operators (docs/operators.md), the built-in sum of the same type.

#include "files/whole_file.hpp"
#include "frame_places.hpp"
#include "frame_work.hpp"
#include "measurement.hpp"
#include "op/kernel.hpp"
#include "program/fold_program.hpp"
#include "program/parse.hpp"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
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
  std::string_view beside_name; // what is measured in turn with it
  Work beside;
};

/// An operator, its kernel if it has one, and the built-in sum that a user would have instead.
struct MeasuredOperator {
  std::string_view name;
  DataType beside{};
  std::optional<op::BlockSum> kernel;
};

constexpr std::array kOperators{
    MeasuredOperator{"f32-sum", DataType::f32, std::nullopt},
    MeasuredOperator{"mxfp8-e4m3-sum", DataType::f8e4m3, op::BlockSum::mxfp8_e4m3},
    MeasuredOperator{"mxfp8-e5m2-sum", DataType::f8e5m2, op::BlockSum::mxfp8_e5m2},
};

program::Code code_of(std::string_view name) {
  const std::string file = WEIR_OPERATORS "/" + std::string(name) + ".weir";
  const auto text = files::read_whole(file);
  if (!text) {
    throw std::runtime_error(file + " cannot be read");
  }
  return program::parse(*text);
}

/// The loops of a program, as reduction() has kernels.
Work folding(const FramePlaces& places, program::FoldProgram program) {
  return [&places, program = std::move(program)](const Groups& groups) {
    alignas(64) std::array<std::byte, FramePlaces::kPayload> out;
    for (std::size_t group = 0; group < groups.groups; ++group) {
      program.reduce(out.data(), places.payloads() + groups.first + group * groups.stride,
                     groups.ranks, out.size(), {});
      asm volatile("" : : "r"(out.data()) : "memory");
    }
  };
}

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
    add_beside(std::move(parameters), ranks, from, std::move(work), "reading", reading_);
  }

  void add_beside(Case parameters, unsigned ranks, From from, Work work, std::string_view name,
                  Work beside) {
    parameters.with("ranks", ranks).with("from", name_of(from));
    if (parameters.is_wanted(options_)) {
      cases_.push_back(
          {std::move(parameters), ranks, from, std::move(work), name, std::move(beside)});
    }
  }

  void add_operator(const MeasuredOperator& by, op::CpuLevel level, unsigned ranks) {
    const Work built_in = reduction(places_, op::find_kernel(by.beside, Operation::sum, level));
    const auto add_by = [&](std::string_view means, Work work) {
      Case parameters;
      parameters.with("about", "operators").with("work", by.name).with("by", means);
      parameters.with("level", op::name_of(level));
      add_beside(parameters, ranks, From::cache, std::move(work), "built-in sum", built_in);
    };
    add_by("program", folding(places_, {code_of(by.name), level}));
    const op::ReduceKernel kernel = by.kernel ? op::find_block_sum(*by.kernel, level) : nullptr;
    if (kernel != nullptr) {
      add_by("kernel", reduction(places_, kernel));
    }
  }

  void add_operators() {
    for (const MeasuredOperator& by : kOperators) {
      for (std::size_t level = 0; level <= static_cast<std::size_t>(best_); ++level) {
        add_operator(by, static_cast<op::CpuLevel>(level), 8);
      }
      for (const unsigned ranks : {2U, 64U}) {
        add_operator(by, best_, ranks);
      }
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
    add_operators();
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
    const Medians medians = measured_in_turn([&] { return rate_of(measured.work); },
                                             [&] { return rate_of(measured.beside); });
    report(kPart, measured.parameters, round,
           {{"rate", medians.first / 1e9, "GB/s", measured.beside_name},
            {measured.beside_name, medians.second / 1e9, "GB/s"}});
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
