// SPDX-License-Identifier: BSD-3-Clause

/// The threads that drive a process's groups, with made ones in their place.

#include "host/api/progress_threads.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <sys/eventfd.h>
#include <thread>
#include <utility>
#include <vector>

namespace weir::host::progress_threads_test {
namespace {

constexpr Rest kWatched{.is_watched = true};

bool comes_true(const std::function<bool()>& condition) {
  return test::comes_true(condition, std::chrono::seconds(20));
}

std::size_t threads_of_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// Threads that were joined are listed for a moment still.
std::size_t threads_that_stay() {
  std::size_t least = threads_of_process();
  for (int look = 0; look < 100; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, threads_of_process());
  }
  return least;
}

/// Who does as it is told, and counts.
class Client : public Attended {
 public:
  using Body = std::function<Rest(Wakening)>;

  explicit Client(Body body) : body_(std::move(body)), seat_(*this, event_.get()) {}

  Client(std::shared_ptr<ProgressThreads> threads, Body body)
      : body_(std::move(body)), seat_(*this, event_.get(), std::move(threads)) {}

  Rest attend(Wakening wakening, Deadline stay) override {
    EXPECT_FALSE(is_within_.exchange(true)) << "two threads at a time";
    may_stay_ = stay > Clock::now();
    const Rest rest = body_(wakening);
    is_within_ = false;
    ++turns_;
    return rest;
  }

  void make_readable() { eventfd_write(event_.get(), 1); }

  void make_quiet() {
    eventfd_t count = 0;
    eventfd_read(event_.get(), &count);
  }

  void call() { seat_.call(); }

  int turns() const { return turns_; }

  bool may_stay() const { return may_stay_; }

 private:
  const Body body_;
  std::atomic<bool> may_stay_ = false;
  std::atomic<bool> is_within_ = false;
  std::atomic<int> turns_ = 0;
  Socket event_{[] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }};
  ProgressThreads::Seat seat_;
};

/// Lets nobody through until it is opened.
class Gate {
 public:
  ~Gate() { open(); }

  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

  void pass() {
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.wait(lock, [this] { return is_open_; });
  }

