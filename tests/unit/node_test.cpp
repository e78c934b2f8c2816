// SPDX-License-Identifier: BSD-3-Clause

/// Groups whose ranks share NICs: threads around a switch in memory, with it and without.

#include "collective_caller.hpp"
#include "fabric/narrow_float.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::node_test {
namespace {

using test::Caller;

constexpr fabric::NarrowFloat kBf16{
    .exponent_bits = 8, .mantissa_bits = 7, .largest = 0x7f7f, .past = 0x7f80, .nan = 0x7fc0};

/// The NIC of each rank; they are numbered from 0 in the order of their first ranks.
struct NodePlan {
  std::vector<std::uint16_t> nics;
  JobPlan job{}; // its ranks are the NICs
};

std::uint16_t world_of(const NodePlan& plan) {
  return static_cast<std::uint16_t>(plan.nics.size());
}

std::uint16_t nics_of(const NodePlan& plan) {
  return static_cast<std::uint16_t>(*std::ranges::max_element(plan.nics) + 1);
}

JobPlan job_of(const NodePlan& plan) {
  JobPlan job = plan.job;
  job.world = nics_of(plan);
  return job;
}

GroupOptions options_of(const NodePlan& plan, std::uint16_t rank, const std::string& address) {
  GroupOptions options = host::options_of(plan.job, plan.nics[rank], address);
  options.rank = rank;
  options.world = world_of(plan);
  options.nic = "nic" + std::to_string(plan.nics[rank]);
  return options;
}

/// A fabric for the plan's NICs, and its ranks, each in a thread.
class NodeJob {
 public:
  explicit NodeJob(NodePlan plan, ProgressBy progress = ProgressBy::thread)
      : plan_(std::move(plan)), progress_(progress), fabric_(rings(), nics_of(plan_)) {}

  std::unique_ptr<Group> form(std::uint16_t rank) {
    GroupOptions options = options_of(plan_, rank, address_);
    options.progress = progress_;
    return std::make_unique<Group>(options, fabric_.open(plan_.nics[rank]));
  }

  /// `original`: the rank in the first group.
  Group shrink(Group& over, const GroupOptions& options, std::uint16_t original) {
    return over.shrink(options, fabric_.open(plan_.nics[original]));
  }

  template <typename Body>
  std::vector<Ending> run(Body body) {
    return run_ranks(world_of(plan_), [&](std::uint16_t rank) {
      const std::unique_ptr<Group> group = form(rank);
      body(*group);
    });
  }

 private:
  std::vector<ring::RingSpec> rings() const {
    const bool has_switch = plan_.job.fallback == Fallback::none && nics_of(plan_) > 1;
    return has_switch ? rings_of(job_of(plan_)) : std::vector<ring::RingSpec>();
  }

