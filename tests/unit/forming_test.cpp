// SPDX-License-Identifier: BSD-3-Clause

/// Groups that are formed while their callers do other things: polled, in any order, aborted in
/// every stage.

#include "host/api/forming.hpp"
#include "host/api/transport_options.hpp"
#include "host/rendezvous/agreement.hpp"
#include "host/shrink/group_history.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::forming_test {
namespace {

using testing::HasSubstr;

// Much less than any time limit of these tests, and enough for a machine that is busy.
constexpr std::chrono::seconds kAtOnce{4};

Group polled(Forming& forming) {
  while (!forming.test()) {
    std::this_thread::yield();
  }
  return std::move(*forming.take());
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Ranks of one process around a fabric, each with a forming.
class FormingJob : public testing::Test {
 protected:
  explicit FormingJob(std::uint16_t world = 3) : plan_{.world = world} {}

  HostFabric& fabric() {
    if (!fabric_) {
      fabric_ = std::make_unique<HostFabric>(rings_of(plan_), plan_.world, kSession);
    }
    return *fabric_;
  }

  virtual GroupOptions options(std::uint16_t rank) const {
    GroupOptions options = options_of(plan_, rank, address_);
    options.form_timeout = milliseconds(30'000);
    options.timeout = milliseconds(30'000);
    return options;
  }

  std::unique_ptr<Forming> start(std::uint16_t rank) {
    return std::make_unique<Forming>(options(rank), fabric().open(rank));
  }

  /// Of the given ranks; the others have none.
  std::vector<std::unique_ptr<Forming>> start_all(const std::vector<std::uint16_t>& ranks) {
    std::vector<std::unique_ptr<Forming>> formings(plan_.world);
    for (const std::uint16_t rank : ranks) {
      formings[rank] = start(rank);
    }
    return formings;
  }

  /// What the forming throws, at once.
  static Ending end_of(const Forming& forming) {
    return ending_of([&] { EXPECT_FALSE(forming.wait_for(kAtOnce)) << "neither done nor over"; });
  }

  static void expect_aborted(const Ending& ending, std::uint16_t rank) {
    EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
    EXPECT_EQ(ending.rank, rank) << ending.text;
    EXPECT_EQ(ending.text, "rank " + std::to_string(rank) +
                               " aborted the forming of its group: we have seen enough");
  }

  /// One aborts, and all end at once.
  void expect_end(const std::vector<std::unique_ptr<Forming>>& formings, std::uint16_t aborting) {
    formings[aborting]->abort("we have seen enough");
    for (const std::unique_ptr<Forming>& forming : formings) {
      if (forming) {
        expect_aborted(end_of(*forming), aborting);
      }
    }
  }

  JobPlan plan_;
  const std::string address_ = free_address();

 private:
  std::unique_ptr<HostFabric> fabric_;
};

/// When the last rank has come, and not before.
TEST_F(FormingJob, IsDoneWhenTheLastRankHasCome) {
  auto formings = start_all({0, 1});
  EXPECT_FALSE(formings[0]->wait_for(milliseconds(100)));
  EXPECT_FALSE(formings[1]->test());
  EXPECT_FALSE(formings[0]->take());
  formings[2] = start(2);
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    Group group = polled(*formings[rank]);
    EXPECT_TRUE(formings[rank]->test()) << "it stays done";
    EXPECT_THROW(formings[rank]->take(), std::invalid_argument);
    formings[rank].reset();
    expect_sum(group);
  }));
}

TEST_F(FormingJob, TellsPollThatItIsDone) {
  auto formings = start_all({0, 2});
  const int early = formings[0]->descriptor();
  EXPECT_FALSE(is_readable(early));
  formings[1] = start(1);
  pollfd entry{early, POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 20'000), 1);
  EXPECT_TRUE(formings[0]->test());
  EXPECT_TRUE(formings[1]->wait_for(milliseconds::max()));
  EXPECT_TRUE(is_readable(formings[1]->descriptor())) << "made when it is done";
  EXPECT_TRUE(is_readable(early)) << "for ever";
}

TEST_F(FormingJob, ThrowsWhatTheConstructorOfAGroupThrows) {
  GroupOptions wrong = options(0);
  wrong.window = 0;
  EXPECT_THROW(Forming(wrong, fabric().open(0)), std::invalid_argument);
  GroupOptions late = options(1);
  late.form_timeout = milliseconds(100);
  const Forming forming(late, fabric().open(1));
  EXPECT_EQ(end_of(forming).code, ErrorCode::rendezvous_timeout);
  EXPECT_EQ(ending_of([&] { forming.test(); }).code, ErrorCode::rendezvous_timeout) << "again";
}

TEST_F(FormingJob, OfOneRankMeetsNobody) {
  GroupOptions alone = options(0);
  alone.world = 1;
  Forming forming(alone, std::unique_ptr<FrameIo>());
  Group group = polled(forming);
  EXPECT_EQ(group.algorithm(), Algorithm::alone);
}

/// Ranks that form two groups one after the other would wait for one another for ever.
TEST_F(FormingJob, SeveralMayBeStartedInAnotherOrderOnEachRank) {
  constexpr std::size_t kGroups = 4;
  plan_.rings = {1, 2, 3, 4};
  std::array<std::string, kGroups> addresses;
  std::ranges::generate(addresses, [] { return free_address(); });
  fabric();
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    std::array<std::optional<Forming>, kGroups> formings;
    for (std::size_t turn = 0; turn < kGroups; ++turn) {
      const std::size_t group = (turn + rank) % kGroups;
      GroupOptions own = options(rank);
      own.rings = {plan_.rings[group]};
      own.rendezvous = addresses[group];
      formings[group].emplace(own, fabric().open(rank));
      std::this_thread::sleep_for(milliseconds(30));
    }
    for (std::optional<Forming>& forming : formings) {
      Group group = polled(*forming);
      expect_sum(group);
    }
  }));
}

