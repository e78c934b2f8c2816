// SPDX-License-Identifier: BSD-3-Clause
#include "program/operator.hpp"

#include "op/float_environment.hpp"
#include "program/parse.hpp"
#include "program/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::program {

/// A kernel is a plain function, for those that know no programs. So each of these has a place,
/// from which it takes the operator that it runs.
struct OperatorPlace {
  static inline std::array<std::atomic<const Operator*>, kMaxLoaded> all;

  template <std::size_t kPlace>
  static void run(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                  op::Copies copies) {
    all[kPlace].load(std::memory_order_acquire)->fold(out, inputs, count, bytes, copies);
  }
};

namespace {

std::mutex taking_places;

template <std::size_t... kPlaces>
constexpr std::array<op::ReduceKernel, kMaxLoaded> kernels_of(std::index_sequence<kPlaces...>) {
  return {OperatorPlace::run<kPlaces>...};
}

constexpr auto kKernels = kernels_of(std::make_index_sequence<kMaxLoaded>());

std::size_t take_place(const Operator& taker) {
  auto& places = OperatorPlace::all;
  const std::lock_guard lock(taking_places);
  const auto free = std::ranges::find_if(
      places, [](const auto& place) { return place.load(std::memory_order_relaxed) == nullptr; });
  if (free == places.end()) {
    throw std::runtime_error(
        fmt::format("{} operators are loaded; allowed: {} at once", kMaxLoaded, kMaxLoaded));
  }
  free->store(&taker, std::memory_order_release);
  return static_cast<std::size_t>(free - places.begin());
}

void expect_same_bits(const std::vector<std::byte>& found, const std::vector<std::byte>& due,
                      std::string_view what) {
  if (found != due) {
    throw std::runtime_error(fmt::format(
        "the trial: {} give other bits: this is an error of Weir, not of the operator", what));
  }
}

bool is_narrow_float(Format format) {
  return row_of(format).lane == Lane::f32 && format != Format::f32;
}

} // namespace

/// In ns for a lane, about twice what the slowest CPU level of an AMD EPYC (Zen 5) takes
/// (tests/bench/step_prices.cpp). Where a level has no vectors for a step, each lane costs as much
/// as another, however narrow it is.
double price_of(const Step& step, unsigned unit_lanes) {
  const double width = bytes_of(step.lane) / 4.0;
  const auto each = [&] {
    switch (step.op) {
    case Op::fma:
      return 3.2;
    case Op::load:
    case Op::store:
      return is_narrow_float(step.format) ? 2.0 : 0.8;
    case Op::load_mul_block:
    case Op::load_mul_add_block:
    case Op::floor_log2:
    case Op::pow2:
      return 2.0;
    case Op::div_block_store:
    case Op::quantise:
      return 3.0;
    case Op::convert:
      return 1.4;
    case Op::shl:
    case Op::shr:
    case Op::spread:
    case Op::div_block:
      return 0.8;
    case Op::div:
    case Op::sqrt:
      return 0.8 * width;
    case Op::mul:
    case Op::add_sat:
    case Op::sub_sat:
    case Op::min:
    case Op::max:
    case Op::clip:
    case Op::mul_block:
    case Op::mul_add_block:
    case Op::block_max:
    case Op::block_sum:
      return 0.5 * width;
    default:
      return 0.25 * width;
    }
  };
  const bool is_over_lanes = step.op == Op::block_max || step.op == Op::block_sum ||
                             step.op == Op::finite_block_max; // of which one value is left
  return each() / (step.per_block && !is_over_lanes ? unit_lanes : 1);
}

/// A reduction of eight ranks has one start and one finish.
double price_of(const Code& code) {
  constexpr double ranks = 8;
  const auto cost_of = [&](const std::vector<Step>& steps) {
    return std::accumulate(steps.begin(), steps.end(), 0.0, [&](double cost, const Step& step) {
      return cost + price_of(step, code.unit_lanes());
    });
  };
  const double lanes = 1024.0 / code.unit_bytes * code.unit_lanes();
  return lanes * (cost_of(code.start) + (ranks - 1) * cost_of(code.fold) + cost_of(code.finish)) /
         ranks;
}

