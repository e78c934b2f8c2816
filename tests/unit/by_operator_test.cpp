// SPDX-License-Identifier: BSD-3-Clause

/// Operators of the users' own in the switch (docs/protocol.md §12): tables in hellos, who grants
/// what, sums, trees, and a kernel that disagrees with its loops. What is expected is worked out
/// here, byte by byte.

#include "program/loaded_operators.hpp"
#include "program/operator.hpp"
#include "program/parse.hpp"
#include "tree_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::stage::by_operator_test {
namespace {

using program::LoadedOperator;
using program::Operator;
using Loaded = std::shared_ptr<const Operator>;

constexpr std::string_view kClipped = "weir-operator 1\nname clipped\nread i8 v\nlanes i16\n"
                                      "identity v 0\nstart acc = v\nfold acc = acc + v\n"
                                      "finish flag when acc > 127 | acc < -128\n"
                                      "  out = clip(acc)\n";
constexpr std::string_view kHalved = "weir-operator 1\nname halved\nread u8 v\nlanes u32\n"
                                     "identity none\nstart acc = v\n"
                                     "fold acc = (acc + v) >> 1\nfinish out = wrap(acc)\n";

Loaded clipped() {
  static const Loaded loaded = Operator::load(kClipped);
  return loaded;
}

Loaded halved() {
  static const Loaded loaded = Operator::load(kHalved);
  return loaded;
}

/// The text of `clipped`, by code that gives it other results.
Loaded clipped_otherwise() {
  program::Digest digest = clipped()->digest();
  digest[0] ^= 1;
  return std::make_shared<const Operator>(
      program::FoldProgram(program::parse(kClipped), op::CpuLevel::baseline), digest);
}

Bytes entry(std::uint8_t number, const program::Digest& digest) {
  Bytes bytes(40);
  bytes[0] = number;
  std::ranges::copy(digest, bytes.begin() + 8);
  return bytes;
}

Bytes operator+(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// For the rings of a tenant; of everybody.
LoadedOperator row(const Loaded& loaded, const std::string& tenant = "") {
  return {loaded, {{.tenant = tenant}}};
}

JobSpec spec_with(const Bytes& table, std::uint16_t world = 3) {
  JobSpec spec;
  spec.world = world;
  spec.first_own_qp = 0x900;
  spec.ack_timeout = 14;
  spec.operators = table;
  return spec;
}

std::vector<Built> message(RingJob& job, std::uint16_t rank, std::uint32_t id, std::uint8_t number,
                           const Bytes& data, std::uint32_t session) {
  test::InaSpec ina = job.ina_of(rank, id, static_cast<std::uint32_t>(data.size()));
  ina.operation = number;
  ina.data_type = 255;
  ina.session = session;
  return job.message(rank, ina, data);
}

/// 16 bytes as the clipped sum makes them: 8 values, then the flags.
Bytes clipped_sum(const std::vector<Bytes>& all) {
  Bytes sum(all.front().size());
  const std::size_t values = sum.size() - 8;
  for (std::size_t at = 0; at < values; ++at) {
    int total = 0;
    for (const Bytes& one : all) {
      total += static_cast<std::int8_t>(one[at]);
    }
    const int kept = std::clamp(total, -128, 127);
    sum[at] = static_cast<std::uint8_t>(kept);
    sum[values] |= kept == total ? 0 : 1;
  }
  return sum;
}

Bytes row_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  return bytes + Bytes(8);
}

class ByOperator : public testing::Test {
 protected:
  void load(std::vector<LoadedOperator> rows) {
    operators.swap(std::make_shared<const program::LoadedOperators>(std::move(rows)));
  }

  /// The table that each rank gets; empty: not all get one.
  static Bytes answer(SwitchFixture& fixture, RingJob& job) {
    std::vector<Sent> sent;
    fixture.announce(job);
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      sent = fixture.send(job.hello(rank), job.port_of(rank));
    }
    if (sent.size() != job.spec().world) {
      return {};
    }
    const std::size_t at = job.hello(0).payload + 40;
    const auto table_in = [&](const Sent& one) {
      const auto begin = one.bytes.begin() + static_cast<std::ptrdiff_t>(at);
      return Bytes(begin, begin + static_cast<std::ptrdiff_t>(job.spec().operators.size()));
    };
    for (const Sent& one : sent) {
      EXPECT_EQ(table_in(one), table_in(sent.front()));
    }
    return table_in(sent.front());
  }

