// SPDX-License-Identifier: BSD-3-Clause

/// The kernels that stand for programs of blocks, against the programs' single steps; and what
/// becomes of a kernel that gives other bits.

#include "op/kernel.hpp"
#include "program/fold_program.hpp"
#include "program/operator.hpp"
#include "program/parse.hpp"
#include "program/stand_in.hpp"
#include "program/trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace weir::block_sums_test {
namespace {

using op::BlockSum;
using op::CpuLevel;
using program::FoldProgram;
using program::Fusing;
using testing::Combine;
using testing::Values;

using Packet = std::vector<std::byte>;

std::string text_of(BlockSum sum) {
  const std::string name = sum == BlockSum::mxfp8_e4m3 ? "mxfp8-e4m3-sum" : "mxfp8-e5m2-sum";
  std::ifstream file(WEIR_SOURCE_ROOT "/config/operators/" + name + ".weir");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the blocks of a payload are like.
enum class Kind { random, one_scale, near_overflow, zeros };

struct Payloads {
  std::vector<Packet> data;
  std::vector<const std::byte*> at;
};

class BlockSums : public testing::TestWithParam<std::tuple<BlockSum, CpuLevel>> {
 protected:
  void SetUp() override {
    if (level() > op::best_cpu_level()) {
      GTEST_SKIP() << "this CPU has no " << op::name_of(level());
    }
    ASSERT_NE(kernel_, nullptr);
  }

  static BlockSum sum() { return std::get<0>(GetParam()); }

  static CpuLevel level() { return std::get<1>(GetParam()); }

  unsigned below(unsigned count) { return static_cast<unsigned>(dice_() % count); }

  /// From here on, products of the largest codes are infinite.
  static unsigned first_large() { return sum() == BlockSum::mxfp8_e4m3 ? 247 : 240; }

  std::byte scale(Kind kind, unsigned base) {
    switch (kind) {
    case Kind::one_scale:
      return static_cast<std::byte>(std::min(base + below(20), 254U));
    case Kind::near_overflow:
      return static_cast<std::byte>(std::min(first_large() - 3 + below(6), 255U));
    default:
      return static_cast<std::byte>(below(256));
    }
  }

  std::byte code(Kind kind) {
    if (kind == Kind::zeros) {
      return static_cast<std::byte>(below(8) == 0 ? below(256) : below(2) * 0x80);
    }
    const unsigned any = below(256);
    // Large, and no NaN: sums just below infinity and above it.
    return static_cast<std::byte>(kind == Kind::near_overflow ? any & 0xfb : any);
  }

  Payloads payloads(std::size_t bytes, unsigned count, Kind kind) {
    Payloads made;
    const std::size_t blocks = bytes / 33;
    const unsigned base = below(255);
    for (unsigned i = 0; i < count; ++i) {
      Packet& packet = made.data.emplace_back(bytes);
      std::ranges::generate(packet, [&] { return code(kind); });
      std::generate_n(packet.begin() + static_cast<std::ptrdiff_t>(32 * blocks), blocks,
                      [&] { return scale(kind, base); });
    }
    for (const Packet& packet : made.data) {
      made.at.push_back(packet.data());
    }
    return made;
  }

  Packet due(const Payloads& in, std::size_t bytes) const {
    Packet out(bytes);
    slow_.reduce(out.data(), in.at.data(), static_cast<unsigned>(in.at.size()), bytes, {});
    return out;
  }

  std::mt19937 dice_{1};
  op::ReduceKernel kernel_ = op::find_block_sum(sum(), level());
  FoldProgram fused_{program::parse(text_of(sum())), level()};
  FoldProgram slow_{program::parse(text_of(sum()), Fusing::off), CpuLevel::baseline};
};

INSTANTIATE_TEST_SUITE_P(Levels, BlockSums,
                         Combine(Values(BlockSum::mxfp8_e4m3, BlockSum::mxfp8_e5m2),
                                 Values(CpuLevel::avx2, CpuLevel::avx512, CpuLevel::avx512vbmi)));

TEST_P(BlockSums, HaveTheBitsOfSingleSteps) {
  constexpr std::array<std::size_t, 12> sizes{8,   33,  66,  99,   216,  256,
                                              488, 528, 984, 1024, 2008, 4096};
  for (unsigned round = 0; round < 600; ++round) {
    const std::size_t bytes = sizes[below(sizes.size())];
    const unsigned count = 1 + below(9);
    const auto kind = static_cast<Kind>(round % 4);
    const Payloads in = payloads(bytes, count, kind);
    Packet out(bytes, std::byte{0xaa});
    kernel_(out.data(), in.at.data(), count, bytes, {});
    const Packet right = due(in, bytes);
    ASSERT_EQ(out, right) << bytes << " bytes of " << count << " ranks, kind "
                          << static_cast<int>(kind) << ", round " << round;
    fused_.reduce(out.data(), in.at.data(), count, bytes, {});
    ASSERT_EQ(out, right) << "the program, " << bytes << " bytes of " << count << " ranks, kind "
                          << static_cast<int>(kind) << ", round " << round;
  }
}

std::vector<program::Op> ops_of(const std::vector<program::Step>& steps) {
  std::vector<program::Op> ops;
  for (const program::Step& step : steps) {
    ops.push_back(step.op);
  }
  return ops;
}

TEST_P(BlockSums, FuseTheStepsOfTheirPrograms) {
  using program::Op;
  using Ops = std::vector<Op>;
  EXPECT_EQ(ops_of(fused_.code().start), (Ops{Op::load, Op::load_mul_block}));
  EXPECT_EQ(ops_of(fused_.code().fold), (Ops{Op::load, Op::load_mul_add_block}));
  EXPECT_EQ(ops_of(fused_.code().finish), (Ops{Op::finite_block_max, Op::floor_log2, Op::sub,
                                               Op::max, Op::pow2, Op::store, Op::div_block_store}));
}

/// What is between two steps stays where somebody else wants it.
TEST(FusedSteps, KeepWhatOthersUse) {
  const std::string text = "weir-operator 1\nname x\nread block 32 of f8e4m3, scale e8m0\n"
                           "lanes f32\nidentity none\nstart acc = x * s\n"
                           "fold acc = acc + x * s\nfinish t = finite_abs(acc)\n  m = "
                           "block_max(t)\n  scale = pow2(floor_log2(m))\n  out = round(t)\n";
  for (const program::Step& step : program::parse(text).finish) {
    EXPECT_NE(step.op, program::Op::finite_block_max);
  }
}

TEST(Prices, CountLanesForWhatGoesOverThem) {
  using program::Lane;
  using program::Op;
  const auto price = [](Op op, Lane lane, bool per_block) {
    return program::price_of({.op = op, .lane = lane, .per_block = per_block}, 32);
  };
  EXPECT_EQ(price(Op::block_max, Lane::f32, true), price(Op::block_max, Lane::f32, false));
  EXPECT_EQ(price(Op::add, Lane::f32, true) * 32, price(Op::add, Lane::f32, false));
  EXPECT_EQ(price(Op::shr, Lane::i16, false), price(Op::shr, Lane::i32, false));
}

TEST_P(BlockSums, TakeAsManyInputsAsAGroupHas) {
  const Payloads in = payloads(1024, op::kMostBlockInputs, Kind::one_scale);
  Packet out(1024);
  kernel_(out.data(), in.at.data(), op::kMostBlockInputs, 1024, {});
  EXPECT_EQ(out, due(in, 1024));
}

TEST_P(BlockSums, CopyTheirResultInPlaceOfInputs) {
  Payloads in = payloads(984, 5, Kind::one_scale);
  const Packet sum = due(in, 984);
  Packet elsewhere(984);
  const std::array<std::byte*, 2> copies{in.data[2].data(), elsewhere.data()};
  Packet out(984);
  kernel_(out.data(), in.at.data(), 5, 984, {copies.data(), copies.size()});
  EXPECT_EQ(out, sum);
  EXPECT_EQ(in.data[2], sum);
  EXPECT_EQ(elsewhere, sum);
}

class StandsIn : public testing::TestWithParam<BlockSum> {};

INSTANTIATE_TEST_SUITE_P(Sums, StandsIn, Values(BlockSum::mxfp8_e4m3, BlockSum::mxfp8_e5m2));

TEST_P(StandsIn, ForTheShippedText) {
  const auto loaded = program::Operator::load(text_of(GetParam()));
  for (const CpuLevel level : {CpuLevel::baseline, CpuLevel::avx2, CpuLevel::avx512vbmi}) {
    EXPECT_EQ(program::known_kernel(loaded->digest(), level),
              op::find_block_sum(GetParam(), level));
  }
}

TEST_P(StandsIn, OnlyIfItGivesTheSameBits) {
  const FoldProgram loops(program::parse(text_of(GetParam())), op::best_cpu_level());
  const program::TrialData data(loops.code());
  const auto results = program::results_of(data, loops);
  const op::ReduceKernel right = op::find_block_sum(GetParam(), op::best_cpu_level());
  EXPECT_EQ(program::tried(right, data, results).kernel, right);
  EXPECT_FALSE(program::tried(right, data, results).is_wrong);
  const op::ReduceKernel other = op::find_kernel(DataType::u8, Operation::sum, CpuLevel::baseline);
  EXPECT_EQ(program::tried(other, data, results).kernel, nullptr);
  EXPECT_TRUE(program::tried(other, data, results).is_wrong);
  EXPECT_FALSE(program::tried(nullptr, data, results).is_wrong);
}

// ----------------------------------------------------------------------- direct folds of programs

/// min, max and sums whose fold is one step, of each lane: in registers of the CPU at once.
class DirectFold : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

INSTANTIATE_TEST_SUITE_P(Lanes, DirectFold,
                         Combine(Values("f32", "f64", "i16", "i32", "u32", "i64", "u64"),
                                 Values("acc + v", "min(acc, v)", "max(acc, v)")));

TEST_P(DirectFold, HasTheBitsOfSingleSteps) {
  const std::string lane = std::get<0>(GetParam());
  const std::string text = "weir-operator 1\nname direct\nread " + lane + " v\nlanes " + lane +
                           "\nidentity none\nstart acc = v\nfold acc = " + std::get<1>(GetParam()) +
                           "\nfinish out = acc\n";
  ASSERT_TRUE(program::is_direct_to_end(program::parse(text)));
  ASSERT_FALSE(program::is_direct(program::parse(text, Fusing::off)));
  const FoldProgram slow(program::parse(text, Fusing::off), CpuLevel::baseline);
  std::mt19937 dice(2);
  for (const CpuLevel level : {CpuLevel::baseline, CpuLevel::avx2, CpuLevel::avx512}) {
    if (level > op::best_cpu_level()) {
      continue;
    }
    const FoldProgram fast(program::parse(text), level);
    for (const std::size_t bytes : {8U, 40U, 984U, 1024U, 8192U + 24U}) {
      std::vector<Packet> data(1 + dice() % 6, Packet(bytes));
      std::vector<const std::byte*> in;
      for (Packet& packet : data) {
        std::ranges::generate(packet, [&] { return static_cast<std::byte>(dice()); });
        in.push_back(packet.data());
      }
      Packet out(bytes);
      Packet due(bytes);
      fast.reduce(out.data(), in.data(), static_cast<unsigned>(in.size()), bytes, {});
      slow.reduce(due.data(), in.data(), static_cast<unsigned>(in.size()), bytes, {});
      ASSERT_EQ(out, due) << op::name_of(level) << ", " << bytes << " bytes";
    }
  }
}

} // namespace
} // namespace weir::block_sums_test
