// SPDX-License-Identifier: BSD-3-Clause

/// Measures each step of a fold program on each CPU level beside its price
/// (program::price_of), in ns a lane. A price is a bound, so the last column must stay below 1. On
/// a machine with other work, look at the best of several runs.

#include "op/kernel.hpp"
#include "program/loops.hpp"
#include "program/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace weir::bench {
namespace {

using program::Format;
using program::Lane;
using program::Op;
using program::Step;
using program::Tile;

struct NamedOp {
  std::string_view name;
  Op op;
};

constexpr std::array kOfAll{
    NamedOp{"copy", Op::copy},     NamedOp{"+", Op::add},        NamedOp{"-", Op::sub},
    NamedOp{"*", Op::mul},         NamedOp{"min", Op::min},      NamedOp{"max", Op::max},
    NamedOp{"neg", Op::neg},       NamedOp{"abs", Op::abs},      NamedOp{"<", Op::less},
    NamedOp{"<=", Op::less_equal}, NamedOp{"==", Op::equal},     NamedOp{"!=", Op::not_equal},
    NamedOp{"select", Op::select}, NamedOp{"spread", Op::spread}};
constexpr std::array kOfFloats{NamedOp{"/", Op::div}, NamedOp{"finite_abs", Op::finite_abs},
                               NamedOp{"fma", Op::fma}, NamedOp{"is_nan", Op::is_nan},
                               NamedOp{"sqrt", Op::sqrt}};
constexpr std::array kOfIntegers{NamedOp{"add_sat", Op::add_sat}, NamedOp{"sub_sat", Op::sub_sat},
                                 NamedOp{"&", Op::bit_and},       NamedOp{"|", Op::bit_or},
                                 NamedOp{"^", Op::bit_xor},       NamedOp{"~", Op::bit_not},
                                 NamedOp{"<<", Op::shl},          NamedOp{">>", Op::shr},
                                 NamedOp{"clip", Op::clip},       NamedOp{"flag", Op::flag}};
constexpr std::array kOfBlocks{NamedOp{"floor_log2", Op::floor_log2},
                               NamedOp{"pow2", Op::pow2},
                               NamedOp{"block_max", Op::block_max},
                               NamedOp{"block_sum", Op::block_sum},
                               NamedOp{"finite_block_max", Op::finite_block_max},
                               NamedOp{"mul_block", Op::mul_block},
                               NamedOp{"mul_add_block", Op::mul_add_block},
                               NamedOp{"div_block", Op::div_block}};
constexpr std::array kWithCodes{NamedOp{"load", Op::load},
                                NamedOp{"store", Op::store},
                                NamedOp{"quantise", Op::quantise},
                                NamedOp{"load_mul_block", Op::load_mul_block},
                                NamedOp{"load_mul_add_block", Op::load_mul_add_block},
                                NamedOp{"div_block_store", Op::div_block_store}};

constexpr unsigned kBlock = 32;

class StepPrices {
 public:
  explicit StepPrices(op::CpuLevel level) : level_(level), loops_(program::find_loops(level)) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<std::byte>(i * 2654435761U >> 7);
    }
    tile_.registers = memory_.data();
    tile_.block = kBlock;
  }

  void run() {
    for (std::size_t lane = 0; lane < program::kLanes; ++lane) {
      const auto of = static_cast<Lane>(lane);
      for (const NamedOp& op : kOfAll) {
        measure(op.name, {.op = op.op, .lane = of});
      }
      if (program::is_float(of)) {
        measure_all(kOfFloats, of);
      } else {
        measure_all(kOfIntegers, of);
      }
      for (std::size_t from = 0; from < program::kLanes; ++from) {
        measure(fmt::format("of {}", program::row_of(static_cast<Lane>(from)).name),
                {.op = Op::convert, .lane = of, .from = static_cast<Lane>(from)});
      }
    }
    measure_all(kOfBlocks, Lane::f32);
    for (std::size_t format = 0; format < program::kFormats; ++format) {
      measure_codes(static_cast<Format>(format));
    }
  }

 private:
  template <typename Ops>
  void measure_all(const Ops& ops, Lane lane) {
    for (const NamedOp& op : ops) {
      measure(op.name, {.op = op.op, .lane = lane, .format = Format::i8});
    }
  }

  void measure_codes(Format format) {
    const program::FormatRow& row = program::row_of(format);
    const bool is_narrow = row.lane == Lane::f32 && format != Format::f32;
    for (const NamedOp& op : kWithCodes) {
      const bool is_plain = op.op == Op::load || op.op == Op::store;
      if (is_plain || is_narrow) {
        measure_field(op, row, format, row.bits / 8);
      }
      if (is_plain && row.bits >= 8) {
        measure_field(op, row, format, 12); // in a struct
      }
    }
  }

  void measure_field(const NamedOp& op, const program::FormatRow& row, Format format,
                     unsigned stride) {
    tile_.in[0] = tile_.out[0] = {payload_.data() + 3, stride};
    const bool loads =
        op.op == Op::load || op.op == Op::load_mul_block || op.op == Op::load_mul_add_block;
    const bool stores = op.op == Op::store || op.op == Op::div_block_store;
    measure(fmt::format("{} {} each {} bytes", op.name, row.name, stride),
            {.op = op.op,
             .lane = row.lane,
             .to = static_cast<program::Operand>(stores ? 0 : 3),
             .a = static_cast<program::Operand>(loads ? 0 : 1),
             .format = format});
  }

  /// As many lanes as a KiB has of such numbers, so that what a step costs once is in.
  void measure(std::string_view name, Step step) {
    const unsigned bytes = std::max(bytes_of(step.lane), bytes_of(step.from));
    tile_.lanes = 1024 / bytes;
    tile_.blocks = tile_.lanes / kBlock;
    if (step.to == step.a) { // of no field
      step.to = 3;
      step.a = 1;
    }
    step.b = 2;
    step.c = 4;
    step.bits = 1;
    const double found = best_ns(step) / tile_.lanes;
    const double due = program::price_of(step, kBlock);
    fmt::print("{:10} {:4} {:34} {:8.3f} {:6.2f} {:6.2f}\n", op::name_of(level_),
               program::row_of(step.lane).name, name, found, due, found / due);
  }

  double best_ns(const Step& step) {
    double best = 1e9;
    for (unsigned round = 0; round < 15; ++round) {
      constexpr unsigned runs = 20;
      const auto begin = std::chrono::steady_clock::now();
      for (unsigned i = 0; i < runs; ++i) {
        loops_.run(&step, 1, tile_);
      }
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, spent.count() / runs);
    }
    return best;
  }

  op::CpuLevel level_;
  program::Loops loops_;
  Tile tile_;
  alignas(64) std::array<std::byte, (program::kMaxRegisters + 3) * program::kTileBytes> memory_{};
  std::array<std::byte, std::size_t{1024} * 16 + 64> payload_{};
};

} // namespace
} // namespace weir::bench

int main() {
  using weir::op::CpuLevel;
  fmt::print("{:10} {:4} {:34} {:>8} {:>6} {:>6}\n", "level", "lane", "step", "ns/lane", "price",
             "ratio");
  for (const CpuLevel level : {CpuLevel::baseline, CpuLevel::avx2, CpuLevel::avx512}) {
    if (level <= weir::op::best_cpu_level()) {
      weir::bench::StepPrices(level).run();
    }
  }
  return 0;
}