  conn::CurrentOperators operators{program::LoadedOperators()};
};

TEST_F(ByOperator, TheResultsTableIsTheSwitchsOwn) {
  const Bytes known = entry(128, clipped()->digest());
  const Bytes unknown = entry(130, program::Digest{1, 2, 3});

  struct Row {
    const char* description;
    Bytes table;
    std::vector<LoadedOperator> loaded;
    std::string tenant;
    Bytes expected;
  };

  for (const Row& one : {
           Row{"it is there", known, {row(clipped())}, "", known},
           Row{"nothing is there", known, {}, "", Bytes(40)},
           Row{"one of two is", known + unknown, {row(clipped())}, "", known + Bytes(40)},
           Row{"another one is", known, {row(halved())}, "", Bytes(40)},
           Row{"its text is, with other results", known, {row(clipped_otherwise())}, "", Bytes(40)},
           Row{"a tenant's, for its ring", known, {row(clipped(), "red")}, "red", known},
           Row{"a tenant's, for another's", known, {row(clipped(), "red")}, "blue", Bytes(40)},
           Row{"a tenant's, for nobody's", known, {row(clipped(), "red")}, "", Bytes(40)},
           Row{"one that is for all, for a tenant's", known, {row(clipped())}, "blue", known},
       }) {
    SCOPED_TRACE(one.description);
    RingJob job(spec_with(one.table));
    job.spec().tenant = one.tenant;
    load(one.loaded);
    SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
    EXPECT_EQ(answer(fixture, job), one.expected);
  }
}

TEST_F(ByOperator, HellosWithOtherTablesMakeNoSet) {
  load({row(clipped()), row(halved())});
  const Bytes table = entry(128, clipped()->digest());
  Bytes other_digest = table;
  other_digest[39] ^= 1;

  struct Row {
    const char* description;
    Bytes table;
  };

  for (const Row& one : {Row{"one bit of a digest", other_digest},
                         Row{"another number", entry(129, clipped()->digest())},
                         Row{"one operator more", table + entry(129, halved()->digest())}}) {
    SCOPED_TRACE(one.description);
    RingJob job(spec_with(table));
    SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
    fixture.announce(job);
    EXPECT_TRUE(fixture.send(job.hello(0), job.port_of(0)).empty());
    EXPECT_TRUE(fixture.send(job.hello(1), job.port_of(1)).empty());
    job.spec().operators = one.table;
    EXPECT_TRUE(fixture.send(job.hello(2), job.port_of(2)).empty());
    EXPECT_EQ(fixture.dropped(DropReason::operator_tables_differ), 1u);
    EXPECT_EQ(fixture.ring().dropped[static_cast<std::size_t>(DropReason::operator_tables_differ)],
              1u);
    job.spec().operators = table; // it can still come right
    EXPECT_EQ(fixture.send(job.hello(2), job.port_of(2)).size(), 3u);
  }
}

TEST_F(ByOperator, ATableIsOneOrTheHelloIsBad) {
  load({row(clipped())});
  const Bytes good = entry(128, clipped()->digest());
  Bytes padded = good;
  padded[3] = 1;

  struct Row {
    const char* description;
    Bytes table;
  };

  for (const Row& one :
       {Row{"a number below 128", entry(127, clipped()->digest())}, Row{"padding", padded},
        Row{"a number twice", good + good}, Row{"an empty entry of a rank", Bytes(40)},
        Row{"half an entry", Bytes(20, 1)},
        Row{"five entries",
            good + entry(129, {}) + entry(130, {}) + entry(131, {}) + entry(132, {})}}) {
    SCOPED_TRACE(one.description);
    RingJob job(spec_with(one.table));
    SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
    fixture.announce(job);
    fixture.send(job.hello(0), job.port_of(0));
    EXPECT_EQ(fixture.dropped(DropReason::bad_hello), 1u);
  }
}

