// SPDX-License-Identifier: BSD-3-Clause

/// The engine between a transport that the test plays and a rank 0 that never says anything: calls
/// need nobody's leave.

#include "host/base/control_note.hpp"
#include "host/collective/engine.hpp"
#include "host/collective/switch_reducer.hpp"
#include "support/comes_true.hpp"
#include "support/echo_transport.hpp"
#include "support/stream_pair.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace weir::host::engine_test {
namespace {

constexpr std::uint32_t kWindowMessages = 4;

constexpr WindowConfig kWindow{.ring = 1,
                               .rank = 1,
                               .world = 2,
                               .window = kWindowMessages,
                               .message_bytes = 40 + 16,
                               .epoch = 5,
                               .nonce = 3};

std::vector<std::unique_ptr<Reducer>> one_channel() {
  std::vector<std::unique_ptr<Reducer>> channels;
  channels.push_back(std::make_unique<SwitchReducer>(kWindow));
  return channels;
}

struct QueuedCalls : testing::Test {
  QueuedCalls() {
    std::vector<std::unique_ptr<FramedStream>> own(2);
    std::tie(own[0], rank_0) = test::stream_pair();
    control = std::make_unique<JobControl>(1, 2, Patience{}, std::move(own));
    while (!engine.channels_are_idle()) { // the hello
      engine.step();
    }
    engine.attach(*control);
  }

  /// All-reduces of `count` u8, in place.
  void start(std::size_t calls, std::size_t count) {
    data.assign(calls, std::vector<std::uint8_t>(count, 1));
    for (std::size_t call = 0; call < calls; ++call) {
      Job& job = jobs.emplace_back();
      job.buffers = {data[call].data(), data[call].data()};
      job.call = {.sequence = call + 1, .count = count, .type = DataType::u8};
      engine.start(job);
    }
  }

  test::EchoTransport transport;
  Engine engine{{.rank = 1, .world = 2}, one_channel(), transport, std::chrono::seconds(10)};
  std::unique_ptr<FramedStream> rank_0;
  std::unique_ptr<JobControl> control;
  std::deque<Job> jobs;
  std::vector<std::vector<std::uint8_t>> data;
};

TEST_F(QueuedCalls, FillWindowsAndAskNobody) {
  constexpr std::size_t calls = 500;
  start(calls, 4);
  const std::size_t before = transport.round_trips();
  while (!jobs.back().done) {
    engine.step();
  }
  EXPECT_EQ(transport.round_trips() - before, calls / kWindowMessages);
  EXPECT_EQ(transport.most_under_way(), kWindowMessages);
  for (std::size_t call = 0; call < calls; ++call) {
    EXPECT_TRUE(jobs[call].done);
    EXPECT_EQ(data[call], std::vector<std::uint8_t>(4, 2));
  }
}

TEST_F(QueuedCalls, AreToldToRank0) {
  start(500, 4);
  control->poll({});
  std::uint64_t told = 0;
  rank_0->read_available();
  while (const auto frame = rank_0->receive()) {
    ASSERT_EQ(frame->kind, code(ControlKind::calls));
    for (std::size_t at = 0; at < frame->body.size(); at += sizeof(NumberedCall)) {
      const auto& body = wire::view_as<NumberedCall>(&frame->body[at]);
      EXPECT_EQ(body.sequence.get(), ++told);
      EXPECT_EQ(body.call.count.get(), 4U);
    }
  }
  EXPECT_EQ(told, 500U);
}

/// A call may end what rank 0 has waited for, such as the time until a rank may leave.
TEST_F(QueuedCalls, AreFollowedByALookAtTheControlConnections) {
  start(1, 4);
  while (!jobs.back().done) {
    engine.step();
  }
  EXPECT_LT(engine.due(), Clock::now() + std::chrono::milliseconds(50));
  EXPECT_TRUE(test::comes_true([&] {
    engine.step();
    return engine.due() == Deadline::max();
  })) << "nothing is left to do";
}

/// Of no message, of one, of three with two full ones; each is done in its turn.
TEST_F(QueuedCalls, OfDifferentLengthsAreDoneInTheirOrder) {
  const std::vector<std::size_t> counts{0, 5, 0, 0, 40, 16, 0};
  for (const std::size_t count : counts) {
    data.emplace_back(count, 3);
  }
  for (std::size_t call = 0; call < counts.size(); ++call) {
    Job& job = jobs.emplace_back();
    job.buffers = {data[call].data(), data[call].data()};
    job.call = {.sequence = call + 1, .count = counts[call], .type = DataType::u8};
    engine.start(job);
  }
  EXPECT_TRUE(jobs[0].done);
  EXPECT_FALSE(jobs[2].done) << "before the one ahead of it";
  while (!jobs.back().done) {
    engine.step();
    for (std::size_t call = 1; call < jobs.size(); ++call) {
      EXPECT_LE(jobs[call].done, jobs[call - 1].done);
    }
  }
  for (std::size_t call = 0; call < counts.size(); ++call) {
    EXPECT_EQ(data[call], std::vector<std::uint8_t>(counts[call], 6));
    EXPECT_EQ(jobs[call].bytes_done, counts[call]);
  }
}

/// Exchanges of so many bytes each; the number of the next one's is known when the one before is
/// done.
class ByteSeries : public ExchangeSeries {
 public:
  explicit ByteSeries(std::vector<std::size_t> lengths) : lengths_(std::move(lengths)) { take(); }

  Exchange current() override {
    return {.call = {.count = data_.size(), .type = DataType::u8},
            .buffers = {data_.data(), data_.data()}};
  }

  bool is_last() const override { return at_ + 1 == lengths_.size(); }

  Step advance() override {
    EXPECT_EQ(data_, std::vector<std::uint8_t>(lengths_[at_], 2)) << "exchange " << at_;
    if (is_last()) {
      return Step::done;
    }
    ++at_;
    take();
    return Step::next;
  }

 private:
  void take() { data_.assign(lengths_[at_], 1); }

  std::vector<std::size_t> lengths_;
  std::size_t at_ = 0;
  std::vector<std::uint8_t> data_;
};

/// Messages have at most 16 bytes of data.
TEST_F(QueuedCalls, GoOnceTheLastExchangeOfASeriesHasBegun) {
  ByteSeries first({3, 0, 20});
  ByteSeries second({5, 6});
  const std::vector<ExchangeSeries*> series{nullptr, &first, nullptr, nullptr, &second, nullptr};
  data = {{1}, {}, {1, 1}, std::vector<std::uint8_t>(7, 1), {}, std::vector<std::uint8_t>(8, 1)};
  for (std::size_t call = 0; call < series.size(); ++call) {
    Job& job = jobs.emplace_back();
    job.buffers = {data[call].data(), data[call].data()};
    job.call = {.sequence = call + 1, .count = data[call].size(), .type = DataType::u8};
    job.series = series[call];
    engine.start(job);
  }
  const std::size_t before = transport.round_trips();
  while (!jobs.back().done) {
    engine.step();
  }
  EXPECT_EQ(transport.lengths(), (std::vector<std::size_t>{1, 3, 16, 4, 2, 7, 5, 6, 8}));
  EXPECT_EQ(transport.round_trips() - before, 4U) << "one more for each exchange that waits";
  EXPECT_EQ(jobs[1].bytes_done, 23U);
  EXPECT_EQ(jobs[4].bytes_done, 11U);
}

} // namespace
} // namespace weir::host::engine_test