namespace {

double measured(const FoldProgram& program, op::ReduceKernel stand_in) {
  constexpr int folds = 8;
  const op::DefaultFloatEnvironment environment;
  return Measurement(program, stand_in).least_ns(folds);
}

} // namespace

Operator::Operator(FoldProgram program, const Digest& digest, const StandIn& stand_in)
    : program_(std::move(program)), digest_(digest), price_(price_of(program_.code())),
      measured_(measured(program_, stand_in.is_wrong ? nullptr : stand_in.kernel)),
      stand_in_(stand_in.kernel), disagrees_(stand_in.is_wrong), place_(take_place(*this)),
      kernel_(kKernels[place_]) {}

Operator::~Operator() {
  const std::lock_guard lock(taking_places);
  OperatorPlace::all[place_].store(nullptr, std::memory_order_release);
}

void Operator::fold(std::byte* out, const std::byte* const* inputs, unsigned count,
                    std::size_t bytes, op::Copies copies) const {
  const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  turn_.store(turn + 1, std::memory_order_relaxed);
  if (has_kernel() && turn % kCheckEvery == 0) {
    return fold_twice(out, inputs, count, bytes, copies);
  }
  if (turn % kTimeEvery != 1) {
    return fold_once(out, inputs, count, bytes, copies);
  }
  const auto begin = std::chrono::steady_clock::now();
  fold_once(out, inputs, count, bytes, copies);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  note_time(took.count() * 1024 / static_cast<double>(count * bytes));
}

void Operator::fold_once(std::byte* out, const std::byte* const* inputs, unsigned count,
                         std::size_t bytes, op::Copies copies) const {
  if (has_kernel()) {
    stand_in_(out, inputs, count, bytes, copies);
  } else {
    program_.reduce(out, inputs, count, bytes, copies);
  }
}

/// A moving mean. This thread may have been stopped meanwhile, so one fold counts as four times the
/// mean at most.
void Operator::note_time(double ns) const {
  constexpr double weight = 1.0 / 8;
  const double before = measured_.load(std::memory_order_relaxed);
  const double most = 4 * before;
  measured_.store(before + weight * (std::min(ns, most) - before), std::memory_order_relaxed);
}

/// The loops' result counts.
void Operator::fold_twice(std::byte* out, const std::byte* const* inputs, unsigned count,
                          std::size_t bytes, op::Copies copies) const {
  thread_local std::vector<std::byte> other;
  other.resize(bytes);
  stand_in_(other.data(), inputs, count, bytes, {});
  program_.reduce(out, inputs, count, bytes, {});
  if (!std::equal(other.begin(), other.end(), out)) {
    disagrees_.store(true, std::memory_order_relaxed);
  }
  for (unsigned i = 0; i < copies.count; ++i) {
    std::copy_n(out, bytes, copies.to[i]);
  }
}

bool Operator::count(std::span<const std::uint8_t> result) const {
  packets_.fetch_add(1, std::memory_order_relaxed);
  if (!code().has_flags || result.size() < kFlagBytes) {
    return false;
  }
  const auto flags = result.last(kFlagBytes);
  const bool has_flag = std::ranges::any_of(flags, [](std::uint8_t byte) { return byte != 0; });
  if (has_flag) {
    flagged_.fetch_add(1, std::memory_order_relaxed);
  }
  return has_flag;
}

std::shared_ptr<const Operator> Operator::load(std::string_view text) {
  const op::DefaultFloatEnvironment environment;
  FoldProgram program(parse(text), op::best_cpu_level());
  const TrialData data(program.code());
  const std::vector<std::byte> results = results_of(data, program);
  expect_same_bits(results_of(data, {parse(text, Fusing::off), op::CpuLevel::baseline}), results,
                   "single steps and fused ones");
  check_rules(data, program);
  const Digest digest = digest_of(program.code().text, results);
  const StandIn stand_in = tried(known_kernel(digest, op::best_cpu_level()), data, results);
  return std::make_shared<const Operator>(std::move(program), digest, stand_in);
}

} // namespace weir::program
