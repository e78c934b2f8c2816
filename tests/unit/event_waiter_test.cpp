// SPDX-License-Identifier: BSD-3-Clause

/// What ends a sleep, and whose.

#include "host/base/event_waiter.hpp"
#include "support/comes_true.hpp"
#include "support/stream_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <sys/socket.h>
#include <thread>

namespace weir::host::event_waiter_test {
namespace {

constexpr Deadline kNever = Deadline::max();

TEST(EventWaiter, ASleepEndsAtItsDeadline) {
  EventWaiter waiter;
  Bell bell;
  const Deadline deadline = Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(waiter.sleep_until(deadline, bell));
  EXPECT_GE(Clock::now(), deadline);
  waiter.sleep_until(Deadline::min(), bell); // returns
}

TEST(EventWaiter, ARingBeforeTheSleepEndsItAndNoOther) {
  EventWaiter waiter;
  Bell bell;
  bell.ring();
  bell.ring();
  waiter.sleep_until(kNever, bell); // returns
  const Deadline deadline = Clock::now() + std::chrono::milliseconds(20);
  waiter.sleep_until(deadline, bell);
  EXPECT_GE(Clock::now(), deadline) << "the ring was heard already";
}

/// Their queue has room for two, who come before anybody sleeps.
TEST(EventWaiter, CallersAreTurnedAwayAndWakeNobodyForLong) {
  const Socket listener = listen_at({"127.0.0.1", "0"});
  listen(listener.get(), 1);
  const Endpoint endpoint{"127.0.0.1", std::to_string(port_of(listener))};
  EventWaiter waiter;
  Bell bell;
  waiter.turn_callers_away(listener);
  for (int round = 0; round < 4; ++round) {
    int error = 0;
    const std::array<Socket, 2> callers{connecting_to(endpoint, error),
                                        connecting_to(endpoint, error)};
    const auto is_closed = [](const Socket& caller) {
      char byte = 0;
      return recv(caller.get(), &byte, 1, MSG_DONTWAIT) == 0;
    };
    EXPECT_TRUE(test::comes_true([&] {
      EXPECT_FALSE(waiter.sleep_until(Clock::now() + std::chrono::milliseconds(1), bell));
      return std::ranges::all_of(callers, is_closed);
    })) << "round "
        << round;
  }
  const Deadline deadline = Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(waiter.sleep_until(deadline, bell));
  EXPECT_GE(Clock::now(), deadline) << "nobody is there any more";
}

/// The group's own thread and a caller sleep at the same time.
TEST(EventWaiter, ARingIsForOneSleeperAlone) {
  EventWaiter waiter;
  Bell first;
  Bell second;
  std::atomic<bool> second_woke = false;
  std::thread sleeper([&] {
    waiter.sleep_until(kNever, second);
    second_woke = true;
  });
  for (int i = 0; i < 100; ++i) {
    first.ring();
    waiter.sleep_until(kNever, first); // returns
  }
  EXPECT_FALSE(second_woke);
  second.ring();
  sleeper.join();
}

TEST(EventWaiter, TellsAConnectionFromOtherDescriptors) {
  for (const auto source : {EventWaiter::Source::control, EventWaiter::Source::transport}) {
    EventWaiter waiter;
    Bell bell;
    auto [ours, theirs] = test::stream_pair();
    waiter.watch(ours->descriptor(), source);
    theirs->send(1, {});
    EXPECT_EQ(waiter.sleep_until(kNever, bell), source == EventWaiter::Source::control);
    ours.reset();
    EXPECT_FALSE(waiter.sleep_until(Clock::now(), bell)) << "closed";
  }
}

} // namespace
} // namespace weir::host::event_waiter_test
