// SPDX-License-Identifier: BSD-3-Clause

/// Several groups in one process, over the same links: the end of one is not the others' end. And
/// many threads that use them at random.

#include "host_job.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::many_groups_test {
namespace {

/// Rings 1 and 2 have the same members, so both groups' frames take the same links.
class TwoGroups : public testing::TestWithParam<Fallback> {};

TEST_P(TwoGroups, TheEndOfOneIsNotTheOthers) {
  constexpr int kCallsAfterwards = 30;
  JobPlan plan{.world = 3, .rings = {1, 2}};
  plan.fallback = GetParam();
  const bool is_plain = plan.fallback == Fallback::ring;
  HostFabric fabric(is_plain ? std::vector<ring::RingSpec>{} : rings_of(plan), plan.world,
                    kSession);
  const std::array<std::string, 2> addresses{free_address(), free_address()};
  std::barrier together(plan.world);
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    const auto options = [&](std::uint32_t ring) {
      GroupOptions options = options_of(plan, rank, addresses[ring - 1]);
      options.rings = {ring};
      return options;
    };
    auto dying = std::make_unique<Group>(options(1), fabric.open(rank));
    Group living(options(2), fabric.open(rank));
    expect_sum(*dying, 3000);
    expect_sum(living, 3000);
    together.arrive_and_wait();
    std::vector<std::uint32_t> many(200'000);
    Pending last = dying->start_all_reduce(many.data(), many.data(), many.size(), DataType::u32,
                                           Operation::sum);
    together.arrive_and_wait();
    if (rank == 1) {
      dying.reset(); // while its messages are under way
    }
    for (int call = 0; call < kCallsAfterwards; ++call) {
      expect_sum(living, 1000);
    }
    if (rank != 1) {
      const Ending ending = ending_of([&] { last.wait(); });
      EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
      EXPECT_EQ(ending.rank, 1);
    }
    expect_sum(living, 1000);
  });
  expect_none(endings);
}

INSTANTIATE_TEST_SUITE_P(InTheSwitchAndOnTheRing, TwoGroups,
                         testing::Values(Fallback::none, Fallback::ring));

/// Two jobs of two ranks each, one after the other, over one ring.
class OneRing : public testing::Test {
 protected:
  using Rank = std::function<void(std::uint16_t)>;

  std::unique_ptr<Group> form(std::uint16_t rank) {
    return std::make_unique<Group>(options_of(plan_, rank, first_), fabric_.open(rank));
  }

  /// At another address, with a later epoch.
  std::unique_ptr<Group> form_again(std::uint16_t rank) {
    GroupOptions options = options_of(plan_, rank, second_);
    options.epoch = 2;
    return std::make_unique<Group>(options, fabric_.open(rank));
  }

  void run(const Rank& body) const { expect_none(run_ranks(plan_.world, body)); }

  static void expect_refused(const Ending& ending, std::uint16_t rank) {
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_EQ(ending.rank, rank);
    EXPECT_THAT(ending.text, testing::StartsWith("rank " + std::to_string(rank) +
                                                 ": ring 1: found another group of this process, "
                                                 "which has it at " +
                                                 ip_of(rank)));
    EXPECT_THAT(ending.text, testing::HasSubstr("--ring"));
    EXPECT_THAT(ending.text, testing::HasSubstr("WEIR_SWITCH"));
  }

  const JobPlan plan_{.world = 2};
  HostFabric fabric_{rings_of(plan_), 3, kSession};
  const std::string first_ = free_address();
  const std::string second_ = free_address();
  std::barrier<> together_{2};
};

TEST_F(OneRing, IsRefusedToASecondGroupAndTheFirstGoesOn) {
  run([&](std::uint16_t rank) {
    const auto group = form(rank);
    expect_sum(*group, 3000);
    const Ending ending = ending_of([&] { form_again(rank); });
    expect_refused(ending, ending.rank.value_or(9)); // whoever was heard first
    expect_sum(*group, 3000);
  });
}

/// As when the ranks' processes have different groups. Rank 0 of the second group is no member of
/// the first one.
TEST_F(OneRing, AllRanksHearWhichOneHasAnotherGroupThere) {
  std::thread stranger([&] {
    GroupOptions options = options_of(plan_, 0, second_);
    options.ip = ip_of(2);
    options.epoch = 2;
    expect_refused(ending_of([&] { Group(options, fabric_.open(2)); }), 1);
  });
  run([&](std::uint16_t rank) {
    const auto group = form(rank);
    together_.arrive_and_wait();
    if (rank == 1) {
      expect_refused(ending_of([&] { form_again(rank); }), 1);
    }
    expect_sum(*group, 3000);
  });
  stranger.join();
}

