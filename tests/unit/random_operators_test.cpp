// SPDX-License-Identifier: BSD-3-Clause

/// Texts by chance: all CPU levels give the same bits, by fused and by single steps
/// (docs/operators.md, "What must hold").

#include "operator_ways.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace weir::random_operators_test {
namespace {

using test::Dice;
using test::Packet;
using test::Packets;
using test::Way;

/// Texts by chance: each step of each lane, beside others.
class RandomText {
 public:
  explicit RandomText(unsigned seed) : dice_(seed) {}

  std::string next() { return dice_.below(3) == 0 ? of_blocks() : of_structs(); }

 private:
  using Words = std::vector<std::string>;

  struct Lane {
    std::string name;
    Words formats; // that are read in it
    bool is_float = false;
  };

  std::string of_structs();
  std::string of_blocks();
  std::string part(unsigned depth);
  std::string of_floats(unsigned depth);
  std::string of_integers(unsigned depth);
  std::string condition(unsigned depth);

  std::string pair(unsigned depth, const Words& signs) {
    return "(" + part(depth) + " " + dice_.one_of(signs) + " " + part(depth) + ")";
  }

  std::string call(const Words& functions, const Words& parts) {
    std::string text = dice_.one_of(functions) + "(";
    for (const std::string& one : parts) {
      text += (text.back() == '(' ? "" : ", ") + one;
    }
    return text + ")";
  }

