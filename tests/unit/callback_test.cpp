// SPDX-License-Identifier: BSD-3-Clause

/// Callbacks of requests: when they come, how often, and what they may do.

#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <poll.h>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weir::host::callback_test {
namespace {

constexpr std::size_t kCount = 500;

/// Both ranks of a job around a switch in memory, each with a group of this kind.
std::vector<Ending> run_pair(ProgressBy progress, const std::function<void(Group&)>& body) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  return run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.progress = progress;
    Group group(options, fabric.open(rank));
    body(group);
  });
}

Pending start(Group& group, std::vector<std::uint32_t>& data) {
  return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                Operation::max);
}

/// Returns when it is true. If the group has no thread, this one drives.
bool comes_true(Group& group, const std::function<bool()>& condition) {
  return test::comes_true(
      [&] {
        if (group.options().progress == ProgressBy::caller) {
          ending_of([&] { group.progress(); });
        }
        return condition();
      },
      std::chrono::seconds(20));
}

class Callback : public testing::TestWithParam<ProgressBy> {};

TEST_P(Callback, ComesOnceForEachRequestInTheirOrder) {
  expect_none(run_pair(GetParam(), [](Group& group) {
    constexpr int kRequests = 50;
    std::vector<std::uint32_t> data(kCount, 1);
    std::vector<int> called; // one at a time
    std::atomic<int> calls = 0;
    std::vector<Pending> pending;
    for (int request = 0; request < kRequests; ++request) {
      pending.push_back(start(group, data));
      pending.back().on_done([&, request](const std::optional<Error>& error) {
        EXPECT_FALSE(error);
        called.push_back(request);
        ++calls;
      });
    }
    EXPECT_TRUE(comes_true(group, [&] { return calls == kRequests; }));
    for (int request = 0; request < kRequests; ++request) {
      EXPECT_TRUE(pending[static_cast<std::size_t>(request)].test());
      EXPECT_EQ(called[static_cast<std::size_t>(request)], request);
    }
  }));
}

/// A series of calls, of which each one's callback starts the next.
class Series {
 public:
  Series(Group& group, int calls) : group_(group), left_(calls) { go_on(); }

  bool is_over() const { return left_ == 0; }

 private:
  void go_on() {
    pending_ = start(group_, data_);
    pending_.on_done([this](const std::optional<Error>& error) {
      EXPECT_FALSE(error);
      if (--left_ != 0) {
        go_on();
      }
    });
  }

  Group& group_;
  std::atomic<int> left_;
  std::vector<std::uint32_t> data_ = std::vector<std::uint32_t>(kCount, 1);
  Pending pending_;
};

TEST_P(Callback, MayStartTheNextCall) {
  expect_none(run_pair(GetParam(), [](Group& group) {
    Series series(group, 200);
    EXPECT_TRUE(comes_true(group, [&] { return series.is_over(); }));
  }));
}

/// Each would begin within the last one's.
TEST_P(Callback, OfCallsThatAreDoneAtOnceDoesNotFillTheStack) {
  GroupOptions options;
  options.world = 1;
  options.rendezvous = "127.0.0.1:1";
  options.progress = GetParam();
  Group group(options);
  Series series(group, 20'000);
  EXPECT_TRUE(comes_true(group, [&] { return series.is_over(); }));
}

TEST_P(Callback, ComesAtOnceForARequestThatIsDone) {
  expect_none(run_pair(GetParam(), [](Group& group) {
    std::vector<std::uint32_t> data(kCount, 1);
    Pending pending = start(group, data);
    pending.wait();
    bool is_called = false;
    pending.on_done([&](const std::optional<Error>&) { is_called = true; });
    EXPECT_TRUE(is_called);
    EXPECT_THROW(pending.on_done([](const std::optional<Error>&) {}), std::invalid_argument);
    Pending nothing;
    bool is_called_too = false;
    nothing.on_done([&](const std::optional<Error>&) { is_called_too = true; });
    EXPECT_TRUE(is_called_too);
  }));
}

TEST_P(Callback, HasTheErrorThatEndedTheRequest) {
  std::atomic<int> told = 0;
  std::latch have_started(1);
  expect_none(run_pair(GetParam(), [&](Group& group) {
    std::vector<std::uint32_t> data(kCount, 1);
    const int requests = group.rank() == 0 ? 3 : 0;
    for (int request = 0; request < requests; ++request) {
      start(group, data).on_done([&](const std::optional<Error>& error) {
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::aborted);
        EXPECT_STREQ(error->what(), "rank 1 aborted its group: enough");
        ++told;
      });
    }
    if (group.rank() == 1) {
      have_started.wait();
      group.abort("enough");
    } else {
      have_started.count_down();
    }
    EXPECT_TRUE(comes_true(group, [&] { return told == 3; }));
  }));
}

