// SPDX-License-Identifier: BSD-3-Clause

/// What must hold of every operator (docs/operators.md), on random bytes: tests for the rules of
/// the page's table, but for the order of ranks (operator_order_test.cpp). Each text of
/// config/operators is folded by the loops of all CPU levels that this machine has, fused and as
/// single steps, and by the kernel that may stand for it. kShipped tells by hand what a packet has.

#include "operator_ways.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::operator_rules_test {
namespace {

using test::bits_at;
using test::Dice;
using test::Packet;
using test::Packets;
using test::put;
using test::Way;

// ------------------------------------------------------------------------------ what is shipped

/// Numbers that may be NaN.
enum class Floats : std::uint8_t { none, f32, f64, e4m3, e5m2 };

struct FloatRow {
  std::size_t bytes = 0;
  std::uint64_t largest = 0; // magnitude that is no NaN
  std::uint64_t nan = 0;     // the canonical one
  std::uint64_t one = 0;
};

FloatRow row_of(Floats floats) {
  switch (floats) {
  case Floats::f32:
    return {4, 0x7f800000, 0x7fc00000, 0x3f800000};
  case Floats::f64:
    return {8, 0x7ff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000};
  case Floats::e4m3:
    return {1, 0x7e, 0x7f, 0x38};
  case Floats::e5m2:
    return {1, 0x7c, 0x7e, 0x3c};
  case Floats::none:
    break;
  }
  return {1, 0xff, 0, 1};
}

struct Shipped {
  std::string_view name;
  std::size_t unit = 0;      // bytes of a struct, or of a block's codes
  std::size_t scale = 0;     // bytes of a block's scale; 0: structs
  std::string_view identity; // of a unit, in hexadecimal digits, again and again; its scale is 0
  Floats floats = Floats::none;
  std::size_t count = 0; // of them, at the beginning of a unit
  Floats scale_floats = Floats::none;
  std::size_t flags = 0; // bytes at a packet's end
};

constexpr std::string_view kNone; // no identity
constexpr std::array kShipped{
    Shipped{"clipped-i8-sum", 1, 0, "00", Floats::none, 0, Floats::none, 8},
    Shipped{"complex-product", 8, 0, kNone, Floats::f32, 2},
    Shipped{"complex-product-f64", 16, 0, kNone, Floats::f64, 2},
    Shipped{"f32-sum", 4, 0, "00000080", Floats::f32, 1},
    Shipped{"maxloc", 8, 0, "000080ffffffffff", Floats::f32, 1},
    Shipped{"maxloc-f64-i64", 16, 0, "000000000000f0ffffffffffffffff7f", Floats::f64, 1},
    Shipped{"minloc", 8, 0, "0000807fffffffff", Floats::f32, 1},
    Shipped{"minloc-f64-i64", 16, 0, "000000000000f07fffffffffffffff7f", Floats::f64, 1},
    Shipped{"mxfp4-sum", 16, 1, "88"},
    Shipped{"mxfp6-e2m3-sum", 24, 1, "200882"},
    Shipped{"mxfp6-e3m2-sum", 24, 1, "200882"},
    Shipped{"mxfp8-e4m3-sum", 32, 1, "80", Floats::e4m3, 32},
    Shipped{"mxfp8-e5m2-sum", 32, 1, "80", Floats::e5m2, 32},
    Shipped{"mxint8-sum", 32, 1, "00"},
    Shipped{"nvfp4-sum", 8, 1, kNone, Floats::none, 0, Floats::e4m3},
    Shipped{"valid-sum", 8, 0, "0000008000000000", Floats::f32, 1},
};

TEST(ShippedOperators, AreAllHere) {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_SOURCE_ROOT "/config/operators")) {
    files.insert(entry.path().stem());
  }
  std::set<std::string> rows;
  for (const Shipped& one : kShipped) {
    rows.emplace(one.name);
  }
  EXPECT_EQ(rows, files);
}

op::ReduceKernel kernel_for(std::string_view name, op::CpuLevel level) {
  if (name == "mxfp8-e4m3-sum") {
    return op::find_block_sum(op::BlockSum::mxfp8_e4m3, level);
  }
  return name == "mxfp8-e5m2-sum" ? op::find_block_sum(op::BlockSum::mxfp8_e5m2, level) : nullptr;
}

std::vector<Way> ways_of(std::string_view name) {
  std::vector<Way> ways = test::loops_of(test::operator_text(name));
  for (const op::CpuLevel level : test::levels()) {
    if (const op::ReduceKernel kernel = kernel_for(name, level)) {
      ways.push_back({"the kernel on " + std::string(op::name_of(level)), nullptr, kernel});
    }
  }
  return ways;
}