TEST_F(ByOperator, TheSwitchFoldsByIt) {
  load({row(clipped())});
  RingJob job(spec_with(entry(200, clipped()->digest())));
  SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
  ASSERT_EQ(answer(fixture, job), job.spec().operators);
  const std::vector<std::vector<Bytes>> messages{
      {row_of({1, -2, 3, 4, 5, 6, 7, 8}), row_of({9, 9, -9, 9, 9, 9, 9, 9}),
       row_of({0, 0, 0, 0, 1, 1, 1, 1})},
      {row_of({100, -100, 0, 0, 0, 0, 0, 0}), row_of({50, -50, 0, 0, 0, 0, 0, 0}),
       row_of({-40, 40, 0, 0, 0, 0, 0, 0})},
      {row_of({100, -100, 0, 0, 0, 0, 0, 0}), row_of({27, -28, 0, 0, 0, 0, 0, 0}),
       row_of({0, 0, 0, 0, 0, 0, 0, 0})},
      {row_of({127, 0, 0, 0, 0, 0, 0, 0}), row_of({127, 0, 0, 0, 0, 0, 0, 0}),
       row_of({127, 0, 0, 0, 0, 0, 0, 0})}};
  std::uint32_t id = 0;
  std::uint64_t flagged = 0;
  for (const std::vector<Bytes>& data : messages) {
    ++id;
    std::vector<Built> packets;
    std::vector<Sent> sent;
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      packets.push_back(message(job, rank, id, 200, data[rank], kSession).front());
      sent = fixture.send(packets.back(), job.port_of(rank));
    }
    const Bytes sum = clipped_sum(data);
    flagged += sum[8];
    ASSERT_EQ(sent.size(), 3u);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(sent[rank].bytes, result_of(packets[rank], sum).bytes) << "message " << id;
    }
  }
  EXPECT_EQ(flagged, 1u);
  EXPECT_EQ(fixture.ring().by_operator, 4u);
  EXPECT_EQ(fixture.ring().flagged, 1u);
}

TEST_F(ByOperator, OnlyWhatWasAgreedOnIsFolded) {
  load({row(clipped())});
  RingJob job(spec_with(entry(128, clipped()->digest()) + entry(129, program::Digest{9})));
  SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
  ASSERT_FALSE(answer(fixture, job).empty());
  EXPECT_TRUE(
      fixture.send(message(job, 0, 1, 129, Bytes(16), kSession).front(), job.port_of(0)).empty());
  EXPECT_EQ(fixture.dropped(DropReason::operator_not_granted), 1u) << "the switch lacks it";
  const auto ungranted = fixture.inside().worker_of(0).incarnations().ungranted_operators_of(0);
  ASSERT_EQ(ungranted.size(), 1u);
  EXPECT_EQ(ungranted[0].digest, program::Digest{9});
  EXPECT_TRUE(
      fixture.send(message(job, 1, 1, 130, Bytes(16), kSession).front(), job.port_of(1)).empty());
  EXPECT_EQ(fixture.dropped(DropReason::operator_not_granted), 2u) << "nobody has named it";
  EXPECT_TRUE(
      fixture.send(message(job, 2, 1, 127, Bytes(16), kSession).front(), job.port_of(2)).empty());
  EXPECT_EQ(fixture.dropped(DropReason::unsupported_pair), 1u);
  EXPECT_TRUE(
      fixture.send(message(job, 2, 1, 128, Bytes(12), kSession).front(), job.port_of(2)).empty());
  EXPECT_EQ(fixture.dropped(DropReason::partial_element), 1u);
}