TEST_F(OneRing, SaysThatTwoRanksOfAGroupHaveOneAddress) {
  const auto endings = run_ranks(plan_.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan_, rank, first_);
    options.ip = ip_of(1);
    Group(options, fabric_.open(rank));
  });
  expect_all(endings, ErrorCode::mismatch);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.text,
              "ring 1: found ranks 0 and 1 of one group in one process at one address, " +
                  ip_of(1) + "; allowed: an address for each rank (ip, --ip)");
  }
}

TEST_F(OneRing, IsTheNextGroupsWhenTheFirstIsClosed) {
  run([&](std::uint16_t rank) {
    form(rank).reset();
    expect_sum(*form_again(rank), 3000);
  });
}

TEST_F(OneRing, IsTheNextGroupsWhenTheFirstIsOver) {
  run([&](std::uint16_t rank) {
    const auto over = form(rank);
    together_.arrive_and_wait();
    if (rank == 1) {
      over->abort();
    } else {
      const Ending ending = ending_of([&] { expect_sum(*over, 100); });
      EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
    }
    expect_sum(*form_again(rank), 3000);
  });
}

TEST_F(OneRing, IsTheNextGroupsWhenTheFirstWasNotFormed) {
  HostFabric nobody({}, plan_.world); // aggregates there
  run([&](std::uint16_t rank) {
    const Ending ending =
        ending_of([&] { Group(options_of(plan_, rank, first_), nobody.open(rank)); });
    EXPECT_EQ(ending.code, ErrorCode::not_aggregated) << ending.text;
    expect_sum(*form_again(rank), 3000);
  });
}

/// As after a job whose clock ran ahead. The switch answers no hello of an older epoch.
TEST_F(OneRing, SaysThatAnEarlierJobMayHaveALargerEpoch) {
  run([&](std::uint16_t rank) {
    form_again(rank).reset();
    GroupOptions late = options_of(plan_, rank, first_);
    late.timeout = milliseconds(300);
    const Ending ending = ending_of([&] { Group(late, fabric_.open(rank)); });
    EXPECT_EQ(ending.code, ErrorCode::timeout);
    EXPECT_THAT(ending.text,
                testing::StartsWith(
                    "ring 1: the hello is unanswered for 300 ms; `show ring 1` at the switch, and "
                    "at those above it in a tree, tells whose hello is missing or refused; if an "
                    "earlier job had a larger epoch (old_epoch; this job's is 1), `reset ring 1` "
                    "ends that job; meanwhile this rank looked "));
  });
}

TEST_F(OneRing, IsNobodysWhenTheHostsReduce) {
  HostFabric nobody({}, plan_.world);
  run([&](std::uint16_t rank) {
    GroupOptions options = options_of(plan_, rank, first_);
    options.fallback = Fallback::ring;
    Group first(options, nobody.open(rank));
    options.rendezvous = second_;
    Group second(options, nobody.open(rank));
    expect_sum(first, 3000);
    expect_sum(second, 3000);
  });
}

/// What one thread does with its rank's group until the group is over or it has done enough. All
/// calls are the same, so their order does not matter.
class Visitor {
 public:
  Visitor(Group& group, std::uint64_t seed, int steps)
      : group_(group), dice_(seed), steps_(steps) {}

  void run() {
    try {
      for (int step = 0; step < steps_; ++step) {
        take_step();
      }
    } catch (const Error&) { // one of the other threads has ended the group
    }
  }

  int exact() const { return exact_; }

  /// When the group is closed.
  void expect_all_callbacks() const { EXPECT_EQ(callbacks_, callbacks_due_); }

 private:
  static constexpr std::size_t kCount = 300;

  struct Call {
    std::vector<std::uint32_t> data;
    Pending pending;
  };

  void take_step() {
    switch (dice_() % 16) {
    case 0:
      group_.statistics();
      return;
    case 1:
      look_around();
      return;
    case 2:
      std::this_thread::sleep_for(std::chrono::microseconds(dice_() % 2000));
      return;
    case 3:
      if (dice_() % 64 == 0) {
        group_.abort();
      }
      return;
    case 4:
      make_several_calls();
      return;
    default:
      std::unique_ptr<Call> call = start();
      finish(*call);
    }
  }

