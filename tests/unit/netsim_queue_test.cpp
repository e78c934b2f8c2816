// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/day_marks.hpp"
#include "netsim/event_queue.hpp"
#include "netsim/latency_histogram.hpp"
#include "netsim/message_list.hpp"
#include "netsim/time.hpp"
#include "netsim/transmitter.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace weir::netsim::netsim_queue_test {
namespace {

/// Compared with a search for the smallest. Most events are soon, some at the same time, some
/// beyond the calendar's end, and some before the last one taken.
TEST(EventQueue, GivesByTimeThenByArrival) {
  std::mt19937_64 random(1);
  std::uint64_t now = 0;
  EventQueue<unsigned> queue;
  std::vector<std::pair<std::uint64_t, unsigned>> reference; // what is in the queue
  for (unsigned i = 0; i < test::rounds(20000); ++i) {
    const bool takes = !reference.empty() && random() % 5 < 2;
    if (takes) {
      const auto first = std::min_element(reference.begin(), reference.end());
      const auto entry = queue.pop();
      now = entry.time;
      ASSERT_EQ(entry.time, first->first);
      ASSERT_EQ(entry.event, first->second);
      reference.erase(first);
    } else {
      const std::uint64_t ahead = random() % (std::uint64_t{1} << random() % 28);
      const std::uint64_t time = random() % 100 == 0 ? now / 2 : now + ahead / 16 * 16;
      queue.push(time, i);
      reference.emplace_back(time, i);
    }
  }
  EXPECT_EQ(queue.size(), reference.size());
}

/// As many events as a day is sorted by either method, at few times, so that many are of one.
TEST(EventQueue, KeepsTheOrderOfComingWithinADay) {
  constexpr std::uint64_t kMorning = std::uint64_t{1} << 20;
  for (const int events : {2, 3, 64, 65, 1000}) {
    std::mt19937_64 random(3);
    EventQueue<int> queue;
    std::vector<std::pair<std::uint64_t, int>> expected;
    for (int i = 0; i < events; ++i) {
      expected.emplace_back(kMorning + random() % 4 * 50, i);
      queue.push(expected.back().first, i);
    }
    std::sort(expected.begin(), expected.end());
    for (const auto& [time, event] : expected) {
      const auto entry = queue.pop();
      ASSERT_EQ(entry.time, time);
      ASSERT_EQ(entry.event, event) << "of " << events;
    }
    EXPECT_TRUE(queue.empty());
  }
}

/// Against a walk. At most four days are marked, so searches pass empty words and the circle's end.
TEST(DayMarks, FindsTheNextRoundTheEnd) {
  constexpr std::size_t kDays = std::size_t{3} * 4096;
  std::mt19937_64 random(2);
  DayMarks marks(kDays);
  EXPECT_EQ(marks.distance_to_next(5), kDays);
  std::deque<std::size_t> marked;
  for (int i = 0; i < 20000; ++i) {
    if (marked.size() == 4) {
      const std::size_t oldest = marked.front();
      marks.clear(oldest);
      std::erase(marked, oldest);
    }
    // Often near another one, or the same again.
    const std::size_t near = marked.empty() ? 0 : marked.back() + random() % 3;
    marked.push_back((random() % 2 == 0 ? near : random()) % kDays);
    marks.set(marked.back());
    const std::size_t from = (random() % 2 == 0 ? marked.front() + random() % 3 : random()) % kDays;
    std::size_t nearest = kDays;
    for (const std::size_t day : marked) {
      nearest = std::min(nearest, (day + kDays - from) % kDays);
    }
    ASSERT_EQ(marks.distance_to_next(from), nearest) << "from " << from;
  }
}

TEST(TransmissionTime, RoundsUpToPicoseconds) {
  EXPECT_EQ(transmission_time(1, 8'000'000'000), 1000U);        // 1 GB/s: 1 ns a byte
  EXPECT_EQ(transmission_time(1106, 100'000'000'000), 88'480U); // 8848 bits at 100 Gbit/s
  EXPECT_EQ(transmission_time(1, 3'000'000'000'000), 3U);       // 2.67 ps
  EXPECT_EQ(transmission_time(0, 1), 0U);
  EXPECT_EQ(transmission_time(1, 1), 8 * kSecond);
  // 2^39 bytes at 1.6 Tbit/s: 2^42 / 1.6 ps
  EXPECT_EQ(transmission_time(std::uint64_t{1} << 39, 1'600'000'000'000), 2'748'779'069'440U);
  // 2^33 bits at 2^53 bit/s: 2^-20 s = 953'674.3 ps
  EXPECT_EQ(transmission_time(std::uint64_t{1} << 30, std::uint64_t{1} << 53), 953'675U);
}

TEST(Transmitter, SendsOneAfterTheOther) {
  Transmitter link;
  EXPECT_EQ(link.take(5, 10), 5U);
  EXPECT_EQ(link.take(6, 10), 15U);
  EXPECT_EQ(link.take(100, 10), 100U);
  EXPECT_EQ(link.free_from(), 110U);
}

TEST(LatencyHistogram, FindsQuantilesToAThirtySecond) {
  LatencyHistogram histogram;
  for (Time time = 1; time <= 100'000; ++time) {
    histogram.add(time);
  }
  EXPECT_EQ(histogram.mean(), 50'000U);
  EXPECT_NEAR(static_cast<double>(histogram.quantile(500)), 50'000, 50'000 / 32.0);
  EXPECT_NEAR(static_cast<double>(histogram.quantile(990)), 99'000, 99'000 / 32.0);
}

TEST(MessageList, NumbersPacketsThrough) {
  MessageList messages(1000);
  messages.add(2500);
  messages.add(1000);
  messages.add(1);
  EXPECT_EQ(messages.packet_count(), 5U);
  EXPECT_EQ(messages.message_of(2), 0U);
  EXPECT_EQ(messages.message_of(3), 1U);
  EXPECT_EQ(messages.message_of(4), 2U);
  EXPECT_EQ(messages.bytes_of(0, 0), 1016U); // RETH
  EXPECT_EQ(messages.bytes_of(1, 0), 1000U);
  EXPECT_EQ(messages.bytes_of(2, 0), 504U);  // immediate
  EXPECT_EQ(messages.bytes_of(3, 1), 1020U); // both
  EXPECT_EQ(messages.bytes_of(4, 2), 21U);
}

} // namespace
} // namespace weir::netsim::netsim_queue_test
