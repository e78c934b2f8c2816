// SPDX-License-Identifier: BSD-3-Clause

/// READs and writes both ways between two queue pairs over a bad channel, driven by a seed. Each
/// end is the only one that writes the other's memory. So that memory, and what is read of it, must
/// be as if each request had been executed once, one after the other.

#include "endpoint/queue_pair.hpp"
#include "endpoint_channel.hpp"
#include "endpoint_support.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace weir::endpoint::endpoint_read_channel_test {
namespace {

constexpr std::size_t kMemoryBytes = 3000;
constexpr std::size_t kRequests = 24;
constexpr std::size_t kGuard = 8;
constexpr std::uint8_t kUntouched = 0xee;

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }

  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }

  std::span<std::uint8_t> of(Bytes& bytes) const { return std::span(bytes).subspan(begin, size()); }
};

struct Request {
  SendKind kind = SendKind::write;
  Fence fence = Fence::none;
  Range range;
  Bytes bytes; // to write, or that must be read
};

Range random_range(Dice& dice) {
  const std::size_t most =
      dice.pick({std::size_t{0}, std::size_t{1}, std::size_t{300}, kMemoryBytes});
  const std::size_t bytes = dice.below(most + 1);
  const std::size_t begin = dice.below(kMemoryBytes - bytes + 1);
  return {begin, begin + bytes};
}

Bytes random_bytes(std::size_t count, Dice& dice) {
  Bytes bytes(count);
  std::ranges::generate(bytes, [&dice] { return static_cast<std::uint8_t>(dice.next()); });
  return bytes;
}

/// What one end asks of the other's memory, in order, and what must come of it.
class Script {
 public:
  Script(const Bytes& memory, Dice& dice) : memory_(memory) {
    for (std::size_t i = 0; i < kRequests; ++i) {
      requests_.push_back(make_request(dice));
    }
  }

  const std::vector<Request>& requests() const { return requests_; }

  /// The other's memory when all has been executed.
  const Bytes& memory() const { return memory_; }

 private:
  Request make_request(Dice& dice) {
    Request request;
    request.kind = dice.pick({SendKind::read, SendKind::write, SendKind::write_immediate});
    request.range = random_range(dice);
    const bool must_wait = request.kind != SendKind::read &&
                           std::ranges::any_of(unfenced_reads_, [&request](const Range& read) {
                             return read.meets(request.range);
                           });
    if (must_wait || dice.chance(20 * kPercent)) {
      request.fence = Fence::after_reads;
      unfenced_reads_.clear();
    }
    const std::span<std::uint8_t> place = request.range.of(memory_);
    if (request.kind == SendKind::read) {
      unfenced_reads_.push_back(request.range);
      request.bytes.assign(place.begin(), place.end());
    } else {
      request.bytes = random_bytes(place.size(), dice);
      std::ranges::copy(request.bytes, place.begin());
    }
    return request;
  }

  Bytes memory_;
  std::vector<Range> unfenced_reads_;
  std::vector<Request> requests_;
};

/// One end: its memory, which the other's script changes, and its own script.
class End {
 public:
  End(const QueuePairConfig& config, const Bytes& memory, Script script)
      : memory_(memory), script_(std::move(script)), queue_pair_(config, table_) {
    table_.add(kRemoteKey, kRemoteBase, memory_, Access::read_and_write);
    for (const Request& request : script_.requests()) {
      targets_.emplace_back(request.bytes.size() + 2 * kGuard, kUntouched);
    }
  }

  QueuePair& queue_pair() { return queue_pair_; }

  bool is_done() const { return completed_ == kRequests; }

  const Bytes& memory() const { return memory_; }

  const Script& script() const { return script_; }

  void act(Ppm receive_late, Dice& dice) {
    while (const std::optional<Completion> completion = queue_pair_.poll()) {
      ASSERT_EQ(completion->status, Status::success);
      if (completion->is_send_queue()) {
        complete(*completion);
      }
    }
    while (!dice.chance(receive_late) &&
           queue_pair_.post(ReceiveRequest{.id = 0}) == PostResult::posted) {
    }
    while (posted_ < kRequests && queue_pair_.post(next_request()) == PostResult::posted) {
      ++posted_;
    }
  }

 private:
  SendRequest next_request() {
    const Request& wanted = script_.requests()[posted_];
    SendRequest request = request_of(wanted.kind, {});
    request.id = posted_;
    request.fence = wanted.fence;
    request.remote_address += wanted.range.begin;
    if (wanted.kind == SendKind::read) {
      request.target = std::span(targets_[posted_]).subspan(kGuard, wanted.bytes.size());
    } else {
      request.data = wanted.bytes;
    }
    return request;
  }

