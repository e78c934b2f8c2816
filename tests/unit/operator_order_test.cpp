// SPDX-License-Identifier: BSD-3-Clause

/// Whether the order of ranks matters is derived from an operator's text, never declared
/// (docs/operators.md, "What must hold").

#include "operator_ways.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::operator_order_test {
namespace {

using program::FoldProgram;
using test::Dice;
using test::Packet;
using test::Packets;
using test::put;
using test::Way;

std::string text_with(std::string_view lane, std::string_view start, std::string_view fold,
                      std::string_view finish = "out = acc") {
  return "weir-operator 1\nname order\nread " + std::string(lane) + " v\nlanes " +
         std::string(lane) + "\nidentity none\nstart " + std::string(start) + "\nfold " +
         std::string(fold) + "\nfinish " + std::string(finish) + "\n";
}

bool is_derived(const std::string& text) {
  return program::parse(text).order_never_matters;
}

/// Whether some contributions have another result in another order.
bool order_counts(const std::string& text) {
  const Way way{"loops",
                std::make_shared<const FoldProgram>(program::parse(text), op::best_cpu_level())};
  Dice dice(5);
  for (unsigned round = 0; round < 300; ++round) {
    Packets inputs{dice.bytes(16), dice.bytes(16), dice.bytes(16)};
    for (Packet& packet : inputs) {
      put(packet, 8, 0, 8); // no flags
    }
    const Packet due = way.fold(inputs);
    std::vector<std::size_t> order{0, 1, 2};
    while (std::ranges::next_permutation(order).found) {
      if (way.fold({inputs[order[0]], inputs[order[1]], inputs[order[2]]}) != due) {
        return true;
      }
    }
  }
  return false;
}

TEST(OrderOfRanks, NeverMattersForTheseOfIntegersAlone) {
  for (const std::string_view fold :
       {"acc = acc + v", "acc = acc * v", "acc = acc & v", "acc = acc | v", "acc = acc ^ v",
        "acc = min(acc, v)", "acc = max(acc, v)"}) {
    for (const std::string_view lane : {"i16", "i32", "u32", "i64", "u64"}) {
      const std::string text = text_with(lane, "acc = v", fold);
      EXPECT_TRUE(is_derived(text)) << text;
      EXPECT_FALSE(order_counts(text)) << text;
    }
    const bool is_bitwise = fold.find_first_of("&|^") != std::string_view::npos;
    for (const std::string_view lane : {"f32", "f64"}) {
      EXPECT_TRUE(is_bitwise || !is_derived(text_with(lane, "acc = v", fold))) << lane << fold;
    }
  }
}

TEST(OrderOfRanks, MattersWhereAnotherOneGivesOtherBits) {
  struct Row {
    std::string_view start;
    std::string_view fold;
  };

  for (const Row& row :
       {Row{"acc = v", "acc = acc - v"}, Row{"acc = v", "acc = v"}, Row{"acc = v", "acc = acc"},
        Row{"acc = v", "acc = acc << v"}, Row{"acc = v", "acc = acc >> v"},
        Row{"acc = v", "acc = add_sat(acc, v)"}, Row{"acc = v", "acc = sub_sat(acc, v)"},
        Row{"acc = v", "acc = (acc + v) >> 1"}, Row{"acc = v", "acc = acc + ~v"},
        Row{"acc = ~v", "acc = acc + v"}, Row{"acc = v", "acc = acc + acc"},
        Row{"acc = v", "acc = acc + (v ^ acc)"}, Row{"acc = v", "acc = acc ^ v\n  acc = acc + v"},
        Row{"acc = v\n  acc = acc * 3", "acc = acc + v"},
        Row{"acc = v", "flag when acc > 100\n  acc = acc + v"},
        Row{"acc = v", "acc = acc + v\n  flag when acc > 100"},
        Row{"acc = v", "flag when v > 100\n  acc = acc + v"},
        Row{"flag when v > 100\n  acc = v", "acc = acc + v"}}) {
    const std::string text = text_with("i32", row.start, row.fold);
    EXPECT_TRUE(order_counts(text)) << text;
    EXPECT_FALSE(is_derived(text)) << text;
  }
}

/// Texts by chance: what is derived holds.
TEST(OrderOfRanks, NeverMattersWhereItIsDerived) {
  Dice dice(6);
  const std::vector<std::string> values{"v", "v", "~v", "(v ^ 5)", "(v >> 1)", "min(v, 7)"};
  const std::vector<std::string> joins{"+", "*", "&", "|", "^", "-", "<<"};
  const std::vector<std::string> lines{"", "", "", "\n  flag when v > 9", "\n  flag when acc > 9"};
  unsigned derived = 0;
  unsigned others = 0;
  for (unsigned number = 0; number < test::rounds(1200); ++number) {
    const std::string& value = dice.one_of(values);
    const std::string& joined = dice.below(2) == 0 ? value : dice.one_of(values);
    const std::string fold = dice.below(3) == 0
                                 ? dice.one_of(std::vector<std::string>{"min", "max", "sub_sat"}) +
                                       "(acc, " + joined + ")"
                                 : "acc " + dice.one_of(joins) + " " + joined;
    const std::string lane = dice.one_of(std::vector<std::string>{"i16", "u32", "i64"});
    const std::string text =
        text_with(lane, "acc = " + value + dice.one_of(lines), "acc = " + fold + dice.one_of(lines),
                  dice.below(2) == 0 ? "out = acc" : "flag 3 when acc > 9\n  out = acc");
    if (!is_derived(text)) {
      ++others;
      continue;
    }
    ++derived;
    EXPECT_FALSE(order_counts(text)) << text;
  }
  EXPECT_GT(derived, test::rounds(200) / 4);
  EXPECT_GT(others, test::rounds(400) / 4);
}

TEST(OrderOfRanks, IsNeverDeclared) {
  const std::string text = text_with("f32", "acc = v", "acc = acc + v");
  ASSERT_FALSE(is_derived(text));
  for (const std::string_view word : {"order never matters", "order", "  order = never"}) {
    for (std::size_t at = 0; at != std::string::npos; at = text.find('\n', at)) {
      at += at == 0 ? 0 : 1;
      std::string more = text;
      more.insert(at, std::string(word) + "\n");
      EXPECT_THROW(program::parse(more), program::TextError) << more;
      more.insert(at, "#");
      EXPECT_FALSE(is_derived(more)) << more;
    }
  }
}

} // namespace
} // namespace weir::operator_order_test
