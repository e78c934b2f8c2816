// SPDX-License-Identifier: BSD-3-Clause

/// Callers that drive their group's calls by looking for the end of them, beside the group's own
/// thread or in its place.

#include "host_job.hpp"
#include "support/comes_true.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

namespace weir::host::progress_test {
namespace {

constexpr std::size_t kCount = 2000;

/// Counts the looks for frames by the thread that makes this, and by others.
class LookersIo : public ForwardingIo {
 public:
  struct Looks {
    std::atomic<unsigned> by_maker = 0;
    std::atomic<unsigned> by_others = 0;
  };

  LookersIo(std::unique_ptr<FrameIo> device, Looks& looks)
      : ForwardingIo(std::move(device)), looks_(looks) {}

  std::size_t receive(FrameReader& reader) override {
    ++(gettid() == maker_ ? looks_.by_maker : looks_.by_others);
    return ForwardingIo::receive(reader);
  }

 private:
  const pid_t maker_ = gettid();
  Looks& looks_;
};

/// A rank's tensor, and its sum over all ranks.
class Sum {
 public:
  explicit Sum(Group& group)
      : world_(group.world()), data_(kCount, group.rank() + 1U),
        pending_(group.start_all_reduce(data_.data(), data_.data(), kCount, DataType::u32,
                                        Operation::sum)) {}

  Pending& pending() { return pending_; }

  void spin() {
    while (!pending_.test()) {
      std::this_thread::yield();
    }
    expect_exact();
  }

  void expect_exact() const {
    EXPECT_EQ(data_, std::vector<std::uint32_t>(kCount, world_ * (world_ + 1) / 2));
  }

 private:
  std::uint32_t world_; // the group may be gone when its last sum is looked at
  std::vector<std::uint32_t> data_;
  Pending pending_;
};

/// A job of two ranks around a switch in memory.
class Pair {
 public:
  explicit Pair(const JobPlan& plan = {}) : plan_(plan), fabric_(rings_of(plan_), 2, kSession) {}

  GroupOptions options(std::uint16_t rank, ProgressBy progress) const {
    GroupOptions options = options_of(plan_, rank, address_);
    options.progress = progress;
    return options;
  }

  std::unique_ptr<FrameIo> open(std::uint16_t rank) { return fabric_.open(rank); }

  /// Both ranks with a group of this kind.
  std::vector<Ending> run(ProgressBy progress, const std::function<void(Group&)>& body) {
    return run_ranks(2, [&](std::uint16_t rank) {
      Group group(options(rank, progress), open(rank));
      body(group);
    });
  }

 private:
  const JobPlan plan_;
  HostFabric fabric_;
  const std::string address_ = free_address();
};

/// Nothing would wake it: such a call is over as soon as the engine has it. Of two threads that
/// drive, the one that waits may be the one that gives it.
TEST(Waiter, DoesNotSleepOverACallThatIsDoneAtOnce) {
  constexpr unsigned kCalls = test::rounds(40'000);
  GroupOptions options;
  options.world = 1;
  options.rendezvous = "127.0.0.1:1";
  options.progress = ProgressBy::caller;
  Group group(options);
  std::atomic<bool> is_over = false;
  std::thread looker([&] {
    ending_of([&] {
      while (!is_over) {
        group.progress();
      }
    });
  });
  std::thread waiter([&] {
    ending_of([&] {
      for (unsigned call = 0; call < kCalls; ++call) {
        Sum(group).pending().wait();
      }
    });
    is_over = true;
  });
  const bool is_awake = test::comes_true([&] { return is_over.load(); });
  EXPECT_TRUE(is_awake);
  if (!is_awake) {
    group.abort(); // wakes it
  }
  waiter.join();
  looker.join();
}

/// A thread that is woken for every frame costs the spinning one more than all the rest. It may
/// come when the machine has held that one up.
TEST(Tester, KeepsTheOwnThreadAwayWhileItSpins) {
  Pair pair;
  std::atomic<bool> has_spun = false;
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    LookersIo::Looks looks;
    Group group(pair.options(rank, ProgressBy::thread),
                std::make_unique<LookersIo>(pair.open(rank), looks));
    if (rank == 1) { // late
      EXPECT_TRUE(test::comes_true([&] { return has_spun.load(); }, std::chrono::seconds(90)));
    }
    Sum sum(group);
    const auto spins_alone = [&] {
      const unsigned others = looks.by_others;
      for (const unsigned end = looks.by_maker + 2000; looks.by_maker < end;) {
        EXPECT_FALSE(sum.pending().test());
      }
      return looks.by_others == others;
    };
    if (rank == 0) {
      EXPECT_TRUE(test::comes_true(spins_alone, std::chrono::seconds(60)));
      has_spun = true;
    }
    sum.spin();
  }));
}