  bool is_reached() {
    const std::lock_guard lock(mutex_);
    return is_reached_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  bool is_reached_ = false;
};

TEST(ProgressThreads, AttendWhenASeatIsTakenAndWhenItCalls) {
  Client client([](Wakening) { return Rest(); });
  EXPECT_TRUE(comes_true([&] { return client.turns() == 1; }));
  for (int call = 2; call < 100; ++call) {
    client.call();
    EXPECT_TRUE(comes_true([&] { return client.turns() == call; })) << call;
  }
}

TEST(ProgressThreads, AttendWhenTheDescriptorIsReadableIfItIsWatched) {
  std::atomic<int> by_descriptor = 0;
  std::atomic<bool> is_watched = true;
  Client client([&](Wakening wakening) {
    by_descriptor += wakening == Wakening::by_descriptor ? 1 : 0;
    return Rest{.is_watched = is_watched};
  });
  Client other([](Wakening) { return kWatched; });
  EXPECT_TRUE(comes_true([&] { return client.turns() == 1 && other.turns() == 1; }));
  client.make_readable(); // and it stays so
  EXPECT_TRUE(comes_true([&] { return by_descriptor > 3; }));
  is_watched = false;
  client.call();
  int turns = 0;
  EXPECT_TRUE(comes_true([&] { return std::exchange(turns, client.turns()) == client.turns(); }));
  other.call();
  EXPECT_TRUE(comes_true([&] { return other.turns() == 2; }));
}

TEST(ProgressThreads, AttendWhenTheRestIsOver) {
  std::vector<Deadline> ends;
  std::atomic<bool> is_over = false;
  Client client([&](Wakening) {
    EXPECT_TRUE(ends.empty() || Clock::now() >= ends.back());
    if (ends.size() == 20) {
      is_over = true;
      return Rest();
    }
    ends.push_back(Clock::now() + std::chrono::microseconds(300));
    return Rest{.end = ends.back()};
  });
  EXPECT_TRUE(comes_true([&] { return is_over.load(); }));
}

/// So patient that who comes does not come because of the clock.
std::shared_ptr<ProgressThreads> patient_threads() {
  return std::make_shared<ProgressThreads>(std::chrono::hours(1));
}

/// As a step does: meanwhile others get the lock.
void take_a_moment() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// As a group with a small call beside one with a large call.
TEST(ProgressThreads, GiveAReadableOneTheNextTurnBesideABusyOne) {
  constexpr int kRounds = 100;
  constexpr int kTurns = 3; // of a round, after which it rests: one thread does it all
  const auto threads = patient_threads();
  std::atomic<int> turns_since = 0;
  std::atomic<int> rounds = 0;
  std::atomic<bool> is_asked = false;
  Client small(threads, [&](Wakening) {
    if (is_asked.exchange(false)) {
      small.make_quiet();
      EXPECT_EQ(turns_since, 1);
      ++rounds;
    }
    return kWatched;
  });
  EXPECT_TRUE(comes_true([&] { return small.turns() == 1; }));
  Client busy(threads, [&](Wakening) {
    const bool is_first = busy.turns() % kTurns == 0;
    if (is_first) {
      turns_since = 0;
      is_asked = true;
      small.make_readable();
    }
    return ++turns_since == kTurns ? Rest() : kNoRest;
  });
  for (int round = 1; round <= kRounds; ++round) {
    EXPECT_TRUE(comes_true([&] { return busy.turns() == round * kTurns && rounds == round; }));
    busy.call();
  }
  EXPECT_TRUE(comes_true([&] { return busy.turns() == (kRounds + 1) * kTurns; }));
}

/// As a small call beside a large one, whose thread may be late to its next turn: here it never
/// comes.
TEST(ProgressThreads, AnotherOneListensWhileOneDoesNotRest) {
  constexpr int kBefore = 20; // turns
  const auto threads = patient_threads();
  Gate gate;
  Client small(threads, [](Wakening) { return kWatched; });
  EXPECT_TRUE(comes_true([&] { return small.turns() == 1; }));
  std::atomic<int> turns = 0;
  Client busy(threads, [&](Wakening) {
    if (++turns > kBefore) {
      gate.pass();
      return Rest();
    }
    return kNoRest;
  });
  EXPECT_TRUE(comes_true([&] { return gate.is_reached(); }));
  small.make_readable();
  EXPECT_TRUE(comes_true([&] { return small.turns() > 1; }));
  gate.open();
}

TEST(ProgressThreads, AreOneForThoseThatSoonRest) {
  constexpr int kRests = 10;
  const auto threads = patient_threads();
  std::set<std::thread::id> seen;
  std::atomic<int> rests = 0;
  std::atomic<int> turns = 0;
  Client other(threads, [](Wakening) { return kWatched; });
  Client client(threads, [&](Wakening) {
    seen.insert(std::this_thread::get_id());
    if (++turns % 3 != 0) { // messages, callbacks, nothing more
      std::this_thread::sleep_for(std::chrono::milliseconds(2)); // for one that should not come
      return kNoRest;
    }
    client.make_quiet();
    ++rests;
    return kWatched;
  });
  for (int rest = 1; rest <= kRests; ++rest) {
    EXPECT_TRUE(comes_true([&] { return rests == rest; }));
    client.make_readable();
  }
  EXPECT_TRUE(comes_true([&] { return rests > kRests; }));
  EXPECT_EQ(seen.size(), 1);
}

/// Then it keeps its thread, and the other one stays as fresh as it is.
TEST(ProgressThreads, OnlyABusyOneMayStayAndOnlyWhileAnotherOneListens) {
  const auto threads = patient_threads();
  std::atomic<bool> is_over = false;
  std::atomic<std::thread::id> busy_ones;
  Client alone(threads, [&](Wakening) {
    EXPECT_FALSE(alone.may_stay());
    return alone.turns() < 100 ? kNoRest : Rest();
  });
  EXPECT_TRUE(comes_true([&] { return alone.turns() > 100; }));
  Client small(threads, [&](Wakening) {
    EXPECT_NE(std::this_thread::get_id(), busy_ones.load());
    return kWatched;
  });
  EXPECT_TRUE(comes_true([&] { return small.turns() == 1; }));
  std::atomic<int> stays = 0;
  Client busy(threads, [&](Wakening) {
    take_a_moment();
    if (busy.may_stay()) {
      busy_ones = std::this_thread::get_id();
      ++stays;
    }
    EXPECT_TRUE(busy.turns() > 3 || !busy.may_stay()) << "after so few turns";
    return is_over ? Rest() : kNoRest;
  });
  for (int call = 0; call < 50; ++call) {
    const int before = stays;
    const int turns = small.turns();
    EXPECT_TRUE(comes_true([&] { return stays > before; }));
    small.call();
    EXPECT_TRUE(comes_true([&] { return small.turns() > turns; }));
    EXPECT_FALSE(small.may_stay());
  }
  is_over = true;
}

TEST(ProgressThreads, NeitherOfTwoBusyOnesStarves) {
  constexpr int kTurns = 200;
  const auto threads = patient_threads();
  std::array<std::atomic<int>, 2> turns{};
  const auto body = [&](std::size_t self) {
    return [&turns, self](Wakening) {
      take_a_moment();
      const bool is_over = ++turns[self] > kTurns && turns[1 - self] > kTurns;
      return is_over ? Rest() : kNoRest;
    };
  };
  Client one(threads, body(0));
  Client other(threads, body(1));
  EXPECT_TRUE(comes_true([&] { return turns[0] > kTurns && turns[1] > kTurns; }));
}

/// A callback that takes long, or a NIC that does not end its requests.
TEST(ProgressThreads, OthersAreAttendedToWhileOneHoldsUpItsThread) {
  constexpr int kStuck = 3;
  Gate gate;
  std::deque<Client> stuck;
  for (int number = 0; number < kStuck; ++number) {
    stuck.emplace_back([&](Wakening) {
      gate.pass();
      return Rest();
    });
  }
  Client unhurt([](Wakening) { return kWatched; });
  for (int call = 0; call < 20; ++call) {
    const int turns = unhurt.turns();
    unhurt.call();
    EXPECT_TRUE(comes_true([&] { return unhurt.turns() > turns; }));
  }
  gate.open();
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(stuck, [](const Client& client) { return client.turns() == 1; });
  }));
}