TEST_F(FormingJob, IsAbortedWhileNobodyListens) {
  for (const std::uint16_t rank : {1, 2}) {
    expect_end(start_all({rank}), rank);
  }
}

TEST_F(FormingJob, IsAbortedWhileARankIsMissing) {
  for (const std::uint16_t aborting : {0, 1}) {
    const auto formings = start_all({0, 1});
    std::this_thread::sleep_for(milliseconds(300)); // they meet
    expect_end(formings, aborting);
  }
}

/// As a rank that has come and does nothing more, or as much as `steps` says: its introduction,
/// where its connections come from, where it listens, that it is connected. What is left of it when
/// it dies?
class SlowRank {
 public:
  SlowRank(const GroupOptions& options, HostFabric& fabric, int steps)
      : thread_([this, options, &fabric, steps] {
          ending_ = ending_of([&] { run(options, fabric, steps); });
          rendezvous_.reset();
        }) {}

  ~SlowRank() { die(); }

  SlowRank(const SlowRank&) = delete;
  SlowRank& operator=(const SlowRank&) = delete;

  bool is_there() const {
    return test::comes_true([this] { return is_there_.load(); }, std::chrono::seconds(10));
  }

  /// As its process ends: without a word.
  void die() {
    is_over_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  /// What it hears when it goes on.
  Ending ending() {
    goes_on_ = true;
    thread_.join();
    return ending_;
  }

 private:
  void run(const GroupOptions& options, HostFabric& fabric, int steps) {
    const RendezvousPlan plan{options.rank, options.world, options.rendezvous,
                              options.form_timeout};
    const auto transport = open_software_transport(options, fabric.open(options.rank));
    rendezvous_ = std::make_unique<Rendezvous>(plan);
    std::shared_ptr<GroupHistory> history;
    if (steps > 0) {
      rendezvous_->gather(
          introduce(options, {{1, 7}, RingSource::configuration, {}, transport->address()}));
    }
    if (steps > 1) {
      history = begin_history(*rendezvous_, plan);
    }
    if (steps > 2) {
      rendezvous_->gather({});
    }
    is_there_ = true;
    test::comes_true([this] { return is_over_ || goes_on_; });
    if (goes_on_) {
      rendezvous_->gather({});
    }
  }

  std::unique_ptr<Rendezvous> rendezvous_;
  Ending ending_;
  std::atomic<bool> is_there_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> goes_on_ = false;
  std::thread thread_; // begins when all else is there
};

/// After how many steps the third rank stands.
class InStage : public FormingJob, public testing::WithParamInterface<int> {
 protected:
  std::unique_ptr<SlowRank> come_slowly() {
    auto slow = std::make_unique<SlowRank>(options(2), fabric(), GetParam());
    formings_ = start_all({0, 1});
    EXPECT_TRUE(slow->is_there());
    std::this_thread::sleep_for(milliseconds(100)); // the others come to where they wait
    return slow;
  }