  const NodePlan plan_;
  const ProgressBy progress_;
  const std::string address_ = free_address();
  HostFabric fabric_;
};

class Nodes : public testing::TestWithParam<NodePlan> {};

TEST_P(Nodes, AreExactInEveryCollective) {
  const NodePlan& plan = GetParam();
  NodeJob job(plan);
  const Algorithm due = nics_of(plan) == 1                    ? Algorithm::local
                        : plan.job.fallback == Fallback::none ? Algorithm::in_switch
                                                              : Algorithm::ring;
  expect_none(job.run([&](Group& group) {
    EXPECT_EQ(group.algorithm(), due);
    const bool is_fine = plan.job.message_bytes < 200; // so that many calls are many messages
    for (const std::size_t count : {0, 1, 3, 239, 1000, is_fine ? 50 : 17'000}) {
      Caller(group, count).call_everything();
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Nodes,
    testing::Values(NodePlan{{0, 0, 0, 1, 1, 1}}, NodePlan{{0, 1, 0, 2, 1}}, NodePlan{{0, 0}},
                    NodePlan{{0, 0, 0}}, NodePlan{{0, 1, 1}, {.rings = {4, 5, 6}}},
                    NodePlan{{0, 0, 1}, {.window = 1, .message_bytes = 136}},
                    NodePlan{{0, 1, 0, 1}, {.rings = {1, 2}, .loss = 0.02, .seed = 4}},
                    NodePlan{{0, 0, 1, 1}, {.fallback = Fallback::ring}}));

/// Of a rank, as every rank of the job computes it.
std::vector<std::uint16_t> codes_of(std::uint16_t rank, std::size_t count) {
  std::mt19937_64 dice(rank);
  std::vector<std::uint16_t> codes(count);
  for (std::uint16_t& code : codes) { // numbers of several exponents, so that sums are rounded
    code = kBf16.encode(std::uniform_real_distribution<float>(-1, 1)(dice) *
                        static_cast<float>(1 << (dice() % 8)));
  }
  return codes;
}

/// In f32, rounded once.
std::vector<std::uint16_t> folded(const std::vector<std::vector<std::uint16_t>>& parts) {
  std::vector<std::uint16_t> result(parts[0].size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    float sum = kBf16.decode(parts[0][i]);
    for (std::size_t part = 1; part < parts.size(); ++part) {
      sum += kBf16.decode(parts[part][i]);
    }
    result[i] = static_cast<std::uint16_t>(kBf16.encode(sum));
  }
  return result;
}

/// The fold over the nodes of the folds over their ranks, each rounded.
TEST_P(Nodes, RoundNarrowFloatsAsTreesOfSwitchesDo) {
  constexpr std::size_t kCount = 9000;
  const NodePlan& plan = GetParam();
  std::vector<std::vector<std::uint16_t>> nodes;
  for (std::uint16_t nic = 0; nic < nics_of(plan); ++nic) {
    std::vector<std::vector<std::uint16_t>> parts;
    for (std::uint16_t rank = 0; rank < world_of(plan); ++rank) {
      if (plan.nics[rank] == nic) {
        parts.push_back(codes_of(rank, kCount));
      }
    }
    nodes.push_back(folded(parts));
  }
  const std::vector<std::uint16_t> due = folded(nodes);
  NodeJob job(plan);
  expect_none(job.run([&](Group& group) {
    std::vector<std::uint16_t> data = codes_of(group.rank(), kCount);
    group.all_reduce(data.data(), data.data(), kCount, DataType::bf16, Operation::sum);
    EXPECT_EQ(data, due);
    std::vector<std::int32_t> mean(kCount, 3 * group.rank());
    group
        .start(mean.data(), mean.data(),
               {.count = kCount, .type = DataType::i32, .finish = Finish::average})
        .wait();
    EXPECT_EQ(mean, std::vector<std::int32_t>(kCount, 3 * (world_of(plan) - 1) / 2));
  }));
}

TEST(Node, TellsWhoLeadsWhom) {
  NodeJob job({{0, 1, 0, 2, 1}});
  expect_none(job.run([](Group& group) {
    const std::vector<std::uint16_t> due{0, 1, 0, 3, 1};
    for (std::uint16_t rank = 0; rank < due.size(); ++rank) {
      EXPECT_EQ(group.leader(rank), due[rank]);
    }
  }));
}

/// Nobody but the test's threads drives the groups.
TEST(Node, NeedsNoThreads) {
  NodeJob job({{0, 0, 1, 1}}, ProgressBy::caller);
  expect_none(job.run([](Group& group) {
    for (const std::size_t count : {1, 5'000}) {
      Caller(group, count).call_everything();
    }
  }));
}

/// All ranks make a call, and then all but one another.
class HeldUp : public testing::TestWithParam<std::uint16_t> {
 protected:
  static constexpr std::uint16_t kWorld = 6;

  template <typename Act>
  void expect_end(ErrorCode code, Act act) {
    const std::uint16_t actor = GetParam();
    std::barrier<> everybody(kWorld);
    const auto endings = job_.run([&](Group& group) {
      expect_sum(group);
      everybody.arrive_and_wait();
      if (group.rank() == actor) {
        act(group);
        return;
      }
      const Ending ending = ending_of([&] { expect_sum(group); });
      EXPECT_EQ(ending.code, code) << ending.text;
      EXPECT_EQ(ending.rank, actor) << ending.text;
    });
    expect_none(endings);
  }

  NodeJob job_{{{0, 0, 0, 1, 1, 1}}};
};

TEST_P(HeldUp, ByARankThatClosesEndsWithItsName) {
  expect_end(ErrorCode::peer_died, [](Group&) {}); // its group goes out of scope
}

/// Data of different calls never meet.
TEST_P(HeldUp, ByARankThatCallsSomethingElseEndsWithWhoCalledWhat) {
  const std::uint16_t actor = GetParam() == 0 ? 1 : GetParam(); // rank 0's call is the others'
  for (const Call& other :
       {Call{.count = 2999, .type = DataType::u32}, Call{.count = 3000, .type = DataType::f32},
        Call{.count = 3000, .type = DataType::u32, .operation = Operation::max},
        Call{.kind = CallKind::broadcast, .count = 3000, .type = DataType::u32}}) {
    NodeJob job({{0, 0, 0, 1, 1, 1}});
    expect_none(job.run([&](Group& group) {
      std::vector<std::uint32_t> data(3000, 1);
      const Call call = group.rank() == actor ? other : Call{.count = 3000, .type = DataType::u32};
      const Ending ending = ending_of([&] { group.start(data.data(), data.data(), call).wait(); });
      EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
      EXPECT_EQ(ending.rank, actor) << ending.text;
      EXPECT_EQ(data, std::vector<std::uint32_t>(3000, 1));
    }));
  }
}

TEST_P(HeldUp, ByARankThatAbortsEndsWithItsName) {
  expect_end(ErrorCode::aborted, [](Group& group) { group.abort("enough"); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, HeldUp, testing::Values(0, 1, 3, 5)); // two of them leaders

/// Leaders and others that die leave nodes with other leaders, or no node.
TEST(Node, OfAShrunkGroupHasTheRanksThatLive) {
  const NodePlan plan{{0, 0, 1, 1, 2}, {.fallback = Fallback::ring}};
  NodeJob job(plan);
  const std::vector<std::uint16_t> victims{0, 3};
  std::barrier<> everybody(world_of(plan));
  expect_none(run_ranks(world_of(plan), [&](std::uint16_t rank) {
    std::unique_ptr<Group> group = job.form(rank);
    expect_sum(*group);
    everybody.arrive_and_wait();
    if (std::ranges::find(victims, rank) != victims.end()) {
      return;
    }
    ending_of([&] { expect_sum(*group); });
    std::optional<Group> rest;
    while (!rest || rest->world() > 3) { // one victim may be noticed before the other
      Group& over = rest ? *rest : *group;
      ending_of([&] { expect_sum(over); });
      GroupOptions next = over.options();
      next.epoch = 0;
      ending_of([&] { rest.emplace(job.shrink(over, next, rank)); });
    }
    expect_sum(*rest);
    for (std::uint16_t survivor = 0; survivor < 3; ++survivor) {
      EXPECT_EQ(rest->leader(survivor), survivor); // 1, 2 and 4 have a NIC each
    }
  }));
}

} // namespace
} // namespace weir::host::node_test