class OperatorRules : public testing::TestWithParam<Shipped> {
 protected:
  static const Shipped& row() { return GetParam(); }

  static std::size_t units(std::size_t bytes) {
    return bytes < row().flags ? 0 : (bytes - row().flags) / (row().unit + row().scale);
  }

  static std::size_t used(std::size_t bytes) { return units(bytes) * (row().unit + row().scale); }

  /// In half of the elements zeros, ones, infinity and NaN of all kinds.
  void put_specials(Packet& packet) {
    const FloatRow floats = row_of(row().floats);
    const std::uint64_t sign = std::uint64_t{1} << (8 * floats.bytes - 1);
    const std::vector<std::uint64_t> specials{0,
                                              sign,
                                              1,
                                              floats.one,
                                              floats.one | sign,
                                              floats.largest - 1,
                                              floats.largest,
                                              floats.largest | sign,
                                              floats.largest + 1,
                                              floats.nan | 1,
                                              floats.nan | sign};
    for (std::size_t at = 0; at + floats.bytes <= used(packet.size()); at += floats.bytes) {
      if (dice_.below(2) == 0) {
        put(packet, at, dice_.one_of(specials), floats.bytes);
      }
    }
  }

  /// Near one another, so that sums are of several values.
  void put_scales(Packet& packet, unsigned first) {
    const std::size_t count = units(packet.size());
    for (std::size_t unit = 0; unit < count; ++unit) {
      put(packet, count * row().unit + unit, std::min(first + dice_.below(12), 255U), 1);
    }
  }

  /// Most codes are 0: what is left of a block may be small.
  void put_zeros(Packet& packet) {
    for (std::size_t at = 0; at < units(packet.size()) * row().unit; ++at) {
      packet[at] = dice_.below(8) == 0 ? packet[at] : std::byte{0};
    }
  }

  /// Random bytes; in every other call half of them are what random bytes seldom are.
  Packets contributions(std::size_t bytes, std::size_t ranks) {
    Packets all;
    const bool are_random = dice_.below(2) == 0;
    const bool are_few = dice_.below(2) == 0;
    const unsigned first_scale = dice_.one_of(std::vector<unsigned>{0, 120, 244, dice_.below(256)});
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Packet& packet = all.emplace_back(dice_.bytes(bytes));
      if (!are_random && row().scale == 0) {
        put_specials(packet);
      } else if (!are_random) {
        put_scales(packet, first_scale);
      }
      if (are_few && row().scale != 0) {
        put_zeros(packet);
      }
    }
    return all;
  }

  /// Calls `look(way, contributions)` for many packets and each way.
  template <typename Look>
  void for_many(Look&& look) {
    for (unsigned round = 0; round < 60 && !HasFailure(); ++round) {
      const std::size_t bytes = dice_.one_of(kSizes);
      const Packets inputs = contributions(bytes, 1 + dice_.below(7));
      for (const Way& way : ways_) {
        SCOPED_TRACE(way.name + ", " + std::to_string(inputs.size()) + " ranks of " +
                     std::to_string(bytes) + " bytes, round " + std::to_string(round));
        look(way, inputs);
      }
    }
  }

  /// The units in another order.
  static Packet reordered(const Packet& packet, const std::vector<std::size_t>& order) {
    Packet result = packet;
    std::size_t begin = 0;
    for (const std::size_t size : {row().unit, row().scale}) {
      for (std::size_t unit = 0; unit < order.size(); ++unit) {
        std::copy_n(packet.data() + begin + order[unit] * size, size,
                    result.data() + begin + unit * size);
      }
      begin += order.size() * size;
    }
    return result;
  }

  /// So many units' identities, and zeros.
  static Packet identities(std::size_t count, std::size_t bytes) {
    Packet packet(bytes);
    const std::string_view digits = row().identity;
    for (std::size_t at = 0; at < count * row().unit; ++at) {
      const std::string pair(digits.substr(2 * at % digits.size(), 2));
      packet[at] = static_cast<std::byte>(std::stoul(pair, nullptr, 16));
    }
    return packet;
  }

  static std::uint64_t flags_of(const Packet& packet) {
    const bool has_some = row().flags != 0 && packet.size() >= row().flags;
    return has_some ? bits_at(packet, packet.size() - row().flags, row().flags) : 0;
  }

  inline static const std::vector<std::size_t> kSizes{8, 16, 40, 200, 984, 1024, 2008, 4096};
  Dice dice_{1};
  std::vector<Way> ways_ = ways_of(row().name);
};