  void complete(const Completion& completion) {
    ASSERT_EQ(completion.id, completed_) << "completions come in the order of posting";
    const Request& wanted = script_.requests()[completed_];
    ASSERT_EQ(completion.bytes, wanted.bytes.size());
    if (wanted.kind == SendKind::read) {
      Bytes expected(wanted.bytes.size() + 2 * kGuard, kUntouched);
      std::ranges::copy(wanted.bytes, expected.begin() + kGuard);
      ASSERT_EQ(targets_[completed_], expected) << "request " << completed_;
      std::ranges::fill(targets_[completed_], kUntouched); // it is ours again
    }
    ++completed_;
  }

  Bytes memory_;
  Script script_;
  MemoryTable table_;
  std::vector<Bytes> targets_;
  QueuePair queue_pair_;
  std::size_t posted_ = 0;
  std::size_t completed_ = 0;
};

struct Plan {
  std::array<QueuePairConfig, 2> configs;
  LinkTraits links;
  Ppm receive_late = 0; // which costs an RNR NAK
};

Plan random_plan(Dice& dice) {
  QueuePairConfig config = local_config(dice.chance(50 * kPercent) ? 4 : 6);
  config.ack_timeout = microseconds(100);
  config.window = static_cast<std::uint32_t>(dice.between(1, 24));
  config.ack_request_every = static_cast<std::uint32_t>(dice.between(1, 12));
  config.acknowledge_every = static_cast<std::uint32_t>(dice.between(1, 12));
  config.send_depth = static_cast<std::uint32_t>(dice.between(1, 8));
  config.receive_depth = static_cast<std::uint32_t>(dice.between(1, 6));
  config.rnr_timer = 2;
  config.max_rd_atomic = static_cast<std::uint32_t>(dice.between(1, 4));
  config.max_dest_rd_atomic = config.max_rd_atomic + static_cast<std::uint32_t>(dice.below(2));
  config.send_psn = random_psn(dice);
  config.receive_psn = random_psn(dice);
  Plan plan{.configs = {config, mirrored(config)}, .links = random_links(dice)};
  for (QueuePairConfig& end : plan.configs) {
    end.stack = dice.pick({Stack::ibta, Stack::soft_roce});
  }
  plan.receive_late = dice.chance(30 * kPercent) ? 50 * kPercent : 0;
  return plan;
}

class World {
 public:
  explicit World(Dice& dice)
      : dice_(dice), plan_(random_plan(dice)), memories_{random_bytes(kMemoryBytes, dice),
                                                         random_bytes(kMemoryBytes, dice)},
        left_(plan_.configs[0], memories_[0], Script(memories_[1], dice)),
        right_(plan_.configs[1], memories_[1], Script(memories_[0], dice)),
        buffer_(left_.queue_pair().max_frame_bytes()), channel_(plan_.links, buffer_.size(), dice) {
  }

  bool is_done() const { return left_.is_done() && right_.is_done(); }

  void act() {
    for (const std::size_t i : {0, 1}) {
      QueuePair& queue_pair = ends_[i]->queue_pair();
      ends_[i]->act(plan_.receive_late, dice_);
      while (const std::size_t length = queue_pair.transmit(buffer_, channel_.time())) {
        channel_.send(1 - i, std::span(buffer_).first(length));
      }
      channel_.arm(i, queue_pair);
    }
  }

  bool step() {
    if (!channel_.has_events()) {
      return false;
    }
    channel_.advance({&left_.queue_pair(), &right_.queue_pair()});
    return true;
  }

  void check_end(Statistics& total) {
    EXPECT_EQ(left_.memory(), right_.script().memory());
    EXPECT_EQ(right_.memory(), left_.script().memory());
    for (End* const end : ends_) {
      EXPECT_EQ(end->queue_pair().state(), QueuePair::State::ready);
      EXPECT_EQ(end->queue_pair().statistics().messages_received, kRequests);
      add(total, end->queue_pair().statistics());
    }
  }

 private:
  Dice& dice_;
  Plan plan_;
  std::array<Bytes, 2> memories_; // at first
  End left_;
  End right_;
  std::array<End*, 2> ends_{&left_, &right_};
  Bytes buffer_;
  Channel channel_;
};

TEST(ReadChannel, AllIsAsIfExecutedOnceInOrder) {
  constexpr std::uint64_t seeds = test::rounds(3000);
  Statistics total;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    World world(dice);
    ASSERT_NO_FATAL_FAILURE(run(world));
    world.check_end(total);
  }
  // A simulation without these events would show nothing.
  for (const auto counter : kReadCounters) {
    EXPECT_GT(total.*counter, seeds / 30);
  }
  EXPECT_GT(total.rnr_naks_received, seeds / 30);
  EXPECT_GT(total.out_of_sequence, seeds / 30);
}

} // namespace
} // namespace weir::endpoint::endpoint_read_channel_test