  std::vector<std::unique_ptr<Forming>> formings_;
};

TEST_P(InStage, AnAbortedFormingEndsOnAllRanks) {
  for (const std::uint16_t aborting : {0, 1}) {
    const auto slow = come_slowly();
    expect_end(formings_, aborting);
    expect_aborted(slow->ending(), aborting);
  }
}

TEST_P(InStage, ARankThatDiesEndsItAtOnce) {
  const auto slow = come_slowly();
  slow->die();
  for (const std::uint16_t rank : {0, 1}) {
    const Ending ending = end_of(*formings_[rank]);
    EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
    EXPECT_EQ(ending.rank, 2) << ending.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, InStage, testing::Range(0, 4));

/// All ranks have said hello, and no switch answers.
TEST_F(FormingJob, IsAbortedWhileNoSwitchAnswers) {
  for (const std::uint16_t aborting : {0, 1, 2}) {
    fabric().cut();
    const auto formings = start_all({0, 1, 2});
    std::this_thread::sleep_for(milliseconds(500));
    expect_end(formings, aborting);
  }
}

/// The group is there already: what was not taken ends like a group.
TEST_F(FormingJob, IsAbortedWhenItIsFormedAndNotTaken) {
  auto formings = start_all({0, 1, 2});
  EXPECT_TRUE(formings[1]->wait_for(milliseconds(20'000)));
  formings[1]->abort("we have seen enough");
  expect_aborted(ending_of([&] { formings[1]->test(); }), 1);
  expect_aborted(ending_of([&] { formings[1]->take(); }), 1);
  for (const std::uint16_t rank : {0, 2}) {
    const Ending ending = ending_of([&] {
      Group group = polled(*formings[rank]);
      expect_sum(group);
    });
    EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
    EXPECT_EQ(ending.rank, 1);
    EXPECT_THAT(ending.text, HasSubstr("we have seen enough"));
  }
}

TEST_F(FormingJob, AGroupThatWasTakenGoesOn) {
  auto formings = start_all({0, 1, 2});
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    Group group = polled(*formings[rank]);
    formings[rank]->abort("too late");
    EXPECT_TRUE(formings[rank]->test());
    formings[rank].reset();
    expect_sum(group);
  }));
}

TEST_F(FormingJob, NothingIsLeftOfOneThatIsReleased) {
  fabric();
  start_all({0, 1}).clear(); // the first opens what the library keeps
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  for (int pause = 0; pause < 100; pause += 20) {
    auto formings = start_all({1, 0, 2});
    formings[1]->descriptor();
    std::this_thread::sleep_for(milliseconds(pause));
    const Deadline start = Clock::now();
    formings.clear();
    EXPECT_LT(Clock::now() - start, kAtOnce);
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
    EXPECT_EQ(entries_of("/proc/self/task"), threads);
    EXPECT_TRUE(listen_at(*Endpoint::parse(address_))) << "its port is free";
  }
}

/// At the same address, over the same ring: what is still under way of the first belongs to nobody.
TEST_F(FormingJob, AnotherTakesThePlaceOfOneThatWasAborted) {
  for (int pause = 0; pause < 60; pause += 10) {
    const auto aborted = start_all({0, 1, 2});
    std::this_thread::sleep_for(milliseconds(pause));
    for (const std::uint16_t rank : {0, 1, 2}) {
      aborted[rank]->abort();
    }
  }
  std::vector<std::unique_ptr<Forming>> formings(plan_.world);
  for (const std::uint16_t rank : {2, 0, 1}) {
    GroupOptions next = options(rank);
    next.epoch = 2;
    formings[rank] = std::make_unique<Forming>(next, fabric().open(rank));
  }
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    Group group = polled(*formings[rank]);
    expect_sum(group);
  }));
}

/// On each rank, each group is started and aborted at some time, or not. All end at once: no rank
/// waits for one that has aborted.
TEST_F(FormingJob, SeveralAreAbortedAtRandom) {
  constexpr int kRounds = 6;
  constexpr std::uint32_t kGroups = 3;
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device()();
  std::printf("WEIR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  plan_.rings = {1, 2, 3};
  plan_.fallback = Fallback::ring;
  std::array<std::string, kGroups> addresses;
  std::ranges::generate(addresses, [] { return free_address(); });
  fabric();
  const Deadline start = Clock::now();
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    std::mt19937_64 dice(seed + rank);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Forming> formings;
      for (std::uint32_t group = 0; group < kGroups; ++group) {
        GroupOptions own = options(rank);
        own.rings = {group + 1};
        own.rendezvous = addresses[group];
        own.form_timeout = milliseconds(2000); // some have left before others come
        formings.emplace_back(own, fabric().open(rank));
        std::this_thread::sleep_for(milliseconds(dice() % 10));
      }
      for (Forming& forming : formings) {
        std::this_thread::sleep_for(milliseconds(dice() % 40));
        ending_of([&] {
          if (std::optional<Group> group = forming.take()) {
            group->abort("at random"); // else its end waits for the others
          }
        });
        if (dice() % 2 == 0) {
          forming.abort("at random");
        }
      }
    }
  }));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
}

} // namespace
} // namespace weir::host::forming_test