std::string name_of(const testing::TestParamInfo<Shipped>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

template <typename Is>
std::vector<Shipped> those_that(Is&& is) {
  std::vector<Shipped> some;
  std::ranges::copy_if(kShipped, std::back_inserter(some), is);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Shipped, OperatorRules, testing::ValuesIn(kShipped), name_of);

/// Their finish rounds nothing.
class ExactOperatorRules : public OperatorRules {};

INSTANTIATE_TEST_SUITE_P(Shipped, ExactOperatorRules,
                         testing::ValuesIn(those_that([](const Shipped& one) {
                           return one.scale == 0 && one.flags == 0;
                         })),
                         name_of);

class IdentityOperatorRules : public OperatorRules {};

INSTANTIATE_TEST_SUITE_P(Shipped, IdentityOperatorRules,
                         testing::ValuesIn(those_that([](const Shipped& one) {
                           return one.identity != kNone;
                         })),
                         name_of);

/// Several codes of theirs are NaN.
class NanOperatorRules : public OperatorRules {};

INSTANTIATE_TEST_SUITE_P(Shipped, NanOperatorRules,
                         testing::ValuesIn(those_that([](const Shipped& one) {
                           return one.floats != Floats::none || one.scale_floats != Floats::none;
                         })),
                         name_of);

// -------------------------------- A left fold in the order of ranks, from the contributions alone

TEST_P(OperatorRules, APositionsResultDoesNotDependOnItsPlace) {
  for_many([&](const Way& way, const Packets& inputs) {
    const auto order = dice_.permutation(units(inputs.front().size()));
    Packets others;
    for (const Packet& packet : inputs) {
      others.push_back(reordered(packet, order));
    }
    EXPECT_EQ(way.fold(others), reordered(way.fold(inputs), order));
  });
}

/// Of one unit all ranks have something else.
TEST_P(OperatorRules, APositionsResultDoesNotDependOnOthers) {
  for_many([&](const Way& way, const Packets& inputs) {
    const std::size_t count = units(inputs.front().size());
    if (count == 0) {
      return;
    }
    const std::size_t changed = dice_.below(count) * row().unit;
    Packets others = inputs;
    for (Packet& packet : others) {
      std::ranges::copy(dice_.bytes(row().unit),
                        packet.begin() + static_cast<std::ptrdiff_t>(changed));
    }
    const Packet due = way.fold(inputs);
    const Packet found = way.fold(others);
    for (std::size_t at = 0; at < used(due.size()); ++at) {
      const bool is_its_own = at >= changed && at < changed + row().unit;
      const bool is_its_scale =
          at >= count * row().unit && at - count * row().unit == changed / row().unit * row().scale;
      ASSERT_TRUE(is_its_own || is_its_scale || due[at] == found[at]) << "byte " << at;
    }
  });
}

/// What the first ranks give is all that the later ones need. Operators that round are held against
/// numpy (tests/operators).
TEST_P(ExactOperatorRules, LaterRanksAreJoinedToTheResultOfEarlierOnes) {
  for_many([&](const Way& way, const Packets& inputs) {
    const auto earlier = static_cast<std::ptrdiff_t>(1 + dice_.below(inputs.size()));
    Packets rest(inputs.begin() + earlier, inputs.end());
    rest.insert(rest.begin(), way.fold({inputs.begin(), inputs.begin() + earlier}));
    EXPECT_EQ(way.fold(rest), way.fold(inputs));
  });
}

std::string text_of_depth(unsigned depth) {
  std::string text =
      "weir-operator 1\nname full\nread u16 v\nlanes u32\nidentity none\nstart a = v\n";
  for (const char name : std::string_view("bcdefgh")) {
    text += std::string("  ") + name + " = v\n";
  }
  text += "fold a = ";
  for (unsigned i = 0; i < depth; ++i) {
    text += "(v + a) ^ (";
  }
  return text + "v" + std::string(depth, ')') + "\nfinish out = wrap(a)\n";
}

/// The loops of a text that has as many values at once as it may: they fill all registers.
Way all_registers() {
  for (unsigned depth = 1;; ++depth) {
    try {
      program::parse(text_of_depth(depth + 1));
    } catch (const program::TextError&) {
      return test::loops_of(text_of_depth(depth)).front();
    }
  }
}

/// Neither what memory and registers have before, nor where the contributions lie.
TEST_P(OperatorRules, AResultIsOfTheContributionsAlone) {
  const Way other = all_registers();
  for_many([&](const Way& way, const Packets& inputs) {
    const std::size_t bytes = inputs.front().size();
    const Packet due = way.fold(inputs);
    other.fold({dice_.bytes(4096), dice_.bytes(4096)});
    Packets moved;
    std::vector<const std::byte*> at;
    for (const Packet& packet : inputs) {
      const std::size_t place = dice_.below(64);
      std::ranges::copy(packet, moved.emplace_back(bytes + place).begin() +
                                    static_cast<std::ptrdiff_t>(place));
      at.push_back(moved.back().data() + place);
    }
    Packet out = dice_.bytes(bytes);
    way.reduce(out.data(), at, bytes, {});
    EXPECT_EQ(out, due);
  });
}

// ----------------------------------------------------------- The result is again a contribution

/// Of the same length: nothing around it is written, what no unit has is zero, whatever lies there
/// in contributions, and the flags of all stay. Copies are the same.
TEST_P(OperatorRules, AResultIsAContributionOfTheSameLength) {
  constexpr std::size_t around = 64;
  for_many([&](const Way& way, const Packets& inputs) {
    const std::size_t bytes = inputs.front().size();
    std::vector<const std::byte*> at;
    std::uint64_t flags = 0;
    for (const Packet& packet : inputs) {
      at.push_back(packet.data());
      flags |= flags_of(packet);
    }
    const Packet before = dice_.bytes(bytes + 2 * around);
    Packet out = before;
    Packet copy = before;
    std::byte* const copies = copy.data() + around;
    way.reduce(out.data() + around, at, bytes, {&copies, 1});
    EXPECT_EQ(copy, out);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + around, before.begin()));
    EXPECT_TRUE(std::equal(out.end() - around, out.end(), before.end() - around));
    const Packet result(out.begin() + around, out.end() - around);
    const std::size_t rest = bytes - used(bytes) - row().flags;
    EXPECT_EQ(Packet(result.begin() + static_cast<std::ptrdiff_t>(used(bytes)),
                     result.begin() + static_cast<std::ptrdiff_t>(used(bytes) + rest)),
              Packet(rest));
    EXPECT_EQ(flags_of(result) | 1, flags | 1) << "flag 0 is the text's own";
    EXPECT_GE(flags_of(result) & 1, flags & 1);
  });
}