TEST(Tester, LeavesTheRestToTheOwnThreadWhenItStaysAway) {
  Pair pair({.loss = 0.1});
  expect_none(pair.run(ProgressBy::thread, [](Group& group) {
    pollfd done{group.descriptor(), POLLIN, 0};
    for (int call = 0; call < 20; ++call) {
      Sum sum(group);
      for (int look = 0; look < 100; ++look) {
        sum.pending().test();
      }
      EXPECT_TRUE(sum.pending().test() || poll(&done, 1, 10'000) == 1) << "call " << call;
      EXPECT_TRUE(sum.pending().test()) << "what is known to be done is not pending";
      sum.expect_exact();
    }
  }));
}

class EitherWay : public testing::TestWithParam<ProgressBy> {};

TEST_P(EitherWay, ManyRequestsAreTestedBySeveralThreads) {
  Pair pair({.loss = 0.02});
  expect_none(pair.run(GetParam(), [](Group& group) {
    constexpr int kRequests = 16;
    std::vector<std::unique_ptr<Sum>> sums;
    for (int request = 0; request < kRequests; ++request) {
      sums.push_back(std::make_unique<Sum>(group));
    }
    std::vector<std::jthread> testers;
    for (int thread = 0; thread < 3; ++thread) {
      testers.emplace_back([&] {
        for (const auto& sum : sums) {
          sum->spin();
        }
      });
    }
  }));
}

/// The waiting thread sleeps, and the testers see what it does.
TEST_P(EitherWay, TestersAndWaitersDoNotHoldOneAnotherUp) {
  Pair pair;
  expect_none(pair.run(GetParam(), [](Group& group) {
    for (int round = 0; round < 20; ++round) {
      std::array<std::unique_ptr<Sum>, 3> sums{
          std::make_unique<Sum>(group), std::make_unique<Sum>(group), std::make_unique<Sum>(group)};
      const std::jthread tester([&] { sums[2]->spin(); });
      const std::jthread patient([&] {
        while (!sums[0]->pending().wait_for(milliseconds(1))) {
        }
      });
      sums[1]->pending().wait();
      sums[1]->expect_exact();
    }
  }));
}

TEST_P(EitherWay, ClosingEndsTheTestsOfOtherThreads) {
  Pair pair;
  std::latch is_tested(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    auto group = std::make_unique<Group>(pair.options(rank, GetParam()), pair.open(rank));
    if (rank == 1) {
      is_tested.arrive_and_wait();
      Sum(*group).pending().wait();
      return;
    }
    Sum sum(*group);
    Ending ending;
    std::jthread tester([&] {
      EXPECT_FALSE(sum.pending().test());
      is_tested.count_down();
      ending = ending_of([&] { sum.spin(); });
    });
    is_tested.wait();
    group.reset();
    tester.join();
    EXPECT_TRUE(!ending.code || ending.code == ErrorCode::peer_died) << ending.text;
  });
  EXPECT_FALSE(endings[0].code) << endings[0].text;
}

INSTANTIATE_TEST_SUITE_P(Groups, EitherWay, testing::Values(ProgressBy::thread, ProgressBy::caller),
                         [](const auto& info) {
                           return info.param == ProgressBy::thread ? "WithAThread"
                                                                   : "WithoutAThread";
                         });

TEST(WithoutAThread, OnlyCallersDoAnything) {
  Pair pair;
  std::latch has_waited(2);
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    LookersIo::Looks looks;
    Group group(pair.options(rank, ProgressBy::caller),
                std::make_unique<LookersIo>(pair.open(rank), looks));
    Sum tested(group);
    const unsigned before = looks.by_maker;
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(looks.by_maker, before);
    EXPECT_EQ(tested.pending().bytes_done(), 0);
    tested.spin();
    Sum waited(group);
    waited.pending().wait();
    waited.expect_exact();
    has_waited.arrive_and_wait();
    group.progress();
    EXPECT_EQ(looks.by_others, 0);
    EXPECT_THROW(group.descriptor(), std::invalid_argument);
  }));
}

/// The other rank need not wait until the one that aborts comes to its next call.
TEST(WithoutAThread, AnAbortIsToldAtOnce) {
  Pair pair;
  std::latch is_told(1);
  expect_none(pair.run(ProgressBy::caller, [&](Group& group) {
    if (group.rank() == 1) {
      group.abort("the disk is full");
      is_told.wait();
      EXPECT_EQ(ending_of([&] { group.progress(); }).code, ErrorCode::aborted);
      return;
    }
    const Ending ending = ending_of([&] { Sum(group).pending().wait(); });
    is_told.count_down();
    EXPECT_EQ(ending.code, ErrorCode::aborted);
    EXPECT_EQ(ending.text, "rank 1 aborted its group: the disk is full");
  }));
}

/// Rank 1 comes to its call when rank 0 has long asked for whom it waits.
std::vector<Ending> run_late(const std::function<void(Group&)>& meanwhile) {
  Pair pair;
  return run_ranks(2, [&](std::uint16_t rank) {
    GroupOptions options = pair.options(rank, ProgressBy::caller);
    options.timeout = milliseconds(300);
    Group group(options, pair.open(rank));
    if (rank == 1) {
      const auto end = Clock::now() + milliseconds(2500);
      while (Clock::now() < end) {
        meanwhile(group);
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
    Sum sum(group);
    sum.pending().wait();
    sum.expect_exact();
  });
}

TEST(WithoutAThread, ARankThatStaysAwayForTooLongIsTheOneThatErrorsName) {
  const auto endings = run_late([](Group&) {});
  expect_all(endings, ErrorCode::timeout);
  EXPECT_EQ(endings[0].rank, 1) << endings[0].text;
}

TEST(WithoutAThread, ARankThatMakesProgressMayBeLate) {
  expect_none(run_late([](Group& group) { group.progress(); }));
}

} // namespace
} // namespace weir::host::progress_test