TEST_F(ByOperator, AnIncarnationsOperatorsAreItsOwn) {
  load({row(clipped())});
  const program::Digest digest = clipped()->digest();
  RingJob job(spec_with(entry(128, digest)));
  SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
  EXPECT_FALSE(fixture.inside().worker_of(0).incarnations().uses(0, digest));
  ASSERT_FALSE(answer(fixture, job).empty());
  EXPECT_TRUE(fixture.inside().worker_of(0).incarnations().uses(0, digest));
  fixture.reset(0);
  EXPECT_FALSE(fixture.inside().worker_of(0).incarnations().uses(0, digest));
  job.restart(2);
  job.spec().operators.clear();
  fixture.start(job);
  EXPECT_TRUE(fixture.send(message(job, 0, 1, 128, Bytes(16), kSession + 1).front(), job.port_of(0))
                  .empty());
  EXPECT_EQ(fixture.dropped(DropReason::operator_not_granted), 1u);
}

/// Right for small numbers, as a kernel that overflows would be.
void wrong_kernel(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                  op::Copies copies) {
  for (std::size_t at = 0; at < bytes; ++at) {
    int sum = 0;
    for (unsigned i = 0; i < count; ++i) {
      sum += static_cast<std::int8_t>(inputs[i][at]);
    }
    out[at] = static_cast<std::byte>(sum);
  }
  for (unsigned i = 0; i < copies.count; ++i) {
    std::memcpy(copies.to[i], out, bytes);
  }
}

TEST_F(ByOperator, AKernelThatDisagreesEndsTheIncarnation) {
  const Loaded wrong = std::make_shared<const Operator>(
      program::FoldProgram(program::parse(kClipped), op::CpuLevel::baseline), clipped()->digest(),
      program::StandIn{wrong_kernel});
  load({row(wrong)});
  RingJob job(spec_with(entry(128, wrong->digest())));
  SwitchFixture fixture({&job}, {}, nullptr, 0, 1, &operators);
  ASSERT_FALSE(answer(fixture, job).empty());
  const auto exchange = [&](std::uint32_t id, const Bytes& data) {
    std::vector<Sent> sent;
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      sent = fixture.send(message(job, rank, id, 128, data, kSession).front(), job.port_of(rank));
    }
    for (std::uint16_t rank = 0; rank < 3; ++rank) { // each successor has it
      constexpr std::uint8_t ack = 0x1f;
      fixture.send(build(job.answer_to(rank, ack, job.first_psn_of(rank) + id, id)),
                   job.port_of(job.successor_of(rank)));
    }
    return sent;
  };
  std::uint32_t id = 1;
  for (; id <= Operator::kCheckEvery; ++id) { // the first one is checked, and right
    ASSERT_EQ(exchange(id, row_of({1, 2, 3, 4, 5, 6, 7, 8})).size(), 3u);
  }
  EXPECT_FALSE(wrong->disagrees());
  const Bytes large = row_of({100, 0, 0, 0, 0, 0, 0, 0});
  const auto sent = exchange(id, large);
  EXPECT_TRUE(wrong->disagrees());
  ASSERT_EQ(sent.size(), 3u);
  const Built own = message(job, 0, id, 128, large, kSession).front();
  EXPECT_EQ(sent[0].bytes, result_of(own, clipped_sum({large, large, large})).bytes)
      << "the loops' result leaves";
  fixture.send(message(job, 1, id + 1, 128, large, kSession).front(), job.port_of(1));
  auto said = fixture.wait(10'000'000);
  EXPECT_EQ(said.size(), 3u) << "a NAK to each rank";
  const Built late = message(job, 0, id + 1, 128, large, kSession).front();
  const auto again = fixture.send(late, job.port_of(0));
  EXPECT_EQ(again.size(), 1u) << "one more to who sends on: the first may be lost";
  said.insert(said.end(), again.begin(), again.end());
  for (const Sent& nak : said) {
    const std::size_t aeth = own.payload - 16 - 4; // no RETH, no immediate: behind the BTH
    EXPECT_EQ(nak.bytes[aeth], 0x63) << "remote operational error (IBTA §9.7.5.2.8)";
  }
  EXPECT_EQ(fixture.dropped(DropReason::operator_disagrees), 1u);
  EXPECT_EQ(fixture.dropped(DropReason::no_connection), 1u);
  job.restart(2);
  fixture.start(job);
  for (std::uint16_t rank = 0; rank < 3; ++rank) { // the switch lives, and folds by the loops
    const auto next =
        fixture.send(message(job, rank, 1, 128, large, kSession + 1).front(), job.port_of(rank));
    EXPECT_EQ(next.size(), rank == 2 ? 3u : 0u);
  }
  fixture.wait(10'000'000);
  EXPECT_TRUE(fixture.inside().worker_of(0).incarnations().incarnation_of(0).has_value());
}