TEST_P(Callback, ComesWhenTheGroupIsClosed) {
  std::atomic<int> told = 0;
  std::atomic<int> started_late = 0;
  const auto endings = run_pair(GetParam(), [&](Group& group) {
    if (group.rank() == 1) {
      EXPECT_TRUE(comes_true(group, [&] { return told == 2; }));
      return;
    }
    const auto data = std::make_shared<std::vector<std::uint32_t>>(kCount, 1);
    for (int request = 0; request < 2; ++request) {
      start(group, *data).on_done([&, data](const std::optional<Error>& error) {
        EXPECT_TRUE(error && error->code() == ErrorCode::peer_died);
        EXPECT_EQ(ending_of([&] { start(group, *data); }).code, ErrorCode::peer_died);
        ++started_late;
        ++told;
      });
    }
  });
  EXPECT_FALSE(endings[0].code) << endings[0].text;
  EXPECT_EQ(told, 2);
  EXPECT_EQ(started_late, 2);
}

TEST_P(Callback, MayTestAndAbortButNotWait) {
  std::latch is_done(1);
  std::latch is_aborted(1);
  run_pair(GetParam(), [&](Group& group) {
    std::vector<std::uint32_t> data(kCount, 1);
    std::vector<std::uint32_t> more(kCount, 1);
    Pending first = start(group, data);
    Pending second;
    std::atomic<bool> is_called = false;
    first.on_done([&](const std::optional<Error>&) {
      EXPECT_NO_THROW(first.wait()) << "it is done";
      if (group.rank() == 0) { // rank 1 does not make this call
        second = start(group, more);
        EXPECT_FALSE(second.test());
        EXPECT_THROW(second.wait(), std::invalid_argument);
        EXPECT_THROW(second.wait_for(milliseconds(1)), std::invalid_argument);
        group.statistics();
        group.progress();
        is_done.wait(); // an abort ends calls whose last packets are on their way
        group.abort();
      } else {
        is_done.count_down();
      }
      is_called = true;
    });
    EXPECT_TRUE(comes_true(group, [&] { return is_called.load(); }));
    if (group.rank() == 0) {
      EXPECT_EQ(ending_of([&] { second.wait(); }).code, ErrorCode::aborted);
      is_aborted.count_down();
    }
    is_aborted.wait();
  });
}

/// Threads that test, wait and register race with the group's end.
TEST_P(Callback, ComesExactlyOnceWhateverThreadsDo) {
  std::mt19937_64 seeds(7);
  for (int round = 0; round < 6; ++round) {
    std::atomic<int> registered = 0;
    std::atomic<int> called = 0;
    const std::uint64_t seed = seeds();
    run_pair(GetParam(), [&](Group& group) {
      const auto visit = [&](std::uint64_t own_seed) {
        std::mt19937_64 dice(own_seed);
        for (int call = 0; call < 60; ++call) {
          auto data = std::make_shared<std::vector<std::uint32_t>>(kCount, 1);
          Pending pending = start(group, *data);
          if (dice() % 2 == 0) {
            pending.wait_for(milliseconds(dice() % 2));
          }
          ++registered;
          pending.on_done([&called, data](const std::optional<Error>&) { ++called; });
          switch (dice() % 4) {
          case 0:
            pending.wait();
            break;
          case 1:
            for (int look = 0; look < 50; ++look) {
              pending.test();
            }
            break;
          default:
            break;
          }
        }
      };
      std::vector<std::jthread> threads;
      for (std::uint64_t thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&, thread] { ending_of([&] { visit(seed + thread); }); });
      }
      if (round % 2 == 0 && group.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::microseconds(seed % 20'000));
        group.abort();
      }
      for (std::jthread& thread : threads) {
        thread.join();
      }
      group.abort(); // who has not come to the last calls makes them no more
    });
    EXPECT_EQ(called, registered);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, Callback, testing::Values(ProgressBy::thread, ProgressBy::caller),
                         [](const auto& info) {
                           return info.param == ProgressBy::thread ? "WithAThread"
                                                                   : "WithoutAThread";
                         });

TEST(CallbackAndDescriptor, NobodyNeedsToLookForARequestWithACallback) {
  expect_none(run_pair(ProgressBy::thread, [](Group& group) {
    std::vector<std::uint32_t> data(kCount, 1);
    pollfd done{group.descriptor(), POLLIN, 0};
    Pending called = start(group, data);
    std::atomic<bool> is_called = false;
    called.on_done([&](const std::optional<Error>&) { is_called = true; });
    EXPECT_TRUE(comes_true(group, [&] { return is_called.load(); }));
    EXPECT_EQ(poll(&done, 1, 0), 0);
    Pending polled = start(group, data);
    EXPECT_EQ(poll(&done, 1, 10'000), 1);
    polled.on_done([](const std::optional<Error>&) {});
    EXPECT_EQ(poll(&done, 1, 0), 0);
  }));
}

} // namespace
} // namespace weir::host::callback_test
