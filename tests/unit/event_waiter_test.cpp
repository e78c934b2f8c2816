// SPDX-License-Identifier: BSD-3-Clause

/// What ends a sleep, and whose.

#include "host/bootstrap/event_waiter.hpp"
#include "support/stream_pair.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace weir::host {
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
} // namespace weir::host