TEST_F(ByOperator, AnOperatorsOwnWordsAreItsText) {
  for (const Loaded& one : {clipped(), halved()}) {
    EXPECT_EQ(Operator::load(one->code().text)->digest(), one->digest());
  }
}

// ---- A tree: two racks below a root. ----

constexpr std::uint16_t kUp = 7;
constexpr std::size_t kRoot = 0;
constexpr std::size_t kA = 1; // ranks 0 and 1
constexpr std::size_t kB = 2; // ranks 2, 3 and 4

class TreeByOperator : public testing::Test {
 protected:
  void build(const Bytes& table) {
    job = std::make_unique<RingJob>(spec_with(table, 5));
    const auto rank = [](std::uint16_t number) {
      return ring::Child{.ranks = {number, 1}, .port = {}, .name = {}};
    };
    const auto below = [](ring::RankRange ranks, std::uint16_t port) {
      return ring::Child{
          .ranks = ranks, .port = port, .kind = ring::ChildKind::switch_below, .name = "rack"};
    };
    tree.add_switch({part({below({0, 2}, 0), below({2, 3}, 1)}, {})});
    tree.add_switch({part({rank(0), rank(1)}, ring::Parent{kUp, "root"})});
    tree.add_switch({part({rank(2), rank(3), rank(4)}, ring::Parent{kUp, "root"})});
    tree.join(kRoot, 0, kA, kUp);
    tree.join(kRoot, 1, kB, kUp);
    for (std::uint16_t number = 0; number < 5; ++number) {
      tree.join_host(number < 2 ? kA : kB, number, number);
    }
  }

  ring::RingSpec part(std::vector<ring::Child> children, std::optional<ring::Parent> parent) const {
    ring::RingSpec spec = job->ring();
    spec.children = std::move(children);
    spec.parent = std::move(parent);
    return spec;
  }

  /// What each rank's hello is answered, by rank.
  std::vector<Bytes> greet() {
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      tree.from_host(rank, job->hello(rank).bytes);
    }
    std::vector<Bytes> tables;
    const std::size_t at = job->hello(0).payload + 40;
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      for (const Bytes& frame : tree.received(rank)) {
        const auto begin = frame.begin() + static_cast<std::ptrdiff_t>(at);
        tables.emplace_back(begin,
                            begin + static_cast<std::ptrdiff_t>(job->spec().operators.size()));
      }
    }
    return tables;
  }

  std::unique_ptr<RingJob> job;
  TreeFixture tree;
};

TEST_F(TreeByOperator, WhatOneSwitchLacksNobodyHas) {
  const Bytes both = entry(128, clipped()->digest()) + entry(129, halved()->digest());
  const Bytes first = entry(128, clipped()->digest()) + Bytes(40);
  for (const std::size_t lacking : {kRoot, kA, kB}) {
    SCOPED_TRACE(lacking);
    tree = TreeFixture();
    build(both);
    for (std::size_t node = 0; node < 3; ++node) {
      tree.nodes[node]->load(node == lacking ? std::vector{row(clipped())}
                                             : std::vector{row(clipped()), row(halved())});
    }
    EXPECT_EQ(greet(), std::vector<Bytes>(5, first)) << tree.drops();
  }
}

TEST_F(TreeByOperator, WhatOneSwitchGivesOtherResultsNobodyHas) {
  for (const std::size_t other : {kRoot, kA, kB}) {
    SCOPED_TRACE(other);
    tree = TreeFixture();
    build(entry(128, clipped()->digest()));
    for (std::size_t node = 0; node < 3; ++node) {
      tree.nodes[node]->load({row(node == other ? clipped_otherwise() : clipped())});
    }
    EXPECT_EQ(greet(), std::vector<Bytes>(5, Bytes(40))) << tree.drops();
  }
}

