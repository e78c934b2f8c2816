// SPDX-License-Identifier: BSD-3-Clause

/// Two queue pairs over a channel that loses, duplicates, delays and corrupts, driven by a seed.
/// All that was sent must arrive once and in order.

#include "endpoint/queue_pair.hpp"
#include "endpoint_channel.hpp"
#include "endpoint_support.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <vector>

namespace weir::endpoint::endpoint_channel_test {
namespace {

constexpr std::size_t kMostPackets = 10; // of a message, 256 bytes each

/// Each byte is one more than the last. Copied, because counting takes long without optimization.
Bytes counting_bytes(std::size_t first, std::size_t length) {
  static const Bytes all = [] {
    Bytes bytes((kMostPackets + 1) * 256);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    return bytes;
  }();
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

struct Plan {
  QueuePairConfig config;
  LinkTraits links;
  std::size_t messages = 0; // each way
  std::size_t max_message_bytes = 0;
  Ppm receive_late = 0; // receives that are posted late, which costs an RNR NAK
};

constexpr std::size_t kSlots = 4;
constexpr std::size_t kHeaderBytes = 40;

/// One direction of traffic with its model. Writes use a few slots of the receiver's memory in
/// turn. The owner of a slot clears it when it has been told that a write is complete, so a second
/// execution of a write would be visible.
class Flow {
 public:
  Flow(const Plan& plan, Dice& dice)
      : plan_(plan), dice_(dice), memory_(kSlots * plan.max_message_bytes), expected_(memory_),
        receive_buffers_(plan.config.receive_depth) {
    table_.add(kRemoteKey, kRemoteBase, memory_);
    for (std::size_t i = 0; i < plan.messages; ++i) {
      messages_.push_back(make_message(i));
    }
    for (std::size_t i = 0; i < receive_buffers_.size(); ++i) {
      receive_buffers_[i].resize(plan.max_message_bytes);
      unposted_.push_back(i);
    }
  }

  const MemoryTable& memory() const { return table_; }

  void post_sends(QueuePair& sender) {
    while (posted_ < messages_.size()) {
      const Message& message = messages_[posted_];
      const std::span<const std::uint8_t> all = message.bytes;
      const std::size_t cut = std::min(kHeaderBytes, all.size());
      SendRequest request;
      request.id = posted_;
      request.kind = message.kind;
      request.header = all.first(cut);
      request.data = all.subspan(cut);
      request.remote_address = kRemoteBase + message.slot * plan_.max_message_bytes;
      request.remote_key = kRemoteKey;
      request.immediate = message.immediate;
      if (sender.post(request) != PostResult::posted) {
        return;
      }
      ++posted_;
    }
  }

  void post_receives(QueuePair& receiver) {
    while (!unposted_.empty()) {
      if (dice_.chance(plan_.receive_late)) {
        return;
      }
      const std::size_t i = unposted_.front();
      unposted_.pop_front();
      ASSERT_EQ(receiver.post(ReceiveRequest{.id = i, .buffer = receive_buffers_[i]}),
                PostResult::posted);
    }
  }

  void sent(const Completion& completion) {
    ASSERT_EQ(completion.status, Status::success);
    ASSERT_EQ(completion.id, completed_) << "completions come in the order of posting";
    ASSERT_EQ(completion.bytes, messages_[completed_].bytes.size());
    ++completed_;
  }

  void received(const Completion& completion) {
    ASSERT_EQ(completion.status, Status::success);
    while (next_visible_ < messages_.size() && messages_[next_visible_].kind == SendKind::write) {
      apply(messages_[next_visible_++]); // it came before, without a completion
    }
    ASSERT_LT(next_visible_, messages_.size()) << "a message too many";
    const Message& message = messages_[next_visible_++];
    ASSERT_EQ(completion.bytes, message.bytes.size());
    const bool is_write = message.kind == SendKind::write_immediate;
    ASSERT_EQ(completion.kind,
              is_write ? CompletionKind::receive_write_immediate : CompletionKind::receive);
    const bool has_immediate = message.kind != SendKind::send;
    ASSERT_EQ(completion.immediate,
              has_immediate ? std::optional(message.immediate) : std::nullopt);
    if (is_write) {
      apply(message);
      check_and_scrub(message);
    } else {
      const Bytes& buffer = receive_buffers_[completion.id];
      ASSERT_TRUE(std::equal(message.bytes.begin(), message.bytes.end(), buffer.begin()));
    }
    unposted_.push_back(completion.id);
  }

  bool all_sent() const { return completed_ == messages_.size(); }

  /// Call it when everything is acknowledged.
  void check_end(const QueuePair& receiver) {
    while (next_visible_ < messages_.size() && messages_[next_visible_].kind == SendKind::write) {
      apply(messages_[next_visible_++]);
    }
    EXPECT_EQ(next_visible_, messages_.size());
    EXPECT_EQ(memory_, expected_);
    EXPECT_EQ(receiver.statistics().messages_received, messages_.size());
  }

 private:
  struct Message {
    SendKind kind = SendKind::write;
    std::size_t slot = 0;
    std::uint32_t immediate = 0;
    Bytes bytes;
  };

  Message make_message(std::size_t index) {
    Message message{static_cast<SendKind>(dice_.below(4)),
                    index % kSlots,
                    static_cast<std::uint32_t>(dice_.next()),
                    {}};
    const std::size_t length = dice_.below(plan_.max_message_bytes + 1);
    message.bytes = counting_bytes(dice_.below(256), length);
    return message;
  }

  std::span<std::uint8_t> slot_of(Bytes& memory, const Message& message) const {
    return std::span(memory).subspan(message.slot * plan_.max_message_bytes, message.bytes.size());
  }

  void apply(const Message& message) {
    std::copy(message.bytes.begin(), message.bytes.end(), slot_of(expected_, message).begin());
  }

  void check_and_scrub(const Message& message) {
    const std::span<std::uint8_t> real = slot_of(memory_, message);
    ASSERT_TRUE(std::equal(message.bytes.begin(), message.bytes.end(), real.begin()));
    std::fill(real.begin(), real.end(), 0xee);
    const std::span<std::uint8_t> model = slot_of(expected_, message);
    std::fill(model.begin(), model.end(), 0xee);
  }

  const Plan& plan_;
  Dice& dice_;
  Bytes memory_;
  Bytes expected_; // the same, as the receiver must see it
  MemoryTable table_;
  std::vector<Bytes> receive_buffers_;
  std::deque<std::size_t> unposted_;
  std::vector<Message> messages_;
  std::size_t posted_ = 0;
  std::size_t completed_ = 0;
  std::size_t next_visible_ = 0; // the next message with a receive completion
};

/// Two ends of a channel. Flow i goes from end i to end 1-i.
class World {
 public:
  World(const Plan& plan, Dice& dice)
      : flows_{Flow(plan, dice), Flow(plan, dice)}, left_(plan.config, flows_[1].memory()),
        right_(mirrored(plan.config), flows_[0].memory()), buffer_(left_.max_frame_bytes()),
        channel_(plan.links, buffer_.size(), dice) {}

  QueuePair& end(std::size_t i) { return *ends_[i]; }

  bool is_done() const { return flows_[0].all_sent() && flows_[1].all_sent(); }

  /// Does all that happens at the present time.
  void act() {
    for (const std::size_t i : {0, 1}) {
      while (const std::optional<Completion> completion = end(i).poll()) {
        if (completion->is_send_queue()) {
          flows_[i].sent(*completion);
        } else {
          flows_[1 - i].received(*completion);
        }
      }
    }
    for (const std::size_t i : {0, 1}) {
      flows_[i].post_sends(end(i));
      flows_[i].post_receives(end(1 - i));
      while (const std::size_t length = end(i).transmit(buffer_, channel_.time())) {
        channel_.send(1 - i, std::span(buffer_).first(length));
      }
      channel_.arm(i, end(i));
    }
  }

  /// Goes to the next arrival or timer; false when there is none.
  bool step() {
    if (!channel_.has_events()) {
      return false;
    }
    channel_.advance(ends_);
    return true;
  }

  void check_end() {
    flows_[0].check_end(right_);
    flows_[1].check_end(left_);
  }

 private:
  std::array<Flow, 2> flows_;
  QueuePair left_;
  QueuePair right_;
  Channel::Ends ends_{&left_, &right_};
  Bytes buffer_;
  Channel channel_;
};

Plan random_plan(Dice& dice) {
  Plan plan;
  plan.config = local_config(dice.chance(50 * kPercent) ? 4 : 6);
  plan.config.ack_timeout = microseconds(100);
  plan.config.window = static_cast<std::uint32_t>(dice.between(1, 24));
  plan.config.ack_request_every = static_cast<std::uint32_t>(dice.between(1, 12));
  plan.config.acknowledge_every = static_cast<std::uint32_t>(dice.between(1, 12));
  plan.config.send_depth = static_cast<std::uint32_t>(dice.between(1, 6));
  plan.config.receive_depth = static_cast<std::uint32_t>(dice.between(1, 6));
  plan.config.rnr_timer = 2;
  plan.config.send_psn = random_psn(dice);
  plan.config.receive_psn = random_psn(dice);
  plan.links = random_links(dice);
  plan.messages = 24;
  plan.max_message_bytes = dice.between(0, kMostPackets - 1) * 256 + dice.between(1, 256);
  plan.receive_late = dice.chance(30 * kPercent) ? 50 * kPercent : 0;
  return plan;
}

TEST(Channel, EveryMessageArrivesOnceInOrder) {
  constexpr std::uint64_t seeds = test::rounds(4000);
  Statistics total;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const Plan plan = random_plan(dice);
    World world(plan, dice);
    ASSERT_NO_FATAL_FAILURE(run(world));
    world.check_end();
    for (const std::size_t i : {0, 1}) {
      EXPECT_EQ(world.end(i).state(), QueuePair::State::ready);
      EXPECT_FALSE(world.end(i).poll());
      add(total, world.end(i).statistics());
    }
  }
  // A simulation without these events would show nothing.
  for (const CounterInfo& counter : kCounters) {
    const bool expected_zero =
        counter.value == &Statistics::cnps_received || counter.value == &Statistics::unsupported ||
        counter.value == &Statistics::dropped_in_error ||
        std::ranges::find(kReadCounters, counter.value) != kReadCounters.end();
    EXPECT_EQ(total.*counter.value == 0, expected_zero) << counter.name;
    RecordProperty(std::string(counter.name), std::to_string(total.*counter.value));
  }
}

/// The peer dies at a random time. Its partner must notice within the time of its timers; every
/// request completes, in order, and no timer runs afterwards.
TEST(Channel, SilenceIsNoticedInTime) {
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    QueuePairConfig config = local_config();
    config.retry_count = static_cast<std::uint8_t>(dice.below(8));
    config.ack_timeout = microseconds(100);
    config.window = static_cast<std::uint32_t>(dice.between(1, 24));
    Pair pair(config);
    Channel channel(kCalm, pair.a.max_frame_bytes(), dice);
    const Bytes data = pattern(1000);
    SendRequest request{.id = 0,
                        .kind = SendKind::write,
                        .header = {},
                        .data = data,
                        .remote_address = kRemoteBase,
                        .remote_key = kRemoteKey,
                        .immediate = 0};
    for (; request.id < 20; ++request.id) {
      pair.a.post(request);
    }
    TimePoint now = kStart;
    TimePoint last_heard = kStart;
    Bytes buffer(pair.a.max_frame_bytes());
    std::uint64_t deliveries = dice.below(60);
    while (pair.a.state() == QueuePair::State::ready && pair.a.statistics().messages_sent < 20) {
      while (const std::size_t length = pair.a.transmit(buffer, now)) {
        channel.send(1, std::span(buffer).first(length));
      }
      while (const std::size_t length = pair.b.transmit(buffer, now)) {
        channel.send(0, std::span(buffer).first(length));
      }
      if (channel.has_events() && deliveries != 0) {
        --deliveries;
        const std::uint64_t heard = pair.a.statistics().acks_received;
        channel.advance({&pair.a, &pair.b});
        now = channel.time();
        last_heard = pair.a.statistics().acks_received == heard ? last_heard : now;
      } else {
        channel.fall_silent();
        ASSERT_TRUE(pair.a.next_deadline());
        now = *pair.a.next_deadline();
        pair.a.expire(now);
      }
    }
    if (pair.a.state() == QueuePair::State::ready) {
      continue; // everything had been sent before
    }
    EXPECT_LE(now - last_heard, (config.retry_count + 1) * config.ack_timeout);
    EXPECT_EQ(pair.a.failure(), Status::retry_exceeded);
    EXPECT_FALSE(pair.a.next_deadline());
    EXPECT_EQ(pair.a.transmit(buffer, now), 0U);
    std::uint64_t id = 0;
    const std::uint64_t sent = pair.a.statistics().messages_sent;
    for (const Completion& completion : poll_all(pair.a)) {
      EXPECT_EQ(completion.id, id);
      EXPECT_EQ(completion.status, id < sent    ? Status::success
                                   : id == sent ? Status::retry_exceeded
                                                : Status::flushed);
      ++id;
    }
    EXPECT_EQ(id, 20U);
  }
}

/// The same seed gives the same packets: a failing seed can be replayed.
TEST(Channel, SeedsReplay) {
  std::array<Statistics, 2> runs;
  for (Statistics& run : runs) {
    Dice dice(7);
    const Plan plan = random_plan(dice);
    World world(plan, dice);
    for (world.act(); world.step(); world.act()) {
    }
    run = world.end(0).statistics();
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(runs[0].packets_retransmitted, 0U);
}

} // namespace
} // namespace weir::endpoint::endpoint_channel_test