// ------------------------------------------------------------------------------------- Identity

TEST_P(OperatorRules, TheIdentityIsThatOfTheText) {
  const program::Code code = program::parse(test::operator_text(row().name));
  ASSERT_EQ(code.identity.has_value(), row().identity != kNone);
  if (code.identity) {
    const auto said = std::as_bytes(std::span(*code.identity));
    EXPECT_EQ(Packet(said.begin(), said.end()), identities(1, row().unit + row().scale));
  }
}

TEST_P(IdentityOperatorRules, TheIdentityChangesNothingWhereverItStands) {
  for_many([&](const Way& way, const Packets& inputs) {
    const std::size_t bytes = inputs.front().size();
    const Packet identity = identities(units(bytes), bytes);
    const Packet due = way.fold(inputs);
    for (std::size_t place = 0; place <= inputs.size(); ++place) {
      Packets more = inputs;
      more.insert(more.begin() + static_cast<std::ptrdiff_t>(place), identity);
      ASSERT_EQ(way.fold(more), due) << "before rank " << place;
    }
  });
}

// --------------------------------------------------------- Finish of a finished value is itself

TEST_P(OperatorRules, AFinishedValueIsFinished) {
  for_many([&](const Way& way, const Packets& inputs) {
    const Packet result = way.fold(inputs);
    EXPECT_EQ(way.fold({result}), result);
  });
}

// --------------------------------------------------------------------------------- Canonical NaN

struct Nans {
  unsigned canonical = 0;
  unsigned others = 0;
};

void count_nans(Nans& nans, const Packet& packet, std::size_t at, Floats floats) {
  const FloatRow row = row_of(floats);
  const std::uint64_t bits = bits_at(packet, at, row.bytes);
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << (8 * row.bytes - 1)) - 1);
  if (magnitude > row.largest) {
    ++(bits == row.nan ? nans.canonical : nans.others);
  }
}

TEST_P(NanOperatorRules, NanIsCanonicalInTheResult) {
  Nans nans;
  for_many([&](const Way& way, const Packets& inputs) {
    const Packet result = way.fold(inputs);
    const std::size_t count = units(result.size());
    for (std::size_t unit = 0; unit < count; ++unit) {
      for (std::size_t k = 0; k < row().count; ++k) {
        count_nans(nans, result, unit * row().unit + k * row_of(row().floats).bytes, row().floats);
      }
      if (row().scale_floats != Floats::none) {
        count_nans(nans, result, count * row().unit + unit, row().scale_floats);
      }
    }
    EXPECT_EQ(nans.others, 0u);
  });
  EXPECT_GT(nans.canonical, 100u);
}

// ---------------------------------------- Every CPU level and the single steps: the same bits

TEST_P(OperatorRules, AllWaysGiveTheSameBits) {
  for_many([&](const Way& way, const Packets& inputs) {
    EXPECT_EQ(way.fold(inputs), ways_.front().fold(inputs));
  });
}

} // namespace
} // namespace weir::operator_rules_test