  Dice dice_;
  Lane lane_;
  Words names_;
  bool is_finish_ = false;
};

std::string RandomText::condition(unsigned depth) {
  if (depth > 0 && dice_.below(4) == 0) {
    const std::string left = condition(depth - 1);
    return "(" + left + dice_.one_of(Words{" & ", " | ", " ^ "}) + "~" + condition(depth - 1) + ")";
  }
  if (lane_.is_float && dice_.below(4) == 0) {
    return "is_nan(" + part(depth) + ")";
  }
  return "(" + dice_.one_of(names_) + dice_.one_of(Words{" < ", " <= ", " > ", " == ", " != "}) +
         part(depth) + ")";
}

std::string RandomText::of_floats(unsigned depth) {
  const bool is_f32 = lane_.name == "f32";
  switch (dice_.below(is_f32 ? 6 : 4)) {
  case 0:
    return call({"abs", "finite_abs", "-"}, {part(depth)});
  case 1:
    return call({"fma"}, {part(depth), dice_.one_of(names_), part(depth)});
  case 2:
    return call({lane_.name},
                {call({"i32", "u32", "i64", "u64", "i16", "f32", "f64"}, {dice_.one_of(names_)})});
  case 3:
    return is_finish_ ? call({"sqrt", "-"}, {pair(depth, {"/"})}) : pair(depth, {"-"});
  case 4:
    return call({"floor_log2", "pow2"}, {part(depth)});
  default:
    return call({"f16", "bf16", "f8e4m3", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1", "mxint8"},
                {part(depth)});
  }
}

std::string RandomText::of_integers(unsigned depth) {
  switch (dice_.below(4)) {
  case 0:
    return call({"abs", "-", "~"}, {part(depth)});
  case 1:
    return call({"add_sat", "sub_sat"}, {dice_.one_of(names_), part(depth)});
  case 2:
    return call({lane_.name},
                {call({"i32", "u32", "i64", "u64", "i16", "f32", "f64"}, {dice_.one_of(names_)})});
  default:
    return pair(depth, {"&", "|", "^", "<<", ">>"});
  }
}

std::string RandomText::part(unsigned depth) {
  if (depth == 0) {
    return dice_.below(5) == 0 ? dice_.one_of(Words{"3", "0", "1"}) : dice_.one_of(names_);
  }
  const unsigned below = depth - 1;
  switch (dice_.below(6)) {
  case 0:
    return pair(below, {"+", "-", "*"});
  case 1:
    return call({"min", "max"}, {dice_.one_of(names_), part(below)});
  case 2:
    return call({"select"}, {condition(below), dice_.one_of(names_), part(below)});
  default:
    return lane_.is_float ? of_floats(below) : of_integers(below);
  }
}

std::string RandomText::of_structs() {
  static const std::vector<Lane> lanes{{"f32", {"f32", "f16", "bf16", "f8e4m3", "f8e5m2"}, true},
                                       {"f64", {"f64", "f32"}, true},
                                       {"i16", {"i16", "i8"}},
                                       {"i32", {"i32", "i16", "i8"}},
                                       {"u32", {"u32", "u16", "u8"}},
                                       {"i64", {"i64", "i32", "i16", "i8"}},
                                       {"u64", {"u64", "u32", "u16", "u8"}}};
  lane_ = dice_.one_of(lanes);
  const Words fields = dice_.below(2) == 0 ? Words{"v"} : Words{"v", "w"};
  std::string text = "weir-operator 1\nname random\nread ";
  for (const std::string& field : fields) {
    text += (field == "v" ? "" : ", ") + dice_.one_of(lane_.formats) + " " + field;
  }
  is_finish_ = false;
  names_ = fields;
  text += "\nlanes " + lane_.name + "\nidentity none\nstart acc = " + part(1);
  names_.emplace_back("acc");
  text += "\nfold acc = " + part(2);
  is_finish_ = true;
  names_ = {"acc"};
  text += "\nfinish flag 5 when " + condition(1) + "\n";
  for (const std::string& field : fields) {
    const std::string fit = lane_.is_float ? "round" : dice_.one_of(Words{"clip", "wrap"});
    text += "  out." + field + " = " + fit + "(" + part(2) + ")\n";
  }
  return text;
}

std::string RandomText::of_blocks() {
  const Words codes{"f8e4m3", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1", "mxint8", "f16", "bf16"};
  const Words scales{"e8m0", "e8m0", "f8e4m3", "f8e5m2", "f16", "bf16", "f32"};
  const Words sizes{"8", "16", "32", "64", "128"};
  const Words folds{"acc + x * s",
                    "x * s + acc",
                    "acc - x * s",
                    "max(acc, x * s)",
                    "fma(x, s, acc)",
                    "acc * s + x",
                    "acc + x * floor_log2(s)"};
  const Words largest{"block_max(finite_abs(acc))", "block_max(abs(acc))", "block_sum(acc)",
                      "finite_abs(block_sum(acc * acc))"};
  const Words powers{"pow2(max(floor_log2(m) - 3, -127))", "max(m, 0.015625)", "m + 1"};
  const std::string scale = dice_.one_of(scales);
  return "weir-operator 1\nname random\nread block " + dice_.one_of(sizes) + " of " +
         dice_.one_of(codes) + ", scale " + scale + "\nlanes f32\nidentity none\nstart acc = " +
         dice_.one_of(Words{"x * s", "x", "abs(x) * s"}) + "\nfold acc = " + dice_.one_of(folds) +
         "\nfinish m = " + dice_.one_of(largest) + "\n  t = " + dice_.one_of(powers) +
         "\n  scale = round(t)\n  out = round(" + dice_.one_of(Words{"acc / t", "acc", "acc * t"}) +
         ")\n";
}

TEST(RandomOperators, GiveTheSameBitsInAllWays) {
  constexpr unsigned texts = test::rounds(1500);
  Dice dice(3);
  RandomText random(4);
  unsigned refused = 0;
  for (unsigned number = 0; number < texts && !testing::Test::HasFailure(); ++number) {
    const std::string text = random.next();
    std::vector<Way> ways;
    try {
      ways = test::loops_of(text);
    } catch (const program::TextError&) { // a number that the lane does not have
      ++refused;
      continue;
    }
    for (const std::size_t bytes : {200U, 1024U, 4096U}) {
      const Packets inputs{dice.bytes(bytes), dice.bytes(bytes), dice.bytes(bytes)};
      const Packet due = ways.front().fold(inputs);
      for (const Way& way : ways) {
        EXPECT_EQ(way.fold(inputs), due) << way.name << "\n" << text;
      }
    }
  }
  EXPECT_LT(refused, texts / 10);
}

} // namespace
} // namespace weir::random_operators_test