TEST_F(TreeByOperator, WhatTheRootLacksNoSwitchBelowFolds) {
  build(entry(128, clipped()->digest()) + entry(129, halved()->digest()));
  for (std::size_t node = 0; node < 3; ++node) {
    tree.nodes[node]->load(node == kRoot ? std::vector{row(clipped())}
                                         : std::vector{row(clipped()), row(halved())});
  }
  greet();
  tree.from_host(0, message(*job, 0, 1, 129, Bytes(16), tree.session_of(kA)).front().bytes);
  EXPECT_EQ(tree.nodes[kA]->dropped(DropReason::operator_not_granted), 1u);
}

TEST_F(TreeByOperator, SumsAreNested) {
  build(entry(128, halved()->digest()));
  for (const auto& node : tree.nodes) {
    node->load({row(halved())});
  }
  ASSERT_EQ(greet(), std::vector<Bytes>(5, job->spec().operators)) << tree.drops();
  const auto half = [](unsigned a, unsigned b) { return (a + b) >> 1U; };
  std::vector<Bytes> data;
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    data.emplace_back(16, static_cast<std::uint8_t>(10 + 50 * rank));
  }
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    const std::uint32_t session = tree.session_of(tree.node_of(rank));
    tree.from_host(rank, message(*job, rank, 1, 128, data[rank], session).front().bytes);
  }
  const unsigned a = half(data[0][0], data[1][0]);
  const unsigned b = half(half(data[2][0], data[3][0]), data[4][0]);
  unsigned flat = data[0][0];
  for (std::size_t rank = 1; rank < 5; ++rank) {
    flat = half(flat, data[rank][0]);
  }
  ASSERT_NE(half(a, b), flat) << "the test tells the two folds apart";
  const std::size_t at = job->hello(0).payload + 40;
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    const auto got = tree.received(rank);
    ASSERT_EQ(got.size(), 1u) << "rank " << rank << ": " << tree.drops();
    EXPECT_EQ(got[0][at], half(a, b)) << "rank " << rank;
  }
}

TEST_F(TreeByOperator, ARackWithAnotherTextMakesNoJob) {
  build(entry(128, clipped()->digest()));
  for (const auto& node : tree.nodes) {
    node->load({row(clipped()), row(halved())});
  }
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    tree.from_host(rank, job->hello(rank).bytes);
  }
  job->spec().operators = entry(128, halved()->digest());
  for (std::uint16_t rank = 2; rank < 5; ++rank) {
    tree.from_host(rank, job->hello(rank).bytes);
  }
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    EXPECT_TRUE(tree.received(rank).empty());
  }
  EXPECT_EQ(tree.nodes[kRoot]->dropped(DropReason::operator_tables_differ), 1u);
}

TEST_F(TreeByOperator, WhatHasClimbedIsInUse) {
  build(entry(128, clipped()->digest()));
  for (const auto& node : tree.nodes) {
    node->load({row(clipped())});
  }
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    tree.from_host(rank, job->hello(rank).bytes);
  }
  const auto uses = [&](std::size_t node) {
    return tree.nodes[node]->inside.worker_of(0).incarnations().uses(0, clipped()->digest());
  };
  EXPECT_TRUE(uses(kA));
  EXPECT_FALSE(uses(kRoot));
  EXPECT_FALSE(uses(kB));
}

/// The switch forgets an operator that has gone up, against what UnloadOperator allows: the total
/// that names it is none that it could fold by.
TEST_F(TreeByOperator, ATotalMayNameOnlyWhatIsThere) {
  build(entry(128, clipped()->digest()));
  for (const auto& node : tree.nodes) {
    node->load({row(clipped())});
  }
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    tree.from_host(rank, job->hello(rank).bytes);
  }
  tree.nodes[kA]->load({});
  tree.from_host(4, job->hello(4).bytes);
  EXPECT_TRUE(tree.received(0).empty() && tree.received(1).empty());
  EXPECT_EQ(tree.nodes[kA]->dropped(DropReason::operator_tables_differ), 1u);
}

} // namespace
} // namespace weir::stage::by_operator_test
