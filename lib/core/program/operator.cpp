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
#include <mutex>
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

} // namespace

/// In ns for a lane; a reduction of eight ranks has one start and one finish.
double price_of(const Code& code) {
  constexpr double ns_per_lane = 0.1; // of a slow and busy CPU
  constexpr double ranks = 8;
  const auto cost_of = [&](const std::vector<Step>& steps) {
    double cost = 0;
    for (const Step& step : steps) {
      const double width = bytes_of(step.lane) / 4.0;
      // One lane after the other where the CPU has no vectors for them: no FMA, no count of zeros.
      const bool is_by_lane = step.op == Op::fma || step.op == Op::quantise ||
                              step.op == Op::floor_log2 || step.op == Op::pow2;
      const bool is_slow = step.op == Op::div || step.op == Op::sqrt || step.op == Op::convert ||
                           step.op == Op::load || step.op == Op::store;
      const double each = is_by_lane ? 16 : is_slow ? 4 : 1;
      cost += each * width / (step.per_block ? code.unit_lanes() : 1);
    }
    return cost;
  };
  const double lanes = 1024.0 / code.unit_bytes * code.unit_lanes();
  return lanes * ns_per_lane *
         (cost_of(code.start) + (ranks - 1) * cost_of(code.fold) + cost_of(code.finish)) / ranks;
}

Operator::Operator(FoldProgram program, const Digest& digest, const StandIn& stand_in)
    : program_(std::move(program)), digest_(digest), price_(price_of(program_.code())),
      stand_in_(stand_in.kernel), disagrees_(stand_in.is_wrong), place_(take_place(*this)),
      kernel_(kKernels[place_]) {}

Operator::~Operator() {
  const std::lock_guard lock(taking_places);
  OperatorPlace::all[place_].store(nullptr, std::memory_order_release);
}

void Operator::fold(std::byte* out, const std::byte* const* inputs, unsigned count,
                    std::size_t bytes, op::Copies copies) const {
  if (!has_kernel()) {
    return program_.reduce(out, inputs, count, bytes, copies);
  }
  const std::uint32_t until_check = until_check_.load(std::memory_order_relaxed);
  if (until_check == 0) {
    return fold_twice(out, inputs, count, bytes, copies);
  }
  until_check_.store(until_check - 1, std::memory_order_relaxed);
  stand_in_(out, inputs, count, bytes, copies);
}

/// The loops' result counts.
void Operator::fold_twice(std::byte* out, const std::byte* const* inputs, unsigned count,
                          std::size_t bytes, op::Copies copies) const {
  until_check_.store(kCheckEvery - 1, std::memory_order_relaxed);
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