/// One waits for events at the end, and wakes when it has come.
TEST(ProgressThreads, EndAtOnceHoweverPatientTheyAre) {
  constexpr int kEnds = 300;
  std::atomic<int> ends = 0;
  std::thread ending([&] {
    while (ends < kEnds) {
      auto threads = std::make_shared<ProgressThreads>(std::chrono::seconds(25));
      Client one(threads, [](Wakening) { return kWatched; });
      Client other(std::move(threads), [](Wakening) { return kWatched; });
      ++ends;
    }
  });
  EXPECT_TRUE(comes_true([&] { return ends == kEnds; })) << ends;
  ends = kEnds;
  ending.join();
}

/// A thread that helps waits by then, for longer than the one that was held up may rest.
TEST(ProgressThreads, ARestEndsInTimeWhicheverThreadWaits) {
  Gate gate;
  Client held_up([&](Wakening) {
    gate.pass();
    return Rest{.end = Clock::now() + std::chrono::milliseconds(3)};
  });
  Client other([](Wakening) { return kWatched; });
  EXPECT_TRUE(comes_true([&] { return gate.is_reached() && other.turns() >= 1; }));
  other.call();
  EXPECT_TRUE(comes_true([&] { return other.turns() >= 2; }));
  gate.open();
  EXPECT_TRUE(comes_true([&] { return held_up.turns() >= 5; }));
}

TEST(ProgressThreads, AreTwoForTwoBusyOnesAndOneForAll) {
  std::thread([] {}).join(); // a sanitizer may have a thread from the first on
  const std::size_t before = threads_that_stay();
  std::atomic<bool> is_over = false;
  std::array<std::atomic<bool>, 2> meets{};
  const auto body = [&](std::size_t self) {
    return [&, self](Wakening) {
      meets[self] = true;
      const Deadline end = Clock::now() + std::chrono::microseconds(200);
      while (Clock::now() < end) {
        if (meets[0] && meets[1]) {
          is_over = true;
        }
      }
      meets[self] = false;
      return is_over ? Rest() : kNoRest;
    };
  };
  {
    Client one(body(0));
    EXPECT_EQ(threads_of_process(), before + 1);
    Client other(body(1));
    EXPECT_TRUE(comes_true([&] { return is_over.load(); })) << "they never ran at once";
    std::deque<Client> many;
    for (int number = 0; number < 30; ++number) {
      many.emplace_back([](Wakening) { return kWatched; });
    }
    // One more while both were busy, which ends.
    EXPECT_TRUE(comes_true([&] { return threads_of_process() <= before + 3; }));
  }
  EXPECT_TRUE(comes_true([&] { return threads_of_process() == before; }));
}

TEST(ProgressThreads, LetASeatGoWhenTheyAttendToItNoMore) {
  Gate gate;
  auto leaving = std::make_unique<Client>([&](Wakening) {
    gate.pass();
    return kWatched;
  });
  Client staying([](Wakening) { return kWatched; });
  EXPECT_TRUE(comes_true([&] { return gate.is_reached(); }));
  std::atomic<bool> has_left = false;
  std::thread leaver([&] {
    leaving.reset();
    has_left = true;
  });
  staying.call();
  EXPECT_TRUE(comes_true([&] { return staying.turns() >= 1; }));
  EXPECT_FALSE(has_left);
  gate.open();
  leaver.join();
  const int turns = staying.turns();
  staying.call();
  EXPECT_TRUE(comes_true([&] { return staying.turns() > turns; }));
}

TEST(ProgressThreads, ComeAndGoWithSeatsOfManyThreads) {
  std::vector<std::jthread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([user] {
      for (int round = 0; round < 50; ++round) {
        Client client([&](Wakening) { return round % 2 == 0 ? kWatched : Rest(); });
        client.make_readable();
        client.call();
        if (round % 3 == user % 3) {
          EXPECT_TRUE(comes_true([&] { return client.turns() >= 1; }));
        }
      }
    });
  }
}

} // namespace
} // namespace weir::host::progress_threads_test