  void look_around() {
    group_.progress();
    if (group_.options().progress == ProgressBy::thread) {
      group_.descriptor();
    }
  }

  std::unique_ptr<Call> start() {
    auto call = std::make_unique<Call>();
    call->data.assign(kCount, group_.rank() + 1U);
    call->pending = group_.start_all_reduce(call->data.data(), call->data.data(), kCount,
                                            DataType::u32, Operation::sum);
    if (dice_() % 2 == 0) {
      ++callbacks_due_;
      call->pending.on_done([this](const std::optional<Error>&) { ++callbacks_; });
    }
    return call;
  }

  void make_several_calls() {
    std::array<std::unique_ptr<Call>, 3> calls;
    try {
      for (auto& call : calls) {
        call = start();
      }
      for (auto& call : calls) {
        finish(*call);
      }
    } catch (const Error&) {
      for (auto& call : calls) { // until then the group may write to their buffers
        if (call) {
          ending_of([&] { call->pending.wait(); });
        }
      }
      throw;
    }
  }

  void finish(Call& call) {
    switch (dice_() % 3) {
    case 0:
      while (!call.pending.test()) {
        std::this_thread::yield();
      }
      break;
    case 1:
      while (!call.pending.wait_for(milliseconds(1))) {
      }
      break;
    default:
      call.pending.wait();
    }
    EXPECT_EQ(call.data, std::vector<std::uint32_t>(kCount, 3));
    ++exact_;
  }

  Group& group_;
  std::mt19937_64 dice_;
  const int steps_;
  int exact_ = 0;
  int callbacks_due_ = 0;
  std::atomic<int> callbacks_ = 0;
};

/// Ends when its threads have done enough, or one of them has aborted it. Its rank's partner then
/// lacks it, and ends as well.
int visit(const GroupOptions& options, std::unique_ptr<FrameIo> frames, std::uint64_t seed) {
  constexpr int kThreads = 2; // of each of the group's two ranks
  auto group = std::make_unique<Group>(options, std::move(frames));
  std::mt19937_64 dice(seed);
  std::deque<Visitor> visitors;
  for (int thread = 0; thread < kThreads; ++thread) {
    visitors.emplace_back(*group, dice(), static_cast<int>(20 + dice() % 200));
  }
  std::vector<std::thread> threads;
  for (Visitor& visitor : visitors) {
    threads.emplace_back([&visitor] { visitor.run(); });
  }
  int exact = 0;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads[static_cast<std::size_t>(thread)].join();
    exact += visitors[static_cast<std::size_t>(thread)].exact();
    if (dice() % 2 == 0) { // the other thread may be in a call that nobody else makes
      group->abort();
    }
  }
  group->abort();
  group.reset();
  for (const Visitor& visitor : visitors) {
    visitor.expect_all_callbacks();
  }
  return exact;
}

TEST(ManyGroups, AreUsedAtRandomByManyThreads) {
  constexpr std::uint16_t kGroups = 8;
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device()();
  std::printf("WEIR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  HostFabric fabric({}, 2); // all groups share two links, on the hosts' rings
  JobPlan plan{.world = 2, .fallback = Fallback::ring};
  std::vector<std::string> addresses;
  for (int group = 0; group < kGroups; ++group) {
    addresses.push_back(free_address());
  }
  std::atomic<int> exact = 0;
  const auto endings = run_ranks(2 * kGroups, [&](std::uint16_t thread) {
    const auto rank = static_cast<std::uint16_t>(thread % 2);
    GroupOptions options = options_of(plan, rank, addresses[thread / 2]);
    options.rings = {thread / 2 + 1U};
    options.progress = thread % 3 == 0 ? ProgressBy::caller : ProgressBy::thread;
    exact += visit(options, fabric.open(rank), seed + thread);
  });
  for (const Ending& ending :
       endings) { // of forming: a thread may abort before its partner is done
    EXPECT_TRUE(!ending.code || ending.code == ErrorCode::aborted) << ending.text;
  }
  EXPECT_GT(exact, kGroups) << "too few calls ended well to tell anything";
}

} // namespace
} // namespace weir::host::many_groups_test
